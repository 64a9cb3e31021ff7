"""Steps that one trainer took are taken again by another, from what the first committed to."""

from __future__ import annotations

import itertools

import pytest
import torch

from axonp2p.errors import PeerMisbehaved
from axonp2p.training.messages import Prepare, RedoSegment
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.task import CheckedTask
from axonp2p.verification.distances import relative
from tests.unit.training.member_swarm import start_round
from tests.unit.training.trainer.test_local_trainer import TASK

SGD = "    def optimizer(self, model):\n        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n"
SCHEDULE = "    def schedule(self, step, steps):\n        return 1 / (1 + step % 7)\n"
LISTS = """
    def optimizer(self, model):
        made = torch.optim.SGD(model.parameters(), lr=0.1)
        made.state[next(model.parameters())]["history"] = []
        return made
"""
SCHEDULED = """
    def optimizer(self, model):
        class Slower(torch.optim.SGD):
            def step(self, closure=None):
                super().step(closure)
                self.param_groups[0]["lr"] *= 0.9
        return Slower(model.parameters(), lr=0.1)
"""


def trainer(folder, text=TASK):
    (folder / "task.py").write_text(text)
    return LocalTrainer(
        CheckedTask(folder, "task.py"), Prepare(rank=0, job="job", task="task.py", shards=2, batch=8, seed=1)
    )


def again(made, order, data):
    """By a trainer of its own, as everywhere."""
    return LocalTrainer(CheckedTask(made._task._folder, "task.py"), made._prepare).redo(order, data, made.flops)


def order(round=3, **settings):
    usual = {"rank": 1, "steps": 8, "exchange_every": 4, "mark_every": 2}
    return start_round(round, bytes(32), [0, 1], **usual | settings)


def go_on(*_):
    return LegVerdict.GO_ON


def legs(made, start, factors=None):
    made.begin(start)
    weights = made.first_state().weights
    for _ in range(start.steps // start.settings.exchange_every):
        leg = made.leg(weights, go_on, factors)
        weights = weights - leg.difference
        yield leg


def segments(start, places):
    """Those of one leg, as the coordinator orders them."""
    for first, last in itertools.pairwise(places):
        steps = last.step - first.step
        yield (
            RedoSegment(
                of=1, round=start.round, attempt=0, start=first.mark, shards=list(start.shards),
                round_steps=start.steps, steps=steps,
            ),
            first.file,
            last.mark,
        )  # fmt: skip


@pytest.mark.parametrize("optimizer", ["", SGD, SGD + SCHEDULE])
@pytest.mark.parametrize("lengthened", [False, True])
def test_every_segment_of_a_round_comes_out_the_same_to_the_bit_elsewhere(tmp_path, optimizer, lengthened):
    made, start = trainer(tmp_path, TASK + optimizer), order()
    factors = torch.linspace(1, 1.4, made.layout.values) if lengthened else None
    redone = 0
    for leg in legs(made, start, factors):
        for wanted, data, end in segments(start, leg.places):
            said = again(made, wanted, data)
            assert said.end == end
            assert said.flops > 0
            assert relative(said.before_last, said.end.sketch, wanted.start.sketch) > 0.05
            redone += 1
    assert redone == 4


def test_what_float32_cannot_hold_is_handed_over_and_done_again_too(tmp_path):
    lines = [
        'made.register_buffer("ids", torch.tensor([2**62 + 3, -1]))',
        'made.register_buffer("mask", torch.tensor([-torch.inf]))',
        'made.register_parameter("z", nn.Parameter(torch.ones(3, dtype=torch.complex64)))',
    ]
    text = TASK.replace("return nn.Sequential(", "made = nn.Sequential(").replace(
        "    def data(", "".join(f"        {line}\n" for line in [*lines, "return made.double()"]) + "    def data("
    )
    text = text.replace("model(points)", "model(points.double()) + model.z.abs().sum()")
    text = text.replace("points, sums = batch", "points, sums = batch\n        model.ids += 2**33 + 1")
    made, start = trainer(tmp_path, text), order()
    for leg in legs(made, start):
        for wanted, data, end in segments(start, leg.places):
            said = again(made, wanted, data)
            assert said.end == end
            assert 0.05 < relative(said.before_last, said.end.sketch, wanted.start.sketch) < 3


def test_what_marks_take_is_told(tmp_path):
    marked, plain = (next(legs(trainer(tmp_path), order(mark_every=every))) for every in (4, 0))
    assert marked.mark_seconds > plain.mark_seconds == 0


def test_marks_stand_at_the_start_of_a_leg_on_the_way_and_at_its_end(tmp_path):
    made = trainer(tmp_path)
    found = [
        [(place.leg, place.step) for place in leg.places]
        for leg in legs(made, order(steps=10, exchange_every=5, mark_every=2))
    ]
    assert found == [[(0, 0), (0, 2), (0, 4), (0, 5)], [(1, 5), (1, 7), (1, 9), (1, 10)]]


def test_a_leg_begins_with_what_the_optimiser_remembered_at_the_end_of_the_one_before(tmp_path):
    first, second = legs(trainer(tmp_path), order())
    assert first.places[0].memory == []
    assert first.places[-1].memory == second.places[0].memory != []


class Lazy(LocalTrainer):
    """Takes every second step only, and says that it took them all."""

    def _next_step(self, now):
        if now.steps % 2:
            return super()._next_step(now)
        now.steps += 1
        now.samples += self._batch
        return 1000


def test_who_skips_steps_is_far_from_where_they_lead(tmp_path):
    (tmp_path / "task.py").write_text(TASK)
    lazy = Lazy(CheckedTask(tmp_path, "task.py"), Prepare(rank=0, job="job", task="task.py", shards=2, batch=8, seed=1))
    start = order()
    for leg in legs(lazy, start):
        for wanted, data, end in segments(start, leg.places):
            said = trainer(tmp_path).redo(wanted, data, {})
            assert relative(said.end.sketch, end.sketch, wanted.start.sketch) > 0.2


def test_a_learning_rate_of_0_saves_nobody_any_work(tmp_path):
    made, start = trainer(tmp_path), order()
    for group in made._optimizers.param_groups:
        group["lr"] = 0.0
    assert next(legs(made, start)).places == ()
    assert made.why_no_marks == "the optimiser changes its own settings"


@pytest.mark.parametrize(
    ("optimizer", "why"),
    [(LISTS, "the optimiser remembers history as a list"), (SCHEDULED, "the optimiser changes its own settings")],
)
def test_an_optimiser_that_cannot_be_committed_to_is_said_to_be_one(tmp_path, optimizer, why):
    made = trainer(tmp_path, TASK + optimizer)
    assert next(legs(made, order())).steps == 4
    assert made.why_no_marks == why


def test_bytes_that_are_not_what_the_mark_says_are_not_gone_on_from(tmp_path):
    made, start = trainer(tmp_path), order()
    leg = next(legs(made, start))
    wanted, _, _ = next(segments(start, leg.places))
    said = again(made, wanted, leg.places[1].file)
    assert said.failed == "other bytes"
    assert said.end is None


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: data[:3], lambda _: b"\xff" * 40, lambda _: b""]
)
def test_bytes_that_are_no_mark_are_refused(tmp_path, spoil):
    made, start = trainer(tmp_path), order()
    leg = next(legs(made, start))
    wanted, data, _ = next(segments(start, leg.places))
    with pytest.raises(PeerMisbehaved):
        again(made, wanted, memoryview(spoil(bytes(data))))


def test_without_marks_nothing_is_drawn_anew(tmp_path):
    plain, marked = (next(legs(trainer(tmp_path), order(mark_every=every))) for every in (0, 4))
    assert plain.places == ()
    assert len(marked.places) == 2
