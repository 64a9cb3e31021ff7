"""The table in memory (pure): "n peers that meet this need" from all living rows, at random or the nearest first.

Numbers stand in columns (`index_columns`), words in profiles (`offer_profiles`), and beside them each row as it was
signed. A row goes through three ages:

    alive      may be found and reserved
    expired    (or withdrawn, or silent) found no more, but its number is remembered
    forgotten  when every older row that its peer may have signed has expired as well, so that none comes back
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from axonp2p.errors import MalformedMessage
from axonp2p.identity.keys import SIGNATURE_BYTES
from axonp2p.identity.peer_id import PeerId
from axonp2p.peers.capability import Capability, Need, read_capability
from axonp2p.peers.coordinates import read_coordinate
from axonp2p.table.records import LONGEST_LIFE_S, Row
from axonp2p.table.slots import supersedes
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.table.admission import KnownRow
from tracker.table.index_columns import Columns, Places, pack_facts
from tracker.table.offer_profiles import Profile, Profiles, profile_of

REMEMBERED_S = LONGEST_LIFE_S + 2 * CLOCK_TOLERANCE_S
"""How long a row's number is remembered after it came, in seconds."""
NEAREST_OF = 16_384
"""Of more fitting rows than twice that, only so many (each as likely) are compared by distance."""


@dataclass(frozen=True)
class RowsAnswer:
    """The rows that were found, how many fit and how many live."""

    rows: list[Signed[Row]]
    fitting: int
    alive: int


@dataclass(frozen=True)
class PeerCounts:
    """Rows by what they are good for."""

    ready: int = 0
    """Can be found and have a free slot."""
    busy: int = 0
    """Can be found; all slots are taken, or their owners take no work now."""
    unreachable: int = 0
    """Announced, but without an address or a relay at which anybody could reach them."""
    gone: int = 0
    """Remembered only: withdrawn, expired, or silent when they were called."""

    @property
    def alive(self) -> int:
        """Those that are announced."""
        return self.ready + self.busy + self.unreachable


class Entry(NamedTuple):
    """All that is kept of a row: its place, its signature and signed bytes, its facts and words."""

    place: int
    peer: PeerId
    body: bytes
    facts: bytes
    profile: Profile


class TableIndex:
    """Rows by peer. Every method takes the time, which never goes back by much."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._places: dict[PeerId, int] = {}
        self._peers: list[PeerId | None] = []
        self._bodies: list[bytes | None] = []
        self._free: list[int] = []
        self._columns = Columns()
        self._profiles = Profiles()

    def __len__(self) -> int:
        """All rows that are remembered, and those that are about to be."""
        return len(self._places)

    def __contains__(self, peer: PeerId) -> bool:
        return self._known(peer) is not None

    def place_of(self, peer: PeerId) -> int | None:
        """Where the peer's row is, or will be once it is stored; no other row has that place until it is forgotten."""
        return self._places.get(peer)

    def sequence_of(self, peer: PeerId) -> int | None:
        """The number of the row that is remembered."""
        place = self._known(peer)
        return None if place is None else self._columns.get("sequence", place)

    def expires_of(self, peer: PeerId) -> int | None:
        """When the row that is remembered expires, Unix seconds."""
        place = self._known(peer)
        return None if place is None else self._columns.get("expires", place)

    def signed_of(self, peer: PeerId) -> Signed[Row] | None:
        """The row that is remembered, as its peer signed it; also a withdrawn or expired one."""
        place = self._known(peer)
        return None if place is None else self._signed(place)

    def known(self, peer: PeerId) -> KnownRow | None:
        """Number and signed bytes of the row that is remembered."""
        place = self._known(peer)
        if place is None:
            return None
        return KnownRow(self._columns.get("sequence", place), self._body(place)[SIGNATURE_BYTES:])

    def rows(self) -> Iterator[tuple[PeerId, int]]:
        """Peer and number of every row that is remembered. The index must not change meanwhile."""
        for peer, place in self._places.items():
            if self._bodies[place] is not None:
                yield peer, self._columns.get("sequence", place)

    def offer_of(self, peer: PeerId, now: float) -> Capability | None:
        """The offer of a living peer; None for any other."""
        place = self._known(peer)
        if place is None or self._columns.get("alive_until", place) <= now:
            return None
        row = self._row(place)
        return None if row is None or row.capability is None else read_capability(row.capability)

    def knows(self, peer: PeerId) -> bool:
        """Whether there is a row of this peer, be it expired or withdrawn."""
        return self._known(peer) is not None

    def alive(self, now: float) -> int:
        """How many peers have a row that is valid and not withdrawn."""
        return self._columns.alive(now)

    def counts(self, now: float) -> PeerCounts:
        """Rows by what they are good for: looks at all of them, some thousands in a microsecond."""
        ready, found, alive = self._columns.counts(now)
        return PeerCounts(ready, found - ready, alive - found, len(self._places) - alive)

    # --- what comes and goes

    def mark_silent(self, peer: PeerId, sequence: int) -> bool:
        """The row with this number is not found any more, until a newer one comes; returns whether it was known."""
        place = self._known(peer)
        if place is None or self._columns.get("sequence", place) != sequence:
            return False
        self._columns.set(place, alive_until=0, found_until=0, idle_until=0)
        return True

    def put(self, signed: Signed[Row], row: Row, offer: Capability | None, *, forget_at: float, now: float) -> None:
        """Remember a row, whose capability is `offer` (None: withdrawn); one not newer than the known is ignored."""
        known = self.signed_of(row.peer)
        sequence = self.sequence_of(row.peer)
        if known is None or sequence is None or supersedes(row.sequence, signed.payload, sequence, known.payload):
            self.enter([self.prepare(signed, row, offer, forget_at=forget_at, now=now)])

    def prepare(
        self, signed: Signed[Row], row: Row, offer: Capability | None, *, forget_at: float, now: float
    ) -> Entry:
        """The entry for `enter`, to be stored before that call; the peer has a place from now on, until `abandon`."""
        place = self._places.get(row.peer)
        since = now
        if place is None:
            place = self._take_place(row.peer)
        else:
            if self._columns.get("alive_until", place) > now:
                since = self._columns.get("since", place)
            if self._bodies[place] is not None:
                self._columns.set(place, forget_at=int(forget_at))  # it must not go while its place is promised
        facts = pack_facts(row, offer, since=since, forget_at=forget_at)
        return Entry(place, row.peer, signed.signature + signed.payload, facts, profile_of(offer))

    def enter(self, entries: Sequence[Entry]) -> list[Signed[Row] | None]:
        """Remember rows that were prepared, in this order; returns what was known of each one's peer before."""
        before: list[Signed[Row] | None] = []
        for entry in entries:
            profile, known = self._profiles.hold(entry.profile), self._bodies[entry.place]
            if known is None:
                before.append(None)
            else:
                before.append(_signed(entry.peer, known))
                self._profiles.release(self._columns.profile(entry.place))
            self._bodies[entry.place] = entry.body
            self._columns.set_profile(entry.place, profile)
        self._columns.write([entry.place for entry in entries], b"".join([entry.facts for entry in entries]))
        return before

    def abandon(self, entry: Entry) -> bool:
        """The row that was prepared could not be stored; returns whether its place is free again."""
        if self._places.get(entry.peer) != entry.place or self._bodies[entry.place] is not None:
            return False
        self._give_back(entry.peer, entry.place)
        return True

    def enter_many(self, entries: Sequence[Entry]) -> None:
        """Remember rows that were stored at these places before a start; none of them is taken. Then `settle`."""
        room = max((entry.place for entry in entries), default=-1) + 1 - len(self._peers)
        self._peers.extend([None] * room)
        self._bodies.extend([None] * room)
        for entry in entries:
            self._places[entry.peer], self._peers[entry.place] = entry.place, entry.peer
        self.enter(entries)

    def settle(self) -> None:
        """All stored rows are back: the places between them may be given away."""
        self._free = [place for place, peer in enumerate(self._peers) if peer is None]

    def advance(self, now: float) -> list[int]:
        """Forget rows whose time has come; returns their places."""
        forget_at = self._columns.column("forget_at")
        places = np.flatnonzero((forget_at > 0) & (forget_at <= np.uint32(now)))
        forgotten: list[int] = places.tolist()
        for place in forgotten:
            self._profiles.release(self._columns.profile(place))
            peer = self._peers[place]
            assert peer is not None
            self._give_back(peer, place)
        self._columns.clear(places)
        return forgotten

    # --- what is asked

    def comparisons(self, need: Need) -> int:
        """How many comparisons of words `find` makes for this need at the most. Raises `Busy` for too many."""
        return self._profiles.comparisons(need)

    def find(self, need: Need, count: int, now: float, near: bytes = b"") -> RowsAnswer:
        """At most `count` rows whose peers meet `need` and can be reached.

        Each is as likely as any other; when `near` is a coordinate, the nearest come first, and those whose
        coordinate is unknown last.
        """
        fitting = self._columns.fitting(need, self._profiles.meeting(need), now)
        return RowsAnswer(
            [self._signed(place) for place in self._chosen(fitting, count, near)], len(fitting), self.alive(now)
        )

    def dht_rows(self, count: int, now: float) -> list[Row]:
        """At most `count` living rows, drawn by chance, that name a node of the DHT."""
        columns = self._columns
        living = columns.column("found_until") > np.uint32(now)
        places = np.flatnonzero(living & (columns.column("dht") > 0))
        rows = [self._row(place) for place in self._chosen(places, count, b"")]
        return [row for row in rows if row is not None]

    def _chosen(self, fitting: Places, count: int, near: bytes) -> list[int]:
        here = read_coordinate(near)
        if here is None:
            drawn = self._chance.sample(range(len(fitting)), min(count, len(fitting)))
            return [int(fitting[number]) for number in drawn]
        stride = max(1, len(fitting) // NEAREST_OF)
        candidates = fitting[self._chance.randrange(stride) :: stride]
        distances = self._columns.distances(candidates, here)
        known = candidates[np.isfinite(distances)]
        distances = distances[np.isfinite(distances)]
        if len(known) > count:
            nearest = np.argpartition(distances, count)[:count]
            known, distances = known[nearest], distances[nearest]
        chosen: list[int] = known[np.argsort(distances)].tolist()
        if len(chosen) < count:
            others = np.setdiff1d(fitting, known, assume_unique=True)
            more = self._chance.sample(range(len(others)), min(count - len(chosen), len(others)))
            chosen += [int(others[number]) for number in more]
        return chosen

    # --- places

    def _known(self, peer: PeerId) -> int | None:
        place = self._places.get(peer)
        return None if place is None or self._bodies[place] is None else place

    def _take_place(self, peer: PeerId) -> int:
        if self._free:
            place = self._free.pop()
            self._peers[place] = peer
        else:
            place = len(self._peers)
            self._peers.append(peer)
            self._bodies.append(None)
        self._places[peer] = place
        return place

    def _give_back(self, peer: PeerId, place: int) -> None:
        del self._places[peer]
        self._peers[place] = self._bodies[place] = None
        self._free.append(place)

    def _signed(self, place: int) -> Signed[Row]:
        peer = self._peers[place]
        assert peer is not None
        return _signed(peer, self._body(place))

    def _body(self, place: int) -> bytes:
        body = self._bodies[place]
        assert body is not None
        return body

    def _row(self, place: int) -> Row | None:
        try:
            return decode_as(self._signed(place).payload, Row, Row.LIMIT)  # its signature was checked when it came
        except MalformedMessage:
            return None  # an older version of this program took it


def _signed(peer: PeerId, body: bytes) -> Signed[Row]:
    return Signed(signer=peer, payload=body[SIGNATURE_BYTES:], signature=body[:SIGNATURE_BYTES])
