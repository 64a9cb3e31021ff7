"""Which piece to ask of whom, while content comes in from several members at once. Pure; times in seconds.

    a few pieces are under way with each member, more with faster ones (`piece_sender`)
    what is late is asked elsewhere as well; the piece that comes first is taken, once its hash fits
    who sent wrong bytes is named and never asked again
    at the end, who has nothing left to send takes over what a much slower one still has before it (endgame)

Kinds of content differ in the order in which pieces are asked for, and in what an ask looks like.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, NoReturn, TypeVar

from axonp2p.blobs.piece_sender import FIRST_UNDER_WAY, PieceSender
from axonp2p.errors import PeerMisbehaved

PATIENCE_S = 10.0

Ask = TypeVar("Ask")


class PiecePicker(ABC, Generic[Ask]):
    """Some content on its way in. After every call ask for what it gives back."""

    most_senders: int | None = None
    """Asked at the same time."""

    def __init__(self, missing: set[int]) -> None:
        self.liars: dict[int, str] = {}
        """The members that sent wrong bytes, and what about these was wrong."""
        self._missing = missing
        """Of which no good bytes have come."""
        self._wanted = set(missing)
        """Those of them that are on their way from nobody."""
        self._senders: dict[int, PieceSender] = {}
        self._present: dict[int, PieceSender] = {}
        """Those that can be asked now."""
        self._stirred_at: float | None = None

    @abstractmethod
    def _next(self, rank: int, most: int) -> list[int]:
        """Of the wanted pieces that it has, the first ones in this content's order."""

    @abstractmethod
    def _has(self, rank: int, number: int) -> bool:
        """Whether that member has that piece."""

    @abstractmethod
    def _ask_for(self, numbers: list[int]) -> Ask:
        """The message that asks for these."""

    def asks(self, now: float) -> list[tuple[int, Ask]]:
        """The pieces to ask now of all that have room, the fastest first."""
        if not self._missing:
            return []
        awake = [(rank, sender) for rank, sender in self._present.items() if not sender.resting]
        awake.sort(key=lambda one: (one[1].silences, -(one[1].rate or 0.0)))
        awake = awake[: self.most_senders]
        asks = []
        for rank, sender in awake:
            numbers, room = sender.to_try(), sender.room
            if room and not numbers:
                share = max(FIRST_UNDER_WAY, len(self._wanted) // len(awake))  # near the end all have something to do
                numbers = self._next(rank, min(room, share))
                if not numbers and not sender.under_way:
                    numbers = self._to_take_over(rank, sender.pace)
            if numbers:
                self._wanted.difference_update(numbers)
                sender.ask(numbers, now)
                asks.append((rank, self._ask_for(numbers)))
        return asks

    def gone(self, rank: int, now: float) -> list[tuple[int, Ask]]:
        """A member is out of reach."""
        self._drop(rank)
        return self.asks(now)

    def due(self, now: float) -> list[tuple[int, Ask]]:
        """Time has passed."""
        self._stirred_at = None
        for sender in self._present.values():
            if sender.due(now, self._missing):
                self._want(sender.under_way)
        return self.asks(now)

    def deadline(self) -> float | None:
        """When to call `due` next, if nothing is heard before. Now, once one is named: others are to be asked."""
        times = [self._stirred_at, *(sender.deadline() for sender in self._present.values())]
        return min((time for time in times if time is not None), default=None) if self._missing else None

    # --- what kinds of content say ---

    def _join(self, rank: int) -> None:
        """This member has pieces."""
        self._present[rank] = self._senders.setdefault(rank, PieceSender(PATIENCE_S))

    def _drop(self, rank: int) -> None:
        if sender := self._present.pop(rank, None):
            owed = list(sender.under_way)
            sender.reset()
            self._want(owed)

    def _check_asked(self, rank: int, number: int) -> None:
        if rank not in self._senders or number not in self._senders[rank].asked:
            raise PeerMisbehaved(f"rank {rank} sent a piece that it was not asked for")

    def _take(self, number: int) -> bool:
        """Good bytes of it are here; False when they were before."""
        if number not in self._missing:
            return False
        self._missing.discard(number)
        self._wanted.discard(number)
        return True

    def _heard(self, rank: int, number: int, now: float, *, learn: bool) -> None:
        """An answer came. `learn`: its time tells of others' times."""
        sender = self._senders[rank]
        late = sender.silences
        self._want([*sender.heard(number, now, learn=learn), number])
        if late:  # it is back, and answers keep the order of the asks: what it owes follows
            self._wanted.difference_update(sender.under_way)

    def _name(self, rank: int, what: str, now: float) -> NoReturn:
        self.liars[rank] = what
        self._drop(rank)
        self._stirred_at = now
        raise PeerMisbehaved(f"rank {rank} sent {what}")

    def _want(self, numbers: Iterable[int]) -> None:
        """These do not come from whom they were asked of."""
        self._wanted.update(n for n in self._missing.intersection(numbers) if not self._on_its_way(n))

    def _on_its_way(self, number: int) -> int:
        """From how many."""
        return sum(sender.expects(number) for sender in self._present.values())

    def _to_take_over(self, rank: int, pace: float | None) -> list[int]:
        """The piece that is expected last of those that it has and would send in less than half of the time."""
        if pace is None:
            return []  # nobody knows whether it would be sooner
        slower = [one for one in self._present.values() if not one.resting and one.needs > 2 * pace]
        for other in sorted(slower, key=lambda one: one.needs, reverse=True):
            for number in reversed(other.under_way):
                if number in self._missing and self._has(rank, number) and self._on_its_way(number) == 1:
                    return [number]
        return []
