"""The facts that a driver hears of its peers, one after the other, so that one task alone moves the driver's queue on.

The inbox is the crew's `WorkListener`. A peer whose words break the protocol, or come faster than the driver can deal
with them, is heard no more: the last fact of it is that it has gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from axonp2p.errors import PeerMisbehaved, SettingsError
from axonp2p.jobs.messages import OwnersMessage
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.frame import Frame, split_frame

Word = TypeVar("Word")


@dataclass(frozen=True)
class PeerCame:
    """A peer is there, and nothing was said to it."""

    rank: int


@dataclass(frozen=True)
class WorkerSaid(Generic[Word]):
    """A word of a peer's worker, checked."""

    rank: int
    word: Word


@dataclass(frozen=True)
class OwnerSaid:
    """A peer's owner needs the machine, or needs it no longer."""

    rank: int
    message: OwnersMessage


@dataclass(frozen=True)
class PeerGone:
    """A peer is gone, or must go."""

    rank: int
    reason: str


Fact = PeerCame | WorkerSaid[Word] | OwnerSaid | PeerGone
OpenWord = Callable[[int, Frame], Awaitable[Word | None]]
"""The word in a frame of a peer; None: it needs no attention. Nothing more is read of the peer until it returns.

Raises `PeerMisbehaved`, or `SettingsError` of this disk."""


class FactInbox(Generic[Word]):
    """Facts in the order in which they came. Putting one in never waits."""

    def __init__(self, opened: OpenWord[Word], most_waiting: int) -> None:
        """`most_waiting`: words of one peer; one that says more breaks the protocol."""
        self._opened = opened
        self._most_waiting = most_waiting
        self._facts: asyncio.Queue[Fact[Word] | BaseException | None] = asyncio.Queue()
        self._waiting: Counter[int] = Counter()
        self._misbehaved: set[int] = set()
        """Ranks of which nothing more is heard."""

    def put(self, fact: Fact[Word] | BaseException | None) -> None:
        """A fact of this client; an error is raised by `next`, None wakes it."""
        self._facts.put_nowait(fact)

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return self._facts.empty()

    async def next(self, seconds: float) -> Fact[Word] | None:
        """The next one; None after so many seconds, or when it was woken. Raises an error that was put in."""
        fact = None
        if not self._facts.empty():  # which a wait of no seconds would leave there
            fact = self._facts.get_nowait()
        else:
            with contextlib.suppress(TimeoutError):
                fact = await asyncio.wait_for(self._facts.get(), max(0.0, seconds))
        if isinstance(fact, BaseException):
            raise fact
        if isinstance(fact, WorkerSaid):
            self._waiting[fact.rank] -= 1
        return fact

    # --- `WorkListener` ---

    async def heard(self, rank: int, payload: memoryview, *, signed: SignedFrame | None) -> None:
        """`WorkListener`."""
        if rank in self._misbehaved:
            return
        try:
            word = await self._opened(rank, split_frame(payload))
            if word is None:
                return
            if self._waiting[rank] >= self._most_waiting:
                raise PeerMisbehaved("it says more than can be dealt with")
            self._waiting[rank] += 1
            self.put(WorkerSaid(rank, word))
        except PeerMisbehaved as error:
            self._misbehaved.add(rank)
            self.put(PeerGone(rank, f"its worker broke the protocol: {error.message}"))
        except SettingsError as error:  # this disk's, not the peer's
            self.put(error)

    async def joined(self, rank: int, name: str) -> None:
        """`WorkListener`."""
        self.put(PeerCame(rank))

    async def lost(self, rank: int, reason: str) -> None:
        """`WorkListener`."""
        self.put(PeerGone(rank, reason))

    async def link_lost(self, rank: int, to: int, reason: str) -> None:
        """`WorkListener`. Workers of a queue do not talk to each other."""

    def line_measured(self, rank: int, upload: float, download: float) -> None:
        """`WorkListener`."""

    def owner_says(self, rank: int, message: OwnersMessage) -> None:
        """`WorkListener`."""
        self.put(OwnerSaid(rank, message))
