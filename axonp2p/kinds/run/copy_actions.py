"""The state that `copies` keeps of a job, and its orders. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from axonp2p.kinds.run.messages import Restart


@dataclass(frozen=True)
class CopiesPlan:
    """Which copies there are, and which of them are done."""

    copies: int
    restart: Restart = "on-failure"
    attempts: int = 3
    together: bool = False
    finished: frozenset[int] = field(default_factory=frozenset)
    """Indices that have their result."""

    @property
    def most_ends(self) -> int:
        """How often a copy may end by itself."""
        return 1 if self.restart == "never" else self.attempts


StartCause = Literal["first", "again", "second"]
"""The index was never begun in this life of the job; it was; or it runs elsewhere too, and stands still there."""


@dataclass(frozen=True)
class StartCopy:
    """Begin this index there; the peer has no other copy."""

    rank: int
    index: int
    attempt: int
    cause: StartCause


@dataclass(frozen=True)
class StopCopy:
    """End this copy: its result is not needed. The peer gets another one only when it said that this one is over."""

    rank: int
    index: int
    attempt: int


@dataclass(frozen=True)
class KeepResult:
    """This is the result of the index: bring it to the disk, with its files where it is `good`, then call `kept`.

    When the files cannot be had, the peer is lost.
    """

    rank: int
    index: int
    attempt: int
    good: bool


CopyAction = StartCopy | StopCopy | KeepResult


class CopyState(Enum):
    """Where one copy at one peer is."""

    RUNNING = "running"
    ENDED_WELL = "ended well"
    """Its files lie at the peer."""
    SENDING = "sending"
    """They are on their way home."""
    STOPPED = "stopped"
    """It was told to end, and has not said that it has."""


@dataclass
class LiveCopy:
    """One copy that takes up a peer."""

    rank: int
    index: int
    attempt: int
    began: float
    state: CopyState = CopyState.RUNNING
    sends_since: float = math.inf
    """When its files were asked for."""
    taken_over: bool = False
    """Whether it was begun in an earlier life of the job, nobody knows when."""
