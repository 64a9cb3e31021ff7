"""Members of one job in virtual time: the test is their links, their trainers and their coordinator."""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import NamedTuple

import torch

from axonp2p.tensors.coding import EXACT
from axonp2p.tensors.layout import Layout
from axonp2p.training.messages import Prepare, Progress, StateAdopted
from axonp2p.training.trainer.outer_optimizer import first_state
from axonp2p.training.trainer.trainer_orders import (
    Abandon,
    Accept,
    EndLegEarly,
    Evaluate,
    Evaluated,
    LegDone,
    NextLeg,
    RollBack,
    Stepped,
    TrainRound,
    exchanges_of,
    key_of,
)
from axonp2p.training.worker.member import WorkerMember
from axonp2p.training.worker.member_actions import DropQueued, NotTaken, SayToCoordinator, SayToMember
from axonp2p.verification.claims import RoundDone
from tests.laboratory.exchange_settings import start_of

LAYOUT = Layout(parameters=4000, float_buffers=2, integer_buffers=1, lengths=(4000, 2, 1))
BATCH = 4


class NextStep(NamedTuple):
    """A step ends, of a leg that may have been abandoned since."""

    leg: int


class TinyTrainer:
    """Pulls a vector towards a target of its own, with momentum that it remembers from step to step."""

    def __init__(self, rank, step_seconds):
        self.target = torch.randn(LAYOUT.values, generator=torch.Generator().manual_seed(rank + 1))
        self.step_seconds = step_seconds
        self.momentum = self.remembered = torch.zeros(LAYOUT.values)
        self.given = []
        self.stopped_at = 0.0
        self.leg = 0
        self.hurried = None

    def give(self, work, now):
        """What it says, or what is to be given to `step`, and how many seconds later."""
        self.given.append(work)
        if isinstance(work, Accept):
            self.remembered = self.momentum
        elif isinstance(work, RollBack):
            self.momentum = self.remembered
        elif isinstance(work, TrainRound):
            self.start, self.exchange, self.steps = work.start, 0, 0
            return self._begin(work.weights, now, 0.0)
        elif isinstance(work, NextLeg):
            return self._begin(work.weights, now, now - self.stopped_at)
        elif isinstance(work, EndLegEarly):
            self.hurried = work
        elif isinstance(work, Evaluate):
            metrics = {"loss": float(work.weights.square().mean())}
            return [(self.step_seconds, Evaluated(work.key, metrics, 10, now - self.stopped_at))]
        else:
            assert isinstance(work, Abandon)
            self.leg += 1
        return []

    def step(self, step, now):
        """A step has ended."""
        if step.leg != self.leg:
            return []
        start = self.start
        noise = torch.randn(LAYOUT.values, generator=torch.Generator().manual_seed(start.round * 1000 + self.steps))
        self.momentum = 0.5 * self.momentum + (self.end - self.target) + 0.1 * noise
        self.end -= 0.05 * self.momentum
        self.end[LAYOUT.parameters + LAYOUT.float_buffers :] += self.momentum[-1] * 0.05 + 1
        self.steps += 1
        taken = self.steps - self.before
        most = min(start.settings.exchange_every, start.steps - self.exchange * start.settings.exchange_every)
        seconds = now - self.begun
        late = start.seconds and seconds >= start.seconds / exchanges_of(start)
        hurried = self.hurried == EndLegEarly(key_of(start), self.exchange)
        if taken < most and not late and not hurried:
            return [(self.step_seconds, step)]
        done = LegDone(
            key_of(start), self.exchange, self.weights - self.end, taken, taken * BATCH, 1.0, taken * 100, seconds,
            self.waited,
        )  # fmt: skip
        self.exchange += 1
        self.stopped_at = now
        return [(0.0, Stepped(key_of(start), self.steps, 1.0, self.steps * BATCH)), (0.0, done)]

    def _begin(self, weights, now, waited):
        self.leg += 1
        self.weights, self.end = weights, weights.clone()
        self.before, self.begun, self.waited = self.steps, now, waited
        return [(self.step_seconds, NextStep(self.leg))]


class MemberSwarm:
    """`step_seconds` may be given for each rank, as may `latency`, in seconds, for each pair of sender and receiver."""

    def __init__(self, count_, *, step_seconds=None, latency=None, **prepare):
        self.now = 0.0
        self.reports = []
        self.refused = []
        self.gone = set()
        self.cut = set()
        self.told = []
        self._latency = latency or {}
        self._events = []
        self._number = count()
        first = first_state(torch.randn(LAYOUT.values, generator=torch.Generator().manual_seed(0)).round(), LAYOUT)
        self.first = first.name
        self.members = {}
        self.trainers = {}
        for rank in range(count_):
            order = Prepare(rank=rank, job="job", task="task.py", shards=8, batch=BATCH, seed=1, **prepare)
            self.members[rank] = WorkerMember(order, first, b"")
            self.trainers[rank] = TinyTrainer(rank, (step_seconds or {}).get(rank, 1.0))

    def start(self, round, state, members, attempt=0, listeners=(), ranks=None, **settings):
        for rank in [*members, *listeners] if ranks is None else ranks:
            self.order(rank, start_round(round, state, members, attempt, listeners, rank, **settings))

    def order(self, rank, order):
        if rank not in self.gone:
            self._carry_out(rank, self.members[rank].ordered(order, self.now))

    def run(self, until=math.inf):
        """Until nothing more happens, or until then."""
        while self._events and self._events[0][0] <= until:
            self.now, _, rank, event = heapq.heappop(self._events)
            if rank in self.gone:
                continue
            member = self.members[rank]
            if event is not None:
                self._carry_out(rank, event(member))
            elif (member.deadline() or math.inf) <= self.now:
                self._carry_out(rank, member.due(self.now))
        if until < math.inf:
            self.now = until

    def take(self, kind):
        """Messages of this kind to the coordinator, by rank; all others but progress are still there afterwards."""
        found = {}
        for report in [report for report in self.reports if isinstance(report[1], kind)]:
            self.reports.remove(report)
            found[report[0]] = report[1]
        return found

    def finish(self, members):
        """Run until nothing more happens: all these members report one state. Gives it."""
        self.run()
        done = self.take(RoundDone)
        assert sorted(done) == sorted(members)
        (state,) = {message.state for message in done.values()}
        assert len({tuple(message.slices) for message in done.values()}) == 1
        self.done = done
        self.adopted = self.take(StateAdopted)
        self.take(Progress)
        assert not self.reports
        return state

    def _carry_out(self, rank, actions):
        for action in actions:
            if isinstance(action, SayToCoordinator):
                self.reports.append((rank, action.message, bytes(action.payload)))
            elif isinstance(action, SayToMember):
                self._deliver(rank, action)
            elif isinstance(action, NotTaken):
                self.refused.append((rank, action.sender, action.error.message))
            elif not isinstance(action, DropQueued):
                self._train(rank, self.trainers[rank].give(action, self.now))
        member = self.members[rank]
        if member.talkative:
            self._later(self.now, rank, lambda member: member.more(self.now))
        if (deadline := member.deadline()) is not None:
            self._later(max(self.now, deadline), rank, None)

    def _train(self, rank, outcomes):
        for seconds, done in outcomes:
            if isinstance(done, NextStep):
                self._later(self.now + seconds, rank, lambda _, done=done: self._step(rank, done))
            else:
                self._later(self.now + seconds, rank, lambda member, done=done: member.trained(done, self.now))

    def _step(self, rank, step):
        self._train(rank, self.trainers[rank].step(step, self.now))
        return []

    def _deliver(self, sender, action):
        self.told.append((sender, action.rank, action.message))
        if (sender, action.rank) not in self.cut:
            payload = bytes(action.payload)
            self._later(
                self.now + self._latency.get((sender, action.rank), 0.01),
                action.rank,
                lambda member: member.heard(sender, action.message, payload, self.now),
            )

    def _later(self, time, rank, event):
        heapq.heappush(self._events, (time, next(self._number), rank, event))


def start_round(round, state, members, attempt=0, listeners=(), rank=None, **settings):
    usual = {
        "steps": 6, "exchange_every": 2, "seconds": 0.0, "overlap": False, "shares": [1] * len(members), "part": 1024,
        "gather": EXACT, "result": EXACT, "patience": 100.0, "outer_learning_rate": 0.7, "outer_momentum": 0.9,
    }  # fmt: skip
    return start_of(
        round=round, attempt=attempt, state=state, members=list(members), listeners=list(listeners),
        shards=[] if rank in listeners else [rank or 0], **usual | settings,
    )  # fmt: skip
