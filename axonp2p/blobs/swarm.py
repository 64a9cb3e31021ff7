"""A bundle on its way to one member: which piece to ask of whom. Pure: times in seconds and chance are passed in.

The client gives pieces unasked; all others are asked of members that have them, the rarest first, because a piece that
few have is lost with them, and because then all have something to give (Cohen, "Incentives Build Robustness in
BitTorrent", 2003; Legout et al., "Rarest First and Choke Algorithms Are Enough", 2006). Nobody is choked: all members
work for the same job.

    a few pieces are under way with each neighbour, more with faster ones (`piece_sender`)
    what is late is asked elsewhere as well; the piece that comes first is taken, once its hash fits
    who sent wrong bytes is named and never asked again
    at the end, who has nothing left to send takes over what a much slower one still has before it
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

from axonp2p.blobs.manifest import Blob
from axonp2p.blobs.messages import MOST_ASKED
from axonp2p.blobs.piece_sender import FIRST_UNDER_WAY, PieceSender
from axonp2p.errors import PeerMisbehaved

PATIENCE_S = 10.0

Asks = list[tuple[int, list[int]]]
"""Of which rank to ask which pieces."""


class BlobSwarm:
    """One member's view of a bundle that is passed on. After every call ask for what it gives back."""

    def __init__(self, blob: Blob, have: Iterable[int], chance: random.Random, *, patience: float = PATIENCE_S) -> None:
        self.have = set(have)
        """Pieces that are on our disk: others may ask for them."""
        self.liars: dict[int, str] = {}
        """Who sent wrong bytes, and what about them was wrong."""
        self._blob = blob
        self._chance = chance
        self._patience = patience
        self._missing = set(range(blob.count)) - self.have
        """Of which no good bytes have come."""
        self._wanted = set(self._missing)
        """Those of them that are on their way from nobody."""
        self._holds: dict[int, set[int]] = {}
        """What each neighbour has that we lack."""
        self._holders: Counter[int] = Counter()
        self._senders: dict[int, PieceSender] = {}
        self._stirred_at: float | None = None

    @property
    def complete(self) -> bool:
        """Whether all is on our disk."""
        return len(self.have) == self._blob.count

    def has(self, rank: int, numbers: Iterable[int], now: float) -> Asks:
        """A neighbour has these pieces as well."""
        if rank in self.liars:
            return []
        self._senders.setdefault(rank, PieceSender(self._patience))
        held = self._holds.setdefault(rank, set())
        new = (self._missing & set(numbers)) - held
        held |= new
        self._holders.update(new)
        return self._asks(now)

    def gone(self, rank: int, now: float) -> Asks:
        """A neighbour is out of reach; when it is back it says anew what it has."""
        self._drop(rank)
        return self._asks(now)

    def given(self, number: int, payload: bytes | memoryview) -> bool:
        """The client gave a piece; True when it is to be stored. Raises `PeerMisbehaved` for wrong bytes."""
        if not self._blob.fits(number, payload):
            raise PeerMisbehaved(f"piece {number} of the bundle with other bytes than its hash says")
        return self._take(number)

    def heard(self, rank: int, number: int, payload: bytes | memoryview, now: float) -> bool:
        """A neighbour sent a piece; True when it is to be stored. Then say `asks`. Raises `PeerMisbehaved`.

        After that error `deadline()` is now: what the one that is named should have sent is asked elsewhere by `due`.
        """
        if rank in self.liars:
            return False  # asked for before it was named
        sender = self._senders.get(rank)
        if sender is None or number not in sender.asked:
            raise PeerMisbehaved(f"rank {rank} sent piece {number}, for which it was not asked")
        if not payload:
            self._forget(rank, number)
        elif not self._blob.fits(number, payload):
            self._name(rank, f"piece {number} with other bytes than its hash says", now)
        lost = sender.heard(number, now, learn=bool(payload))
        self._wanted |= self._missing.intersection(lost if payload else [*lost, number])
        return self._take(number) if payload else False

    def stored(self, number: int) -> None:
        """That piece is on our disk."""
        self.have.add(number)

    def asks(self, now: float) -> Asks:
        """What to ask now."""
        return self._asks(now)

    def due(self, now: float) -> Asks:
        """Time has passed."""
        self._stirred_at = None
        for sender in self._senders.values():
            if sender.due(now, self._missing):
                self._wanted |= self._missing.intersection(sender.under_way)
        return self._asks(now)

    def deadline(self) -> float | None:
        """When to call `due` next, if nothing is heard before."""
        if not self._missing:
            return None
        times = [sender.deadline() for sender in self._senders.values()]
        return min((time for time in (*times, self._stirred_at) if time is not None), default=None)

    # --- whom to ask for what ---

    def _asks(self, now: float) -> Asks:
        """New asks for all that have room, the fastest first."""
        if not self._missing:
            return []
        awake = [rank for rank in self._holds if not self._senders[rank].resting]
        order = {rank: self._chance.random() for rank in awake}
        awake.sort(key=lambda rank: (self._senders[rank].silences, -(self._senders[rank].rate or 0.0), order[rank]))
        asks: Asks = []
        for rank in awake:
            sender = self._senders[rank]
            numbers = sender.to_try() or self._rarest(rank, min(sender.room, self._share(), MOST_ASKED))
            if not numbers and sender.room and not sender.under_way:
                numbers = self._to_take_over(rank)
            if numbers:
                self._wanted.difference_update(numbers)
                sender.ask(numbers, now)
                asks.append((rank, numbers))
        return asks

    def _share(self) -> int:
        """What one of them may be asked for at once, so that near the end all have something to do."""
        return max(FIRST_UNDER_WAY, len(self._wanted) // max(1, len(self._holds)))

    def _rarest(self, rank: int, most: int) -> list[int]:
        """Of what it has; among equally rare ones any, so that members do not all ask for the same."""
        if most <= 0:
            return []
        found = self._wanted & self._holds[rank]
        return heapq.nsmallest(most, found, key=lambda number: (self._holders[number], self._chance.random()))

    def _to_take_over(self, idle: int) -> list[int]:
        """A piece that is expected late, if `idle` has it and would send it in less than half of the time."""
        pace = self._senders[idle].pace
        if pace is None:
            return []  # nobody knows whether it would be sooner
        best: tuple[float, list[int]] = (2 * pace, [])
        for rank in self._holds:
            other = self._senders[rank]
            if rank == idle or other.resting or other.needs <= best[0]:
                continue
            late = [number for number in other.under_way if number in self._missing and number in self._holds[idle]]
            if once := [number for number in late if self._on_its_way(number) == 1]:
                best = (other.needs, once[-1:])
        return best[1]

    def _on_its_way(self, number: int) -> int:
        return sum(self._senders[rank].expects(number) for rank in self._holds)

    def _take(self, number: int) -> bool:
        if number not in self._missing:
            return False
        self._missing.discard(number)
        self._wanted.discard(number)
        del self._holders[number]
        for held in self._holds.values():
            held.discard(number)
        return True

    def _forget(self, rank: int, number: int) -> None:
        """It does not have that piece after all."""
        if number in self._holds.get(rank, ()):
            self._holds[rank].discard(number)
            self._holders[number] -= 1

    def _drop(self, rank: int) -> None:
        held = self._holds.pop(rank, None)
        if held is None:
            return
        self._holders.subtract(held)
        self._wanted |= self._missing.intersection(self._senders[rank].under_way)
        self._senders[rank].reset()

    def _name(self, rank: int, what: str, now: float) -> NoReturn:
        self.liars[rank] = what
        self._drop(rank)
        self._stirred_at = now
        raise PeerMisbehaved(f"rank {rank} sent {what}")
