"""Members through histories of chance: any pace, any line, owners of nothing, members that go, and one that joins."""

from __future__ import annotations

import random

import pytest

from axonp2p.tensors.coding import Coding
from axonp2p.training.messages import StateAdopted
from axonp2p.verification.claims import RoundDone
from tests.unit.training.member_swarm import MemberSwarm

pytestmark = pytest.mark.slow


class History:
    """Six rounds; the last rank listens until chance lets it take part."""

    def __init__(self, seed):
        self.chance = chance = random.Random(seed)
        self.joiner = chance.randint(2, 5)
        everyone = range(self.joiner + 1)
        coding = chance.choice([Coding(), Coding(bits=2), Coding(bits=8, density=0.05)])
        # Who is behind by more than two uncompressed exchanges cannot keep what the others send meanwhile.
        slowest, farthest = (0.5, 0.3) if coding == Coding() else (3.0, 4.0)
        self.swarm = MemberSwarm(
            self.joiner + 1,
            step_seconds={rank: chance.choice([0.3, 0.5, slowest]) for rank in everyone},
            latency={(one, other): chance.choice([0.01, 0.1, 0.3, farthest]) for one in everyone for other in everyone},
        )
        self.members = list(range(self.joiner))
        self.settings = {
            "gather": coding, "result": coding, "overlap": chance.random() < 0.5, "seconds": chance.choice([0.0, 6.0]),
            "patience": chance.choice([0.3, 3.0, 100.0]), "steps": chance.choice([1, 5, 8]),
            "exchange_every": chance.choice([1, 2, 8]),
        }  # fmt: skip
        self.left_out = 0

    def play(self):
        state = self.swarm.first
        for round in range(6):
            attempt = 0
            if self.chance.random() < 0.3 and len(self.members) > 2:
                self.begin(round, 0, state)
                self.swarm.run(self.swarm.now + self.chance.random() * 12)
                self.lose(self.chance.choice([rank for rank in self.members if rank != self.joiner]))
                attempt = 1
            self.begin(round, attempt, state)
            state = self.end()

    def begin(self, round, attempt, state):
        shares = [1, *(self.chance.choice([0, 1, 3]) for _ in self.members[1:])]
        self.swarm.start(round, state, self.members, attempt, listeners=self.listeners, shares=shares, **self.settings)

    def lose(self, rank):
        self.swarm.gone.add(rank)
        self.members.remove(rank)
        self.swarm.reports.clear()

    def end(self):
        self.swarm.run()
        done, adopted = self.swarm.take(RoundDone), self.swarm.take(StateAdopted)
        assert sorted(done) == sorted(self.members)
        (state,) = {report.state for report in done.values()}
        self.left_out += sum(len(report.left_out) for report in done.values())
        if self.listeners:
            assert adopted[self.joiner].state == state
            if self.chance.random() < 0.3:
                self.members.append(self.joiner)
        self.swarm.reports.clear()
        return state

    @property
    def listeners(self):
        return [] if self.joiner in self.members else [self.joiner]


@pytest.mark.parametrize("seeds", [range(25), range(25, 50)], ids=str)
def test_all_end_every_round_with_the_same_state(seeds):
    left_out = 0
    for seed in seeds:
        history = History(seed)
        history.play()
        assert not history.swarm.refused, seed
        left_out += history.left_out
    assert left_out > 20
