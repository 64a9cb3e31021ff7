"""The round machine in conversation: what it hears, and when, is up to the test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axonp2p.training.deadlines import Patience
from axonp2p.training.messages import Prepared, Progress, StartRound, TaskFailed
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Action,
    Event,
    GiveUp,
    MemberDropped,
    MemberLeftBehind,
    MemberReady,
    MistakeReported,
    ProgressHeard,
    RoundReported,
    Tell,
    Tick,
)
from axonp2p.training.rounds.last_round import AreEnough
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.spot_checks.scheduler import CheckSettings
from axonp2p.verification.claims import RoundDone
from tests.fakes import SIGNED

NAMES = {0: "otter", 1: "lynx", 2: "hare", 3: "crow"}
FIRST, SECOND, THIRD, OTHER = (letter.encode() * 32 for letter in "fsto")
STEPS = 10


class Conversation:
    """A round machine, and a clock that only the test moves."""

    def __init__(
        self,
        members: int = 3,
        *,
        rounds: int = 2,
        min_peers: int = 1,
        checks: CheckSettings | None = None,
        are_enough: AreEnough | None = None,
        patience: Patience | None = None,
        **plan: Any,
    ) -> None:
        self.now = 0.0
        names = {rank: NAMES[rank] for rank in range(members)}
        job = TrainPlan("digits-1", "task.py", 4, rounds, STEPS, batch=8, seed=1, **plan)
        self.rounds = Rounds(job, names, min_peers=min_peers, checks=checks, are_enough=are_enough, patience=patience)

    def begin(self) -> list[Action]:
        return self.rounds.begin(self.now)

    def report(self, rank: int, round: int, state: bytes, attempt: int = 0, **more: Any) -> RoundReported:
        """Of a member of an attempt with all who are members now, if nothing else is said."""
        more = {"members": len(self.rounds.members)} | more
        return RoundReported(rank, round_done(round, attempt, state, **more), signed=SIGNED)

    def all_report(self, round: int, state: bytes, attempt: int = 0) -> list[Action]:
        return self.hears(*(self.report(rank, round, state, attempt) for rank in list(self.rounds.members)))

    def hears(self, *events: Event, after: float = 1.0) -> list[Action]:
        """What was said in reply to the last of these events."""
        said: list[Action] = []
        for event in events:
            self.now += after
            said = self.rounds.heard(event, self.now)
        return said

    def waits(self) -> list[Action]:
        """Nothing happens until the deadline."""
        deadline = self.rounds.next_deadline()
        assert deadline is not None
        self.now = max(self.now, deadline)
        return self.rounds.heard(Tick(), self.now)

    def all_ready(self) -> list[Action]:
        self.begin()
        return self.hears(*(ready(rank) for rank in self.rounds.members))


def ready(rank: int, state: bytes = FIRST, *, values: int = 100) -> MemberReady:
    return MemberReady(rank, Prepared(state=state, parameters=values, values=values), bytes(32))


def round_done(
    round: int,
    attempt: int,
    state: bytes,
    *,
    members: int = 3,
    slices: list[bytes] | None = None,
    left_out: Sequence[int] = (),
    kept_back: int = 0,
    exchanges: int = 1,
    seconds: float = 1.0,
) -> RoundDone:
    """What a member reports of a round; of slices all say the same, if nothing else is said."""
    return RoundDone(
        round=round, attempt=attempt, state=state, loss=0.5, samples=80, flops=1000, train_seconds=seconds,
        exchange_seconds=0.1, exchanges=exchanges, left_out=list(left_out), kept_back=kept_back,
        slices=slices or [b"m" * 32] * members, sent_bytes=10, received_bytes=10, metrics={"accuracy": 0.9},
        test_samples=5,
    )  # fmt: skip


def finished_steps(rank: int, round: int = 0, attempt: int = 0, step: int = STEPS) -> ProgressHeard:
    return ProgressHeard(rank, Progress(round=round, attempt=attempt, step=step, loss=0.5, samples=8 * step))


def mistake(rank: int) -> MistakeReported:
    return MistakeReported(rank, TaskFailed(doing="loss()", traceback="Traceback ...\nKeyError: 'label'"))


def started(said: list[Action]) -> dict[int, StartRound]:
    return {
        action.rank: action.message
        for action in said
        if isinstance(action, Tell) and isinstance(action.message, StartRound)
    }


def left_behind(said: list[Action]) -> list[int]:
    return [action.rank for action in said if isinstance(action, MemberLeftBehind)]


def only(said: list[Action], *kinds: type[Any]) -> list[Any]:
    return [action for action in said if isinstance(action, kinds)]


def dropped(said: list[Action]) -> list[int]:
    return [action.rank for action in said if isinstance(action, MemberDropped)]


def error_in(said: list[Action]) -> Any:
    assert isinstance(said[-1], GiveUp), said
    return said[-1].error
