"""A schedule is a function of the step's number in the job: whoever takes a step takes it at the same rate."""

from __future__ import annotations

import pytest
import torch

from axonp2p.errors import TaskMistake
from axonp2p.training.messages import Prepare
from axonp2p.training.options import StepOptions
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.plain_run import PlainRun
from axonp2p.training.trainer.samples.step_batches import BatchPart
from axonp2p.training.trainer.task import CheckedTask
from tests.unit.training.member_swarm import start_round

TASK = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    def model(self):
        return nn.Linear(1, 1, bias=False)
    def data(self, split, shard, shards):
        return TensorDataset(torch.ones(16, 1))
    def loss(self, model, batch):
        return model(batch[0]).mean()
    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.5)
"""
WARM_UP = """
    def schedule(self, step, steps):
        return min(1.0, (step + 1) / 4) * (1 - step / steps)
"""
STEPS, ROUNDS = 4, 3


def rate(step):
    return 0.5 * min(1.0, (step + 1) / 4) * (1 - step / (STEPS * ROUNDS))


def trainer(folder, text, **options):
    (folder / "task.py").write_text(text)
    order = Prepare(
        rank=0, job="j", task="task.py", shards=1, batch=2, seed=1, steps=STEPS * ROUNDS,
        step_options=StepOptions(**options),
    )  # fmt: skip
    return LocalTrainer(CheckedTask(folder, "task.py"), order)


def moved(made, round):
    """How far the round's steps lead: each gradient is 1."""
    made.begin(start_round(round, bytes(32), [0], rank=0, steps=STEPS, exchange_every=STEPS, mark_every=2))
    leg = made.leg(torch.zeros(made.layout.values), lambda *_: LegVerdict.GO_ON)
    assert made.why_no_marks == ""
    assert len(leg.places) == 3
    return leg.difference.item()


def test_a_step_has_its_rate_however_often_and_by_whomever_it_is_taken(tmp_path):
    expected = [sum(rate(round * STEPS + step) for step in range(STEPS)) for round in range(ROUNDS)]
    made = trainer(tmp_path, TASK + WARM_UP)
    first = [moved(made, 0)]
    made.put_back()  # the round is redone
    assert moved(made, 0) == first[0]
    made.accept()
    first += [moved(made, 1), moved(made, 2)]
    assert first == pytest.approx(expected, rel=1e-5)
    late = trainer(tmp_path, TASK + WARM_UP)  # a member that joins in the last round
    assert moved(late, 2) == first[2]
    assert [group["lr"] for group in late._optimizers.param_groups] == [0.5]


def test_a_plain_loop_has_the_same_rates(tmp_path):
    (tmp_path / "task.py").write_text(TASK + WARM_UP)
    run = PlainRun(CheckedTask(tmp_path, "task.py"), 2, 1)
    before = run._model.weight.item()
    run.train(2 * STEPS * ROUNDS)
    assert before - run._model.weight.item() == pytest.approx(sum(map(rate, range(STEPS * ROUNDS))), rel=1e-5)


def test_gradients_are_clipped_to_their_norm(tmp_path):
    steep = TASK.replace("return model(batch[0]).mean()", "return 1000 * model(batch[0]).mean()")
    assert moved(trainer(tmp_path, steep, clip_gradients=2.0), 0) == pytest.approx(STEPS * 2.0 * 0.5, rel=1e-4)
    assert moved(trainer(tmp_path, steep), 0) == pytest.approx(STEPS * 1000 * 0.5, rel=1e-4)


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("return -1.0", "it returned -1.0 for step 0 of 12; it must return 0 or more"),
        ("return float('nan')", "it returned nan for step 0 of 12"),
        ("return 'fast'", "could not convert string to float"),
        ("return 1 / step", "division by zero"),
    ],
)
def test_a_schedule_that_gives_no_factor_is_the_tasks_mistake(tmp_path, schedule, said):
    made = trainer(tmp_path, f"{TASK}    def schedule(self, step, steps):\n        {schedule}\n")
    with pytest.raises(TaskMistake) as caught:
        moved(made, 0)
    assert caught.value.message == "schedule()"
    assert said in caught.value.cause


def test_an_optimiser_without_a_rate_has_no_schedule(tmp_path):
    made = trainer(tmp_path, TASK + WARM_UP)
    made._optimizers.param_groups[0].pop("lr")
    with pytest.raises(TaskMistake, match=r"schedule\(\)"):
        made._inner_step.take(0, [BatchPart([torch.ones(2, 1)], 2)])


def test_momentum_remembers_nothing_of_the_schedule(tmp_path):
    made = trainer(tmp_path, TASK.replace("lr=0.5", "lr=0.5, momentum=0.9") + WARM_UP)
    moved(made, 0)
    (memory,) = made._optimizers.state_dict()["state"].values()
    assert torch.allclose(memory["momentum_buffer"], torch.tensor([[1 + 0.9 + 0.81 + 0.729]]))
