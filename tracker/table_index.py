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
from dataclasses import dataclass, field

import msgspec

from axonp2p.identity.peer_id import PeerId
from axonp2p.peers.capability import Capability, Need, why_not
from axonp2p.table.records import CLOCK_TOLERANCE_S, LONGEST_LIFE_S, Row
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed

REMEMBERED_S = LONGEST_LIFE_S + 2 * CLOCK_TOLERANCE_S
"""How long a row's number is remembered after it came, in seconds."""


@dataclass(frozen=True)
class Entry:
    """A row as it was signed, and what of it is needed to find it."""

    signed: Signed[Row]
    row: Row
    offer: Capability | None
    """None when the peer has withdrawn."""
    forget_at: float
    """Unix time."""


@dataclass(frozen=True)
class Answer:
    """What was found: rows in random order, how many fit and how many live."""

    rows: list[Signed[Row]]
    fitting: int
    alive: int


@dataclass
class _Class:
    offer: Capability
    peers: dict[PeerId, None] = field(default_factory=dict)


class TableIndex:
    """Rows by peer. Every method takes the time, which never goes back by much."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._entries: dict[PeerId, Entry] = {}
        self._alive: set[PeerId] = set()
        self._classes: dict[bytes, _Class] = {}
        self._class_of: dict[PeerId, bytes] = {}
        self._times: list[tuple[float, PeerId, int]] = []

    def __len__(self) -> int:
        """All rows that are remembered."""
        return len(self._entries)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._entries

    def put(self, entry: Entry, now: float) -> None:
        """Remember a row; an older one than the known is ignored."""
        row = entry.row
        known = self._entries.get(row.peer)
        if known is not None and known.row.sequence >= row.sequence:
            return
        self._bury(row.peer)
        self._entries[row.peer] = entry
        if entry.offer is not None and row.expires > now:
            self._alive.add(row.peer)
            if row.addresses:  # a peer learns its address from its first announce and tells it with the second
                self._join_class(row.peer, entry.offer)
            self._look_again(row.expires, row)
        else:
            self._look_again(entry.forget_at, row)

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
                self._look_again(entry.forget_at, entry.row)

    def alive(self, now: float) -> int:
        """How many peers have a row that is valid and not withdrawn."""
        self.advance(now)
        return len(self._alive)

    def offer_of(self, peer: PeerId, now: float) -> Capability | None:
        """What a living peer offers."""
        self.advance(now)
        return self._entries[peer].offer if peer in self._alive else None

    def find(self, need: Need, count: int, now: float) -> Answer:
        """At most `count` rows whose peers meet `need` and can be reached, each as likely as any other."""
        self.advance(now)
        fitting = [peer for each in self._classes.values() if not why_not(each.offer, need) for peer in each.peers]
        chosen = self._chance.sample(fitting, min(count, len(fitting)))
        return Answer([self._entries[peer].signed for peer in chosen], len(fitting), len(self._alive))

    def _look_again(self, when: float, row: Row) -> None:
        heapq.heappush(self._times, (when, row.peer, row.sequence))
        if len(self._times) > 2 * len(self._entries) + 64:
            # Times of rows that were replaced pile up when somebody announces without pause.
            self._times = [time for time in self._times if self._is_of_today(time[1], time[2])]
            heapq.heapify(self._times)

    def _is_of_today(self, peer: PeerId, sequence: int) -> bool:
        entry = self._entries.get(peer)
        return entry is not None and entry.row.sequence == sequence

    def _join_class(self, peer: PeerId, offer: Capability) -> None:
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
        name = encode(alike)
        self._classes.setdefault(name, _Class(alike)).peers[peer] = None
        self._class_of[peer] = name

    def _bury(self, peer: PeerId) -> None:
        self._alive.discard(peer)
        name = self._class_of.pop(peer, None)
        if name is not None:
            members = self._classes[name].peers
            del members[peer]
            if not members:
                del self._classes[name]


def entry_of(signed: Signed[Row], row: Row, offer: Capability | None, now: float) -> Entry:
    """An entry for a row that came at `now`."""
    return Entry(signed=signed, row=row, offer=offer, forget_at=now + REMEMBERED_S)
