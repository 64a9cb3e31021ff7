"""Digests over time (pure): what two holders of rows compare to find out what one of them lacks.

A table's own hash never stands still, so two trackers that are equal but for what is on its way would always look
different. Here a row counts in the ten seconds in which it was signed, for good: when a newer row takes its place, it
stays in the digest of its slot. A slot stands still seconds after it ended, so closed slots of two holders differ only
when one of them has missed something.

A digest is the XOR of the names of rows, a name eight bytes of a hash. A signer of many rows can find some whose XOR is
nothing, or that of an honest row, and so hide rows from a comparison until its own have left the table, though not
from pushes. (Scuttlebutt compares versions by writer instead: here there are as many writers as rows.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import LONGEST_LIFE_S
from axonp2p.wire.quantities import Count, UnixTime

SLOT_S = 10
"""Length of a slot, in seconds."""
REMEMBERED_SLOTS = (LONGEST_LIFE_S + 120) // SLOT_S
"""How long a slot is kept: no row in an older one can still be valid."""
BUCKETS = 256
"""Parts of a slot, by the last byte of the rows' names."""


def name_of(payload: bytes) -> int:
    """The name of a row in digests: 64 bits of the hash of its signed bytes."""
    return int.from_bytes(hashlib.blake2b(payload, digest_size=8).digest(), "big")


def slot_of(sequence: int, expires: int) -> int:
    """The slot in which a row counts, the same for every holder whatever its clock says.

    A number is the peer's Unix time in milliseconds, as a rule. One that cannot be the time at which the row was signed
    (a clock that was wrong once, a number from elsewhere) counts at the earliest time that it can have been.
    """
    signed = sequence // 1000
    earliest = expires - LONGEST_LIFE_S
    return max(signed if earliest <= signed <= expires else earliest, 0) // SLOT_S


def slot_at(now: float) -> int:
    """The slot of a moment."""
    return int(now) // SLOT_S


def supersedes(sequence: int, payload: bytes, known_sequence: int, known_payload: bytes) -> bool:
    """Whether a row takes the place of the known one of its peer: every holder decides alike, in whatever order.

    The higher number wins. A peer that signed two rows with one number has broken its word; of those the one with the
    lower name stays.
    """
    if sequence != known_sequence:
        return sequence > known_sequence
    return name_of(payload) < name_of(known_payload)


class _SlotOf(msgspec.Struct):
    """Of a row only what says in which slot it counts."""

    sequence: Count
    expires: UnixTime


_SLOT_OF = msgspec.msgpack.Decoder(_SlotOf)


class _Slot:
    """Ten seconds: the digest of all that was ever seen, and the rows of it that still stand."""

    __slots__ = ("digest", "rows")

    def __init__(self) -> None:
        self.digest = 0
        self.rows: dict[int, PeerId] = {}


class Slots:
    """Every row that was ever new here, by the time at which it was signed, as far back as one can be valid."""

    def __init__(self) -> None:
        self._slots: dict[int, _Slot] = {}
        self._just_replaced: dict[int, tuple[PeerId, bytes]] = {}
        self._replaced_earlier: dict[int, tuple[PeerId, bytes]] = {}

    def add(self, peer: PeerId, sequence: int, expires: int, payload: bytes, before: bytes | None = None) -> None:
        """One more row that is new here; `before` are the signed bytes of the row whose place it takes."""
        if before is not None:
            self._take_place_of(peer, before)
        slot = self._slots.setdefault(slot_of(sequence, expires), _Slot())
        name = name_of(payload)
        if name not in slot.rows:
            slot.digest ^= name
            slot.rows[name] = peer

    def _take_place_of(self, peer: PeerId, payload: bytes) -> None:
        name = name_of(payload)
        self._just_replaced[name] = peer, payload
        row = _SLOT_OF.decode(payload)  # it was decoded as a row when it came
        slot = self._slots.get(slot_of(row.sequence, row.expires))
        if slot is not None:
            slot.rows.pop(name, None)

    def forget(self, now: float) -> None:
        """Drop the slots in which no row can be valid any more, and rows that were replaced before the last call."""
        self._replaced_earlier, self._just_replaced = self._just_replaced, {}
        oldest = slot_at(now) - REMEMBERED_SLOTS
        for number in [number for number in self._slots if number < oldest]:
            del self._slots[number]

    def __len__(self) -> int:
        """Slots in which something was seen."""
        return len(self._slots)

    def digest(self, number: int) -> int:
        """The digest of one slot; 0 for one in which nothing was seen."""
        slot = self._slots.get(number)
        return 0 if slot is None else slot.digest

    def count(self, number: int) -> int:
        """How many rows of a slot still stand."""
        slot = self._slots.get(number)
        return 0 if slot is None else len(slot.rows)

    def between(self, oldest: int, newest: int) -> Iterator[int]:
        """The slots in which something was seen, both ends included, in order."""
        return (number for number in sorted(self._slots) if oldest <= number <= newest)

    def rows(self, number: int) -> Iterator[tuple[int, PeerId]]:
        """Names and peers of the rows of a slot that still stand."""
        slot = self._slots.get(number)
        return iter(()) if slot is None else iter(slot.rows.items())

    def peer_of(self, number: int, name: int) -> PeerId | None:
        """The peer whose row that is."""
        slot = self._slots.get(number)
        return None if slot is None else slot.rows.get(name)

    def replaced(self, name: int) -> tuple[PeerId, bytes] | None:
        """Peer and signed bytes of a row in whose place another one has come just now."""
        return self._just_replaced.get(name) or self._replaced_earlier.get(name)

    def buckets(self, number: int) -> list[int]:
        """The digests (32 bits) of the parts of a slot, of the rows that still stand."""
        found = [0] * BUCKETS
        for name in (name for name, _ in self.rows(number)):
            found[name % BUCKETS] ^= name >> 32
        return found
