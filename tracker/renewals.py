"""Rows told by what has changed (pure): most new rows differ from the one before in their number and times only.

    slot of the row before (4 bytes) | its name (8) | signature of the new row (64) | msgpack {field's place: value}

The receiver puts the changed fields into the row that it has and gets the very bytes that the peer signed, or it
notices at the signature that it did not. A whole row has 400 bytes or more, a renewal about 95. Who should have the row
from its peer is only reminded of it: such a renewal is the first two parts alone, of the row itself.
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
from tracker.table_index import TableIndex

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
    changed = {place: new[field] for place, field in enumerate(new) if new[field] != old[field]}
    if _with_changes(old, changed) != signed.payload:
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
        payload = _with_changes(msgpack.unpackb(base), changed)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError, AttributeError) as error:
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


def _with_changes(row: dict[str, Any], changed: dict[int, Any]) -> bytes:
    fields = list(row)
    named = {fields[place]: value for place, value in changed.items()}
    packed: bytes = msgpack.packb({**row, **named})
    return packed
