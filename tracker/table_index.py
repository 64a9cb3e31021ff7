"""The table in memory (pure): "n peers that meet this need" from all living rows, as a random sample.

Peers whose offers differ in nothing that a need can ask for share a class, and a need is compared once with each
class: a swarm of ten thousand is a few dozen classes. Each row goes through three ages, driven by one heap of times:

    alive      may be found and reserved
    expired    (or withdrawn) found no more, but its number is remembered
    forgotten  when every older row that its peer may have signed has expired as well, so that none comes back
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from axonp2p.identity.peer_id import PeerId
from axonp2p.peers.capability import Capability, Need, why_not
from axonp2p.table.records import LONGEST_LIFE_S, Row
from axonp2p.table.slots import supersedes
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed

REMEMBERED_S = LONGEST_LIFE_S + 2 * CLOCK_TOLERANCE_S
"""How long a row's number is remembered after it came, in seconds."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row as it was signed, and no more of it: there may be very many."""

    signed: Signed[Row]
    sequence: int
    forget_at: float


@dataclass(frozen=True)
class Answer:
    """What was found: rows in random order, how many fit and how many live."""

    rows: list[Signed[Row]]
    fitting: int
    alive: int


@dataclass
class _Class:
    name: tuple[bytes, bool]
    offer: Capability
    reachable: bool
    """A peer learns its address from its first announce and tells it with the second."""
    peers: dict[PeerId, None] = field(default_factory=dict)


class TableIndex:
    """Rows by peer. Every method takes the time, which never goes back by much."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._entries: dict[PeerId, _Entry] = {}
        self._classes: dict[tuple[bytes, bool], _Class] = {}
        self._class_of: dict[PeerId, _Class] = {}
        self._times: list[tuple[float, PeerId, int]] = []

    def __len__(self) -> int:
        """All rows that are remembered."""
        return len(self._entries)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._entries

    def sequence_of(self, peer: PeerId) -> int | None:
        """The number of the row that is remembered."""
        entry = self._entries.get(peer)
        return None if entry is None else entry.sequence

    def signed_of(self, peer: PeerId) -> Signed[Row] | None:
        """The row that is remembered, as its peer signed it; also a withdrawn or expired one."""
        entry = self._entries.get(peer)
        return None if entry is None else entry.signed

    def rows(self) -> Iterator[tuple[PeerId, int]]:
        """Peer and number of every row that is remembered. The index must not change meanwhile."""
        return ((peer, entry.sequence) for peer, entry in self._entries.items())

    def mark_silent(self, peer: PeerId, sequence: int) -> bool:
        """The row with this number is not found any more, until a newer one comes; returns whether it was known."""
        entry = self._entries.get(peer)
        if entry is None or entry.sequence != sequence:
            return False
        self._bury(peer)
        return True

    def put(self, signed: Signed[Row], row: Row, offer: Capability | None, *, forget_at: float, now: float) -> None:
        """Remember a row, whose capability is `offer` (None: withdrawn); one not newer than the known is ignored."""
        known = self._entries.get(row.peer)
        if known is not None and not supersedes(row.sequence, signed.payload, known.sequence, known.signed.payload):
            return
        self._bury(row.peer)
        self._entries[row.peer] = _Entry(signed, row.sequence, forget_at)
        if offer is not None and row.expires > now:
            self._join_class(row.peer, offer, bool(row.addresses))
            self._look_again(row.expires, row.peer, row.sequence)
        else:
            self._look_again(forget_at, row.peer, row.sequence)

    def advance(self, now: float) -> None:
        """Let rows expire and be forgotten."""
        while self._times and self._times[0][0] <= now:
            _, peer, sequence = heapq.heappop(self._times)
            if not self._is_of_today(peer, sequence):
                continue  # a newer row has its own times
            entry = self._entries[peer]
            self._bury(peer)
            if entry.forget_at <= now:
                del self._entries[peer]
            else:
                self._look_again(entry.forget_at, peer, sequence)

    def alive(self, now: float) -> int:
        """How many peers have a row that is valid and not withdrawn."""
        self.advance(now)
        return len(self._class_of)

    def offer_of(self, peer: PeerId, now: float) -> Capability | None:
        """What a living peer offers, as far as a need can ask for it."""
        self.advance(now)
        members = self._class_of.get(peer)
        return None if members is None else members.offer

    def find(self, need: Need, count: int, now: float, near: bytes = b"") -> Answer:
        """At most `count` rows whose peers meet `need` and can be reached, each as likely as any other."""
        self.advance(now)
        classes = [each for each in self._classes.values() if each.reachable and not why_not(each.offer, need)]
        fitting = [peer for each in classes for peer in each.peers]
        chosen = self._chance.sample(fitting, min(count, len(fitting)))
        return Answer([self._entries[peer].signed for peer in chosen], len(fitting), len(self._class_of))

    def _look_again(self, when: float, peer: PeerId, sequence: int) -> None:
        heapq.heappush(self._times, (when, peer, sequence))
        if len(self._times) > 2 * len(self._entries) + 64:
            # Times of rows that were replaced pile up when somebody announces without pause.
            self._times = [time for time in self._times if self._is_of_today(time[1], time[2])]
            heapq.heapify(self._times)

    def _is_of_today(self, peer: PeerId, sequence: int) -> bool:
        entry = self._entries.get(peer)
        return entry is not None and entry.sequence == sequence

    def _join_class(self, peer: PeerId, offer: Capability, reachable: bool) -> None:
        # Sorted, so that two peers that list the same packages in another order are of one class.
        alike = msgspec.structs.replace(
            offer,
            disk_mb=0,
            gflops=0,
            slots=0,
            free=min(offer.free, 1),
            python="",
            packages=dict(sorted(offer.packages.items())),
        )
        name = (encode(alike), reachable)
        members = self._classes.setdefault(name, _Class(name, alike, reachable))
        members.peers[peer] = None
        self._class_of[peer] = members

    def _bury(self, peer: PeerId) -> None:
        members = self._class_of.pop(peer, None)
        if members is not None:
            del members.peers[peer]
            if not members.peers:
                del self._classes[members.name]
