"""One tracker's copy of the table (pure): rows, digests over them, what is new for the others, answers to the others.

Nothing here is believed of another tracker: it hands over rows that its caller checked one by one. The doing part
(`sync`), a simulation and a test can drive it alike.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import assert_never

from axonp2p.errors import MalformedMessage
from axonp2p.identity.peer_id import PeerId, peer_id_of, public_key_of
from axonp2p.table.records import Row
from axonp2p.table.slots import BUCKETS, REMEMBERED_SLOTS, Slots, name_of, slot_at
from axonp2p.table.sync_messages import (
    GROUP,
    MOST_BODIES,
    MOST_NAMES,
    BucketsAsked,
    BucketsTold,
    DigestsAsked,
    DigestsTold,
    NamesAsked,
    NamesTold,
    RowsAsked,
    RowsTold,
    SyncAsked,
    SyncTold,
)
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.envelope import Signed
from tracker.table.table_index import TableIndex

SLOT = struct.Struct(">IQI")
NAME = struct.Struct(">32sQQ")


@dataclass(frozen=True, slots=True)
class News:
    """A row that the others have to hear of, and the last one that they have heard of."""

    signed: Signed[Row]
    before: Signed[Row] | None
    since: float
    """When it was stored here."""
    holders: tuple[str, ...] = ()
    """Addresses of trackers to which the peer itself announces."""


class Replica:
    """The table, its digests, and what each other tracker has been found to have."""

    def __init__(self, index: TableIndex, slots: Slots, started: float = 0.0) -> None:
        """`started` is when it began to be served, Unix seconds."""
        self.started = started
        self.index = index
        self.slots = slots
        self._news: dict[PeerId, News] = {}
        # The digest seen of another tracker's slot once all of it was fetched: its digest may differ from ours for
        # good, by rows that were replaced before we heard of them.
        self._fetched: defaultdict[PeerId, dict[int, int]] = defaultdict(dict)

    # --- what is new here

    def announced(
        self, signed: Signed[Row], before: Signed[Row] | None, now: float, holders: Sequence[str] = ()
    ) -> None:
        """A peer announced this row here, which took the place of `before`: the others shall hear of it.

        `holders` are the addresses of the trackers to which it announces.
        """
        waiting = self._news.get(signed.signer)
        if waiting is not None:
            before, now = waiting.before, waiting.since
        self._news[signed.signer] = News(signed, before, now, tuple(holders))

    def pushed(self, signed: Signed[Row]) -> None:
        """Another tracker sent this row to all: we need not. (Peers announce to two trackers at the same time.)"""
        waiting = self._news.get(signed.signer)
        if waiting is not None and waiting.signed.payload == signed.payload:
            del self._news[signed.signer]

    def take_news(self) -> list[News]:
        """The rows that are new since the last time, to be sent to all others."""
        news, self._news = list(self._news.values()), {}
        return news

    def forget(self, now: float) -> None:
        """Drop what is too old to compare."""
        self.slots.forget(now)
        oldest = slot_at(now) - REMEMBERED_SLOTS
        for fetched in self._fetched.values():
            for number in [number for number in fetched if number < oldest]:
                del fetched[number]

    # --- what another tracker has

    def expected(self, other: PeerId, number: int) -> int:
        """The digest of that tracker's slot when there is nothing more to fetch."""
        return self._fetched[other].get(number, self.slots.digest(number))

    def expected_groups(self, other: PeerId, oldest: int, newest: int) -> list[int]:
        """The XOR of those digests for each group of slots."""
        groups = [0] * ((newest - oldest) // GROUP + 1)
        numbers = {*self.slots.between(oldest, newest), *self._fetched[other]}
        for number in numbers:
            if oldest <= number <= newest:
                groups[(number - oldest) // GROUP] ^= self.expected(other, number)
        return groups

    def fetched(self, other: PeerId, number: int, digest: int) -> None:
        """All that this slot of that tracker held when its digest was this is known here."""
        if self.slots.digest(number) == digest:
            self._fetched[other].pop(number, None)
        else:
            self._fetched[other][number] = digest

    def keep_only(self, others: Collection[PeerId]) -> None:
        """All memory of any other tracker is dropped: a stranger is a new one as often as it likes."""
        for other in [other for other in self._fetched if other not in others]:
            del self._fetched[other]

    def lacks(self, peer: PeerId, sequence: int, name: int) -> bool:
        """Whether a row that another tracker names would take the place of ours."""
        known = self.index.sequence_of(peer)
        if known is None or known != sequence:
            return known is None or known < sequence
        signed = self.index.signed_of(peer)
        return signed is None or name < name_of(signed.payload)

    # --- what others ask

    def answer(self, asked: SyncAsked, now: float) -> SyncTold:
        """The answer to another tracker's question. Raises `MalformedMessage` when it names a slot twice."""
        match asked:
            case DigestsAsked():
                return self._digests(asked)
            case BucketsAsked():
                _refuse_twice(asked.slots)
                packed = [struct.pack(f">{BUCKETS}I", *self.slots.buckets(number)) for number in asked.slots]
                return BucketsTold(buckets=packed)
            case NamesAsked():
                _refuse_twice([part.slot for part in asked.slots])
                return self._names(asked, now)
            case RowsAsked():
                return self._rows(asked, now)
        assert_never(asked)

    def walks(self, asked: SyncAsked) -> int:
        """How many rows are looked at for an answer: what a question costs."""
        match asked:
            case BucketsAsked(slots=slots):
                return sum(self.slots.count(number) for number in slots)
            case NamesAsked(slots=parts):
                return sum(self.slots.count(part.slot) for part in parts)
            case RowsAsked(peers=peers):
                return len(peers) // 32
            case DigestsAsked():
                return len(self.slots)
        assert_never(asked)

    def _digests(self, asked: DigestsAsked) -> DigestsTold:
        count = len(asked.groups) // 8
        expected = struct.unpack(f">{count}Q", asked.groups[: 8 * count])
        newest = min(asked.newest, asked.oldest + count * GROUP - 1)
        found: list[list[int]] = [[] for _ in range(count)]
        for number in self.slots.between(asked.oldest, newest):
            found[(number - asked.oldest) // GROUP].append(number)
        groups, packed = [], []
        for group, numbers in enumerate(found):
            digest = 0
            for number in numbers:
                digest ^= self.slots.digest(number)
            if digest != expected[group]:
                groups.append(group)
                packed += [SLOT.pack(each, self.slots.digest(each), self.slots.count(each)) for each in numbers]
        return DigestsTold(groups=groups, slots=b"".join(packed), started=self.started)

    def _names(self, asked: NamesAsked, now: float) -> NamesTold:
        found: list[bytes] = []
        for part in asked.slots:
            wanted = int.from_bytes(part.parts, "little")
            for name, peer in self.slots.rows(part.slot):
                sequence = self.index.sequence_of(peer) if wanted >> (name % BUCKETS) & 1 else None
                if sequence is None or not self._is_told(peer, now):
                    continue
                if len(found) == MOST_NAMES:
                    return NamesTold(names=b"".join(found), cut=True)
                found.append(NAME.pack(public_key_of(peer), sequence, name))
        return NamesTold(names=b"".join(found), cut=False)

    def _rows(self, asked: RowsAsked, now: float) -> RowsTold:
        found = []
        for place in range(0, min(len(asked.peers), 32 * MOST_BODIES) - 31, 32):
            peer = peer_id_of(asked.peers[place : place + 32])
            signed = self.index.signed_of(peer)
            if signed is not None and self._is_told(peer, now):
                found.append(signed)
        return RowsTold(rows=found)

    def _is_told(self, peer: PeerId, now: float) -> bool:
        """Whether the row of a peer can still be of use to anybody: it has not expired."""
        expires = self.index.expires_of(peer)
        return expires is not None and expires > now - CLOCK_TOLERANCE_S


def _refuse_twice(slots: Sequence[int]) -> None:
    if len(set(slots)) < len(slots):
        raise MalformedMessage("a question that names a slot twice")
