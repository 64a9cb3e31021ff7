"""The members behind one face, as a coordinator works with them, and the progress that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from axonp2p.training.round_messages import MemberReady, OwnersWord, ProgressHeard, RoundAccepted, Told


class Crew(Protocol):
    """How the members are reached; the client's leases behind it."""

    def tell(self, rank: int, frame: bytes) -> None:
        """Post a frame for a member's worker, in order, without waiting. A member that has gone hears nothing."""
        ...

    async def send(self, rank: int, frame: bytes) -> None:
        """The same for many large ones: returns when it is sent. Raises `Unreachable`."""
        ...

    def limit_of(self, rank: int) -> str:
        """The limit of the sandbox that a member's worker went over, if that ended it; else empty."""
        ...

    async def set_members(self, ranks: Sequence[int]) -> None:
        """Tell every member's daemon that these are the members, and wait until those that live know."""
        ...


@dataclass(frozen=True)
class RoundBegun:
    """The members were told to train."""

    round: int
    attempt: int


Sight = MemberReady | RoundBegun | ProgressHeard | RoundAccepted | OwnersWord | Told
"""The facts that a coordinator shows while it works."""


@dataclass(frozen=True)
class TrainingResult:
    """Where a job stands: how many rounds are accepted, the state after the last of them, and who holds it."""

    round: int
    state: bytes | None
    """None when no round was accepted here."""
    members: list[int]
    trained: bool = False
    """Whether no other round follows."""
    left_because: str = ""
    """Why it ended before the last round, when owners took too many machines back."""
