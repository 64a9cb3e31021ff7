"""A bundle on its way to one member, among others that pass it on. Pure: times in seconds and chance are passed in.

The client gives pieces unasked; all others are asked of members that have them (`piece_picker`), the rarest first,
because a piece that few have is lost with them, and because then all have something to give (Cohen, "Incentives Build
Robustness in BitTorrent", 2003; Legout et al., "Rarest First and Choke Algorithms Are Enough", 2006). Nobody is choked:
all members work for the same job.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable

from axonp2p.blobs.manifest import Blob
from axonp2p.blobs.piece_picker import PiecePicker
from axonp2p.errors import PeerMisbehaved

Asks = list[tuple[int, list[int]]]
"""Of which rank to ask which pieces."""


class BlobSwarm(PiecePicker[list[int]]):
    """One member's view of a bundle that is passed on. One that was `gone` says anew what it has when it is back."""

    def __init__(self, blob: Blob, have: Iterable[int], chance: random.Random) -> None:
        self.have = set(have)
        """Pieces that are on our disk: others may ask for them."""
        super().__init__(set(range(blob.count)) - self.have)
        self._blob = blob
        self._holds: dict[int, set[int]] = {}
        """The pieces of each neighbour that we lacked."""
        self._holders = {number: chance.random() for number in self._missing}
        """How many have each, and a fraction: among equally rare ones any, so that members do not all ask for one."""

    @property
    def complete(self) -> bool:
        """Whether all is on our disk."""
        return len(self.have) == self._blob.count

    def has(self, rank: int, numbers: Iterable[int], now: float) -> Asks:
        """A neighbour has these pieces as well."""
        if rank in self.liars:
            return []
        self._join(rank)
        held = self._holds.setdefault(rank, set())
        new = self._missing.intersection(numbers) - held
        held |= new
        self._count(new, 1)
        return self.asks(now)

    def given(self, number: int, payload: bytes | memoryview) -> bool:
        """The client gave a piece; True when it is to be stored. Raises `PeerMisbehaved` for wrong bytes."""
        if not self._blob.fits(number, payload):
            raise PeerMisbehaved(f"piece {number} of the bundle with other bytes than its hash says")
        return self._take(number)

    def heard(self, rank: int, number: int, payload: bytes | memoryview, now: float) -> bool:
        """A neighbour sent a piece; True when it is to be stored. Then say `asks`. Raises `PeerMisbehaved`."""
        if rank in self.liars:
            return False  # asked for before it was named
        self._check_asked(rank, number)
        if payload and not self._blob.fits(number, payload):
            self._name(rank, f"piece {number} with other bytes than its hash says", now)
        if not payload and rank in self._holds and self._has(rank, number):
            self._holds[rank].discard(number)
            self._count([number], -1)
        new = bool(payload) and self._take(number)
        self._heard(rank, number, now, learn=bool(payload))
        return new

    def stored(self, number: int) -> None:
        """That piece is on our disk."""
        self.have.add(number)

    def _next(self, rank: int, most: int) -> list[int]:
        return heapq.nsmallest(most, self._wanted & self._holds[rank], key=self._holders.__getitem__)

    def _has(self, rank: int, number: int) -> bool:
        return number in self._holds[rank]

    def _ask_for(self, numbers: list[int]) -> list[int]:
        return numbers

    def _count(self, numbers: Iterable[int], more: int) -> None:
        for number in numbers:
            self._holders[number] += more

    def _drop(self, rank: int) -> None:
        self._count(self._holds.pop(rank, ()), -1)
        super()._drop(rank)
