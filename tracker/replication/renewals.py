"""Rows told by what has changed (pure): most new rows differ from the one before in their number and times only.

    slot of the row before (4 bytes) | its name (8) | signature of the new row (64) | msgpack {field's place: value}

A whole number is told by how much it grew, and a field that is itself a map, as the capability is, by what has
changed in it: {-1 - place: {place in it: value}}.

The receiver puts the changed fields into the row that it has and gets the very bytes that the peer signed, or it
notices at the signature that it did not. A whole row has 400 bytes or more, a renewal about 90. A tracker that
should have the row from its peer is only reminded of it: such a renewal is the first two parts alone, of the row
itself.
"""

from __future__ import annotations

import struct
from typing import Any

import msgpack

from axonp2p.errors import MalformedMessage
from axonp2p.identity.keys import SIGNATURE_BYTES
from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import Row
from axonp2p.table.slots import Slots, name_of, slot_of
from axonp2p.wire.envelope import Signed
from tracker.table.table_index import TableIndex

_NAME = struct.Struct(">IQ")
_HEAD = struct.Struct(f">IQ{SIGNATURE_BYTES}s")
_WORTH_IT = 0.7
"""A renewal longer than this share of the row is not made."""


def shorten(signed: Signed[Row], before: Signed[Row] | None) -> bytes | None:
    """`signed` told by what differs from `before`; None when that does not pay, or cannot give the same bytes."""
    if before is None:
        return None
    old: dict[str, Any] = msgpack.unpackb(before.payload)
    new: dict[str, Any] = msgpack.unpackb(signed.payload)
    if list(old) != list(new):
        return None
    changed = _changes(old, new)
    if msgpack.packb(_changed(old, changed)) != signed.payload:
        return None
    slot = slot_of(old["sequence"], old["expires"])
    short: bytes = _HEAD.pack(slot, name_of(before.payload), signed.signature) + msgpack.packb(changed)
    return short if len(short) < _WORTH_IT * len(signed.payload) else None


def mention(signed: Signed[Row]) -> bytes:
    """The row, for whoever should have it already."""
    row: dict[str, Any] = msgpack.unpackb(signed.payload)
    return _NAME.pack(slot_of(row["sequence"], row["expires"]), name_of(signed.payload))


def restore(renewal: bytes, slots: Slots, index: TableIndex) -> Signed[Row] | None:
    """The row that a renewal stands for, not yet checked; None when the row that it names is not known here.

    Raises `MalformedMessage` when it is no renewal.
    """
    if len(renewal) == _NAME.size:
        slot, name = _NAME.unpack(renewal)
        return _mentioned(slot, name, slots, index)
    if len(renewal) < _HEAD.size:
        raise MalformedMessage("a renewal that ends in its head")
    slot, name, signature = _HEAD.unpack_from(renewal)
    before = _known(slot, name, slots, index)
    if before is None:
        return None
    peer, base = before
    try:
        changed = msgpack.unpackb(renewal[_HEAD.size :], strict_map_key=False)
        payload: bytes = msgpack.packb(_changed(msgpack.unpackb(base), changed))
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError, AttributeError) as error:
        raise MalformedMessage("a renewal that cannot be read") from error
    return Signed(signer=peer, payload=payload, signature=signature)


def _mentioned(slot: int, name: int, slots: Slots, index: TableIndex) -> Signed[Row] | None:
    peer = slots.peer_of(slot, name)
    signed = None if peer is None else index.signed_of(peer)
    return signed if signed is not None and name_of(signed.payload) == name else None


def _known(slot: int, name: int, slots: Slots, index: TableIndex) -> tuple[PeerId, bytes] | None:
    """Peer and signed bytes of the row before, also when the new one has come already by another way."""
    peer = slots.peer_of(slot, name)
    signed = None if peer is None else index.signed_of(peer)
    if peer is None or signed is None or name_of(signed.payload) != name:
        return slots.replaced(name)
    return peer, signed.payload


def _changes(old: dict[str, Any], new: dict[str, Any]) -> dict[int, Any]:
    """The changes that make `new` of `old`, which has the same fields in the same order."""
    changes: dict[int, Any] = {}
    for place, (field, value) in enumerate(new.items()):
        was = old[field]
        if value == was:
            continue
        if isinstance(value, dict) and isinstance(was, dict) and list(value) == list(was):
            changes[-1 - place] = _changes(was, value)
        else:
            changes[place] = value - was if _are_numbers(value, was) else value
    return changes


def _changed(old: dict[str, Any], changes: dict[int, Any]) -> dict[str, Any]:
    fields = list(old)
    changed = dict(old)
    for place, value in changes.items():
        field = fields[place if place >= 0 else -1 - place]
        was = old[field]
        if place < 0:
            changed[field] = _changed(was, value)
        else:
            changed[field] = was + value if _are_numbers(value, was) else value
    return changed


def _are_numbers(value: object, was: object) -> bool:
    return type(value) is int and type(was) is int  # truth values are of another type
