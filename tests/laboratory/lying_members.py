"""Jobs of some honest members and as many liars as the rule bears, which know everything and lie together.

The client's own mind (`Rounds`) is real; members are what they say. An honest
member's state follows from the state before and from what each owner handed to it, so that a round is wrong when its
state is one that no honest member came to, or an honest one in it stands elsewhere. No tensors: what values come to
under a rule is `tests/unit/training/robust`'s.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from axonp2p.jobs.aggregation import AGGREGATIONS, Aggregation, may_lie, rule_for
from axonp2p.training.messages import AdoptState, Prepare, Prepared, StartRound
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Action,
    GiveUp,
    LinkBroken,
    MemberDropped,
    MemberLeftBehind,
    MemberReady,
    RoundAccepted,
    RoundBegunAnew,
    RoundReported,
    StateAdoptedBy,
    Tell,
    Tick,
    Trained,
)
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.rounds.phases import AT_REST
from axonp2p.verification.claims import RoundDone
from tests.fakes import SIGNED

ROUNDS = 5
VALUES = 100_000
MOST_STEPS = 5000
FIRST = hashlib.sha256(b"first").digest()


@dataclass
class Outcome:
    """What came of one job."""

    seed: int
    aggregation: Aggregation
    members: int
    liars: int
    accepted: int = 0
    redone: int = 0
    left_behind: int = 0
    """Honest members that the others went on without, for some rounds."""
    liars_dropped: int = 0
    given_up: str = ""
    wrong: list[str] = field(default_factory=list)


class LyingJob:
    """One job, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        name = AGGREGATIONS[seed % len(AGGREGATIONS)]
        members = self.chance.randint(3, 20)
        rule = rule_for(name, None, members)
        if name != "mean" and self.chance.random() < 0.5:
            most = max(few for few in range(members) if rule_for(name, few, members).least_members <= members)
            rule = rule_for(name, self.chance.randint(0, most), members)
        self.liars = set(self.chance.sample(range(members), self.chance.randint(1, max(1, may_lie(rule, members)))))
        self.outcome = Outcome(seed, name, members, len(self.liars))
        hostile = None if name == "mean" else rule.hostile
        options = ExchangeOptions(aggregation=name, hostile=hostile)
        plan = TrainPlan("job-1", "task.py", 64, ROUNDS, 8, batch=8, seed=1, options=options)
        names = {rank: f"peer{rank}" for rank in range(members)}
        self.rounds = Rounds(plan, names)
        self.now = 0.0
        self.state = FIRST
        self.members: list[int] = []
        self._events: list[Callable[[], list[Action]]] = []
        self._held: dict[int, bytes] = dict.fromkeys(names, FIRST)
        self._true: dict[int, bytes] = {}
        """Where each member came to that was told what an honest one is told, in the present attempt."""
        self._following: set[int] = set()
        self._late: dict[int, set[int]] = {}
        """By owner, whose values it says came too late, in the present attempt."""
        self._habits = {rank: self.chance.choice(HABITS) for rank in sorted(self.liars)}
        self._together = self.chance.choice([None, *HABITS])
        self._victim = self.chance.choice([rank for rank in names if rank not in self.liars])

    def run(self) -> Outcome:
        """Until the job is over."""
        self._carry_out(self.rounds.begin(self.now))
        for _ in range(MOST_STEPS):
            if self.rounds.phase in AT_REST:
                return self.outcome
            if not self._events:
                deadline = self.rounds.next_deadline()
                assert deadline is not None
                self.now = max(self.now, deadline)
                self._carry_out(self.rounds.heard(Tick(), self.now))
                continue
            at = self.chance.randrange(len(self._events))
            self._carry_out(self._events.pop(at)())
        self.outcome.wrong.append("it never ends")
        return self.outcome

    def _later(self, event: object) -> None:
        def happens() -> list[Action]:
            self.now += 0.01
            return self.rounds.heard(event, self.now)  # type: ignore[arg-type]

        self._events.append(happens)

    def _carry_out(self, actions: list[Action]) -> None:
        orders: dict[int, StartRound] = {}
        for action in actions:
            match action:
                case Tell(rank, Prepare()):
                    self._later(MemberReady(rank, Prepared(state=FIRST, parameters=VALUES, values=VALUES), bytes(32)))
                case Tell(rank, AdoptState(state=state)):
                    self._held[rank] = state
                    self._following.add(rank)
                    self._later(StateAdoptedBy(rank, state))
                case Tell(rank, StartRound() as order):
                    orders[rank] = order
                case RoundAccepted(reports=reports, state=state):
                    self._accepted(set(reports), state)
                case RoundBegunAnew():
                    self.outcome.redone += 1
                case MemberLeftBehind(rank):
                    self.outcome.left_behind += rank not in self.liars
                case MemberDropped(rank, reason):
                    self.outcome.liars_dropped += rank in self.liars
                    if rank not in self.liars:
                        self.outcome.wrong.append(f"honest member {rank} was dropped: {reason}")
                case Trained(members=members):
                    self.members = members
                case GiveUp(error=error):
                    self.outcome.given_up = f"{error.message}: {error.cause}"
        if orders:
            self._events.clear()  # they would speak of the past
            self._attempt(orders)

    def _accepted(self, reported: set[int], state: bytes) -> None:
        self.outcome.accepted += 1
        honest = reported - self.liars
        if state not in {self._true[rank] for rank in honest}:
            self.outcome.wrong.append("a state was accepted that no honest member came to")
        if any(self._true[rank] != state for rank in honest):
            self.outcome.wrong.append("an honest member of a round that counts stands elsewhere")
        self.state = state
        for rank in self._following - reported:
            self._later(StateAdoptedBy(rank, state))
        self._following -= reported

    # --- a round ---

    def _attempt(self, orders: dict[int, StartRound]) -> None:
        order = next(order for rank, order in orders.items() if rank in order.members)
        owners = [rank for rank, share in zip(order.members, order.shares, strict=True) if share]
        key = f"{order.round}/{order.attempt}".encode()
        # An owner that lies tells some of the others something else; to a part of them all liars tell the same.
        odd = {owner: self._told_otherwise(owner, order.members) for owner in owners if owner in self.liars}
        # An owner that says so closes its slice without the honest; whom it concerns hears it in the results.
        self._late = {owner: self._told_late(owner, order.members) for owner in owners if owner in self.liars}
        share = {
            rank: VALUES * part // sum(order.shares) for rank, part in zip(order.members, order.shares, strict=True)
        }
        applied: dict[int, list[bytes]] = {}
        for rank in order.members:
            applied[rank] = [
                _hash(key, b"%d" % owner, b"odd" if rank in odd.get(owner, ()) else b"") for owner in owners
            ]
            self._true[rank] = _hash(order.state, *applied[rank])
        empty = _hash(b"empty")
        for rank in orders:
            if rank not in order.members:
                if rank not in self._following:
                    self._following.add(rank)
                continue
            slices = dict(zip(owners, applied[rank], strict=True))
            said = {member: slices.get(member, empty) for member in order.members}
            state = self._true[rank]
            if rank in self.liars:
                lied = self._lie(rank, said, state, order)
                if lied is None:
                    continue
                said, state = lied
            report = _report(order, state, list(said.values()))
            kept_back = sum(share[owner] for owner, late in self._late.items() if rank in late)
            left_out = sorted(self._late.get(rank, ()))
            report = msgspec.structs.replace(report, kept_back=kept_back, left_out=left_out)
            self._later(RoundReported(rank, report, signed=SIGNED))

    def _told_otherwise(self, owner: int, members: list[int]) -> set[int]:
        if self._habit(owner) not in ("equivocate", "all"):
            return set()
        others = [rank for rank in members if rank not in self.liars]
        return set(self.chance.sample(others, min(len(others), self.chance.choice([1, 1, 2, 3]))))

    def _told_late(self, owner: int, members: list[int]) -> set[int]:
        if self._habit(owner) not in ("too late", "all"):
            return set()
        honest = [rank for rank in members if rank not in self.liars]
        return {self._victim} if self._victim in honest else set(honest[:1])

    def _habit(self, rank: int) -> str:
        return self._together or self._habits[rank]

    def _lie(
        self, rank: int, said: dict[int, bytes], state: bytes, order: StartRound
    ) -> tuple[dict[int, bytes], bytes] | None:
        """What a liar reports instead; None: nothing."""
        honest = [member for member in said if member not in self.liars]
        other = _hash(b"other", order.state)
        match self._habit(rank):
            case "one owner":  # all the same one
                target = self._victim if self._victim in said else honest[0]
                return said | {target: other}, other
            case "each another owner":
                target = honest[(rank + order.attempt) % len(honest)]
                return said | {target: other}, _hash(other, b"%d" % rank)
            case "all owners":
                return dict.fromkeys(said, other), other
            case "few owners":
                targets = self.chance.sample(honest, min(len(honest), 2))
                return said | dict.fromkeys(targets, other), other
            case "state":
                return said, other
            case "own slice":
                return said | {rank: other}, other
            case "silent" if self.chance.random() < 0.3:
                return None
            case "links":
                for target in self.chance.sample(honest, self.chance.randint(1, len(honest))):
                    self._later(LinkBroken(rank, target, "no route"))
            case "one link":
                target = honest[rank % len(honest)]
                self._later(LinkBroken(rank, target, "no route"))
            case "all":
                self._habits[rank] = habit = self.chance.choice([one for one in HABITS if one != "all"])
                together, self._together = self._together, None
                try:
                    return self._lie(rank, said, state, order)
                finally:
                    self._together = together
                    self._habits[rank] = "all" if habit else habit
        return said, state


HABITS = (
    "honest until the end",
    "one owner",
    "each another owner",
    "all owners",
    "few owners",
    "state",
    "own slice",
    "equivocate",
    "silent",
    "links",
    "one link",
    "too late",
    "all",
)


def _report(order: StartRound, state: bytes, slices: list[bytes]) -> RoundDone:
    return RoundDone(
        round=order.round, attempt=order.attempt, state=state, loss=0.5, samples=64, flops=1000, train_seconds=1.0,
        exchange_seconds=0.1, exchanges=1, left_out=[], kept_back=0, slices=slices, sent_bytes=10, received_bytes=10,
        metrics={}, test_samples=0,
    )  # fmt: skip


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"|".join(parts)).digest()


def play(seed: int) -> Outcome:
    """One job."""
    return LyingJob(seed).run()
