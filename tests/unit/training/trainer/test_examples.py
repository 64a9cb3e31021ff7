"""What the digits example promises, with four members in this process and their real exchange."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.jobs.spec import read_spec
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.slice_exchange import SliceExchange
from axonp2p.training.exchange.terms import terms_of
from axonp2p.training.messages import Prepare
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.outer_optimizer import outer_step
from axonp2p.training.trainer.plain_run import PlainRun
from axonp2p.training.trainer.task import CheckedTask
from tests.unit.training.member_swarm import start_round

pytestmark = pytest.mark.slow

DIGITS = Path(__file__).parents[4] / "examples" / "digits"
MEMBERS = [0, 1, 2, 3]


def exchanged(start, legs, layout, batch):
    """The mean that all members come to."""
    meeting = {
        rank: SliceExchange(terms_of(start, rank, 0, layout, batch), leg.difference, leg.samples, ArrivalTimes(), 0.0)
        for rank, leg in legs.items()
    }
    waiting = [(rank, out) for rank, exchange in meeting.items() for out in exchange.outgoing()]
    while waiting:
        rank, out = waiting.pop()
        waiting += [(out.to, said) for said in meeting[out.to].receive(rank, out.part, out.payload, 0.0)]
    return meeting[0].mean()


@pytest.mark.parametrize("seed", [0, 1])
def test_four_members_read_digits_as_well_as_one_process(seed):
    spec = read_spec(DIGITS)
    plan, task = spec.train, CheckedTask(DIGITS, spec.task)
    assert spec.need.peers == len(MEMBERS)
    trainers = {}
    for rank in MEMBERS:
        order = Prepare(rank=rank, job="digits", task=spec.task, shards=4, batch=plan.batch, seed=seed)
        trainers[rank] = LocalTrainer(task, order)
    state = trainers[0].first_state()
    for round in range(plan.rounds):
        legs = {}
        for rank, trainer in trainers.items():
            start = start_round(
                round, state.name, MEMBERS, rank=rank, steps=plan.steps, exchange_every=plan.steps, part=4096
            )
            trainer.begin(start)
            legs[rank] = trainer.leg(state.weights, lambda *_: LegVerdict.GO_ON)
        state = outer_step(state, exchanged(start, legs, state.layout, plan.batch), 0.7, 0.9)
    metrics, samples = trainers[0].evaluate(state.weights, MEMBERS)
    assert samples == 360
    assert metrics["accuracy"] >= 0.95
    alone = PlainRun(task, plan.batch, seed).train(plan.rounds * plan.steps * plan.batch * len(MEMBERS))
    assert abs(metrics["accuracy"] - alone["accuracy"]) <= 0.02
