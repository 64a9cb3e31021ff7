"""The rows that another tracker has and this one lacks, found step by step (pure).

    digests   which groups of slots, and in them which slots, are not as expected
    buckets   of large slots: in which of 256 parts they differ
    names     which rows are there
    rows      those that are missing or newer

`ask` says what to ask next and `heard` takes the answer; the rows that come are for the caller to check and to keep.
One that ends too early is begun anew later: what was kept by then is not asked for again.

Questions are made when they are needed, so that an answer which names a million rows costs nothing by itself. More than
a table may hold cannot be true, and names that lead to no rows are lies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from axonp2p.errors import MalformedMessage, PeerMisbehaved
from axonp2p.identity.peer_id import PeerId, peer_id_of, public_key_of
from axonp2p.table.records import LONGEST_LIFE_S, Row
from axonp2p.table.slots import BUCKETS, SLOT_S, slot_at
from axonp2p.table.sync_messages import (
    GROUP,
    MOST_BODIES,
    MOST_NAMES,
    MOST_PARTS,
    MOST_SLOTS_OPENED,
    BucketsAsked,
    BucketsTold,
    DigestsAsked,
    DigestsTold,
    NamesAsked,
    NamesTold,
    RowsAsked,
    RowsTold,
    SlotPart,
    SyncAsked,
    SyncTold,
)
from axonp2p.wire.envelope import Signed
from tracker.replication.replica import NAME, SLOT, Replica
from tracker.table.admission import MOST_KNOWN_PEERS

PUSHES_TAKE_S = 4.0
"""For so long after its end a slot may still differ by what is on its way; in seconds."""
MOST_MISSING = 2 * MOST_BODIES
"""So many rows that were named and then not there happen: they were replaced, or expired meanwhile."""
_WORTH_BUCKETS = 64
_ALL_PARTS = (1 << BUCKETS) - 1


class Pull:
    """One comparison with one other tracker.

    With `everything` also the slots that have not ended are compared, and those of peers whose clocks are ahead.
    """

    def __init__(self, replica: Replica, other: PeerId, now: float, *, everything: bool) -> None:
        self.other = other
        self.lacking = 0
        """Rows that were named and are wanted, so far."""
        self._asked_for = self._came = 0
        self.started: float | None = None
        """Since when the other runs, as it says; None until it answered."""
        self._replica = replica
        self._oldest = slot_at(now - LONGEST_LIFE_S)
        self._newest = slot_at(now + LONGEST_LIFE_S if everything else now - PUSHES_TAKE_S - SLOT_S)
        self._waiting: list[Iterator[SyncAsked]] = [iter([self._first()])]
        self._asked: SyncAsked | None = None
        self._digests: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._cut = False

    def ask(self) -> SyncAsked | None:
        """The next question; None when nothing is left to ask."""
        while self._waiting:
            self._asked = next(self._waiting[-1], None)
            if self._asked is not None:
                return self._asked
            self._waiting.pop()
        if not self._cut:
            for number, digest in self._digests.items():
                self._replica.fetched(self.other, number, digest)
        return None

    def heard(self, told: SyncTold) -> list[Signed[Row]]:
        """Take the answer to the last question; gives the rows in it. Raises `PeerMisbehaved` for what cannot be."""
        match self._asked, told:
            case DigestsAsked(), DigestsTold():
                self._compare(told)
            case BucketsAsked(slots=slots), BucketsTold() if len(slots) == len(told.buckets):
                self._open(slots, told)
            case NamesAsked(), NamesTold():
                self._want(told)
            case RowsAsked(peers=peers), RowsTold():
                return self._rows(peers, told)
            case _:
                raise MalformedMessage("an answer to something else")
        return []

    def incomplete(self) -> None:
        """Some rows could not be kept now (no room, a clock that is wrong): the next pull asks for them again."""
        self._cut = True

    def _first(self) -> DigestsAsked:
        groups = self._replica.expected_groups(self.other, self._oldest, self._newest)
        return DigestsAsked(oldest=self._oldest, newest=self._newest, groups=struct.pack(f">{len(groups)}Q", *groups))

    def _compare(self, told: DigestsTold) -> None:
        self.started = told.started
        if len(told.slots) % SLOT.size:
            raise MalformedMessage("digests that end in the middle of one")
        theirs = {number: (digest, count) for number, digest, count in SLOT.iter_unpack(told.slots)}
        if sum(count for _, count in theirs.values()) > MOST_KNOWN_PEERS:
            raise MalformedMessage(f"a table of more than {MOST_KNOWN_PEERS} peers")
        ours = self._replica.slots
        large: list[int] = []
        small: list[Part] = []
        for number in self._in_groups(told.groups):
            digest, count = theirs.get(number, (0, 0))
            if digest != self._replica.expected(self.other, number):
                self._digests[number] = digest
                if min(count, ours.count(number)) > _WORTH_BUCKETS:
                    large.append(number)
                elif count:
                    small.append((number, _ALL_PARTS, count))
        self._waiting.append(_looks(small))
        places = range(0, len(large), MOST_SLOTS_OPENED)
        self._waiting.append(BucketsAsked(slots=large[place : place + MOST_SLOTS_OPENED]) for place in places)
        self._counts = {number: theirs[number][1] for number in large}

    def _in_groups(self, groups: list[int]) -> Iterator[int]:
        for group in groups:
            first = self._oldest + group * GROUP
            yield from range(first, min(first + GROUP - 1, self._newest) + 1)

    def _open(self, slots: list[int], told: BucketsTold) -> None:
        found: list[Part] = []
        for number, packed in zip(slots, told.buckets, strict=True):
            theirs = struct.unpack(f">{BUCKETS}I", packed)
            ours = self._replica.slots.buckets(number)
            differing = sum(1 << part for part in range(BUCKETS) if theirs[part] != ours[part])
            # The two tables stand still meanwhile only by luck, so counts are a guess.
            count = self._counts[number] * differing.bit_count() // BUCKETS + 1
            if differing:
                found.append((number, differing, count))
        self._waiting.append(_looks(found))

    def _want(self, told: NamesTold) -> None:
        if len(told.names) % NAME.size:
            raise MalformedMessage("names that end in the middle of one")
        self._cut |= told.cut
        wanted = [
            key for key, sequence, name in NAME.iter_unpack(told.names)
            if self._replica.lacks(peer_id_of(key), sequence, name)
        ]  # fmt: skip
        self.lacking += len(wanted)
        if self.lacking > MOST_KNOWN_PEERS:
            raise MalformedMessage(f"more than {MOST_KNOWN_PEERS} rows are named")
        places = range(0, len(wanted), MOST_BODIES)
        self._waiting.append(RowsAsked(peers=b"".join(wanted[place : place + MOST_BODIES])) for place in places)

    def _rows(self, peers: bytes, told: RowsTold) -> list[Signed[Row]]:
        asked = {peers[place : place + 32] for place in range(0, len(peers), 32)}
        rows = [signed for signed in told.rows if _key_of(signed.signer) in asked]
        self._asked_for += len(asked)
        self._came += len(rows)
        if self._asked_for - self._came > max(MOST_MISSING, self._came):
            raise PeerMisbehaved(f"it names rows that it does not have: {self._came} of {self._asked_for} came")
        return rows


Part = tuple[int, int, int]
"""A slot, which of its parts are wanted (a bit for each), and how many rows they should have."""


def _looks(wanted: Sequence[Part]) -> Iterator[SyncAsked]:
    """The questions for the names in these parts, as many at a time as should fit into an answer; no slot twice."""
    together: list[SlotPart] = []
    names = 0
    for number, mask, count in (piece for part in wanted for piece in _pieces(part)):
        fits = names + count <= MOST_NAMES // 2 and len(together) < MOST_PARTS
        if together and (not fits or together[-1].slot == number):
            yield NamesAsked(slots=together)
            together, names = [], 0
        together.append(SlotPart(slot=number, parts=mask.to_bytes(BUCKETS // 8, "little")))
        names += count
    if together:
        yield NamesAsked(slots=together)


def _pieces(part: Part) -> Iterator[Part]:
    """The wanted parts of a slot in as many pieces as it takes for each to fit into one answer."""
    number, wanted, count = part
    pieces = min(BUCKETS, count // (MOST_NAMES // 2) + 1)
    for piece in range(pieces):
        mask = sum(1 << one for one in range(piece, BUCKETS, pieces)) & wanted
        if mask:
            yield number, mask, count // pieces


def _key_of(peer: PeerId) -> bytes:
    try:
        return public_key_of(peer)
    except ValueError:
        return b""
