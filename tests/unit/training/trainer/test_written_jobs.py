"""Each kind of job that people write trains as well on two members as in a plain process, or is refused by name."""

from __future__ import annotations

import pytest
import torch

from axonp2p.errors import TaskMistake
from axonp2p.training.messages import Prepare, RedoSegment
from axonp2p.training.options import StepOptions
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.plain_run import PlainRun
from axonp2p.training.trainer.task import CheckedTask
from tests.laboratory.written_jobs import HEAD, WRITTEN_JOBS
from tests.unit.training.member_swarm import start_round

MEMBERS, ROUNDS, STEPS, BATCH = 2, 3, 16, 16
SHARE_OF_PLAIN = 0.4
"""Of what a plain process gains on as many samples, at the least: it takes twice as many steps one after the other."""


def make(folder, job, rank):
    options = StepOptions(**dict(job.train))
    order = Prepare(
        rank=rank,
        job="j",
        task="task.py",
        shards=MEMBERS,
        batch=BATCH,
        seed=1,
        steps=ROUNDS * STEPS,
        step_options=options,
    )
    return LocalTrainer(CheckedTask(folder, "task.py"), order)


def write(folder, job):
    (folder / "task.py").write_text(HEAD + job.text)
    for name, content in job.files:
        (folder / name).write_text(content)


def train(folder, job):
    """Its metric before and after, by plain means of what members moved; and the first member's places of a round."""
    members = [make(folder, job, rank) for rank in range(MEMBERS)]
    weights = members[0].first_state().weights
    before, _ = members[0].evaluate(weights, range(MEMBERS))
    places = []
    for round in range(ROUNDS):
        legs = []
        for rank, member in enumerate(members):
            start = start_round(
                round, bytes(32), list(range(MEMBERS)), rank=rank, steps=STEPS, exchange_every=STEPS, mark_every=8
            )
            member.begin(start)
            legs.append(member.leg(weights, lambda *_: LegVerdict.GO_ON))
            member.accept()
        places.append(legs[0].places)
        weights = weights - sum(leg.difference for leg in legs) / MEMBERS
    after, _ = members[0].evaluate(weights, range(MEMBERS))
    return before, after, places, members[0].why_no_marks


def led_elsewhere(folder, job, round, places):
    """Why the last segment of a round does not lead where it led; empty when it does."""
    begin, end = places[-2:]
    start = start_round(round, bytes(32), list(range(MEMBERS)), rank=0, steps=STEPS, exchange_every=STEPS, mark_every=8)
    order = RedoSegment(
        of=0,
        round=round,
        attempt=0,
        start=begin.mark,
        shards=list(start.shards),
        round_steps=STEPS,
        steps=end.step - begin.step,
    )
    again = make(folder, job, 1).redo(order, begin.file, {})
    return "" if again.end is not None and again.end.name == end.mark.name else "done again, lead elsewhere"


@pytest.mark.slow
@pytest.mark.parametrize("job", [job for job in WRITTEN_JOBS if not job.refused], ids=lambda job: job.name)
def test_it_learns_as_in_a_plain_process(tmp_path, job):
    write(tmp_path, job)
    torch.manual_seed(0)
    before, after, places, no_marks = train(tmp_path, job)
    found = no_marks or led_elsewhere(tmp_path, job, 1, places[1])
    assert job.unchecked in found if job.unchecked else not found
    if not before:
        return  # it has nothing held out
    run = PlainRun(CheckedTask(tmp_path, "task.py"), BATCH, 1, StepOptions(**dict(job.train)))
    plain = run.train(MEMBERS * ROUNDS * STEPS * BATCH)["metrics"]
    sign = -1 if job.metric == "accuracy" else 1
    gained, plainly = (sign * (before[job.metric] - there[job.metric]) for there in (after, plain))
    assert gained >= SHARE_OF_PLAIN * plainly > 0, (before, after, plain)


REFUSED = [job for job in WRITTEN_JOBS if job.refused and not (job.name == "card" and torch.cuda.is_available())]


@pytest.mark.parametrize("job", REFUSED, ids=lambda job: job.name)
def test_it_is_refused_by_name(tmp_path, job):
    write(tmp_path, job)
    with pytest.raises(TaskMistake) as caught:
        train(tmp_path, job)
    assert job.refused in caught.value.cause
