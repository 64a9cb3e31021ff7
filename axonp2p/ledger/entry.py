"""The two kinds of entries in a log: receipts, and words that make receipts void (pure)."""

from __future__ import annotations

from axonp2p.ledger.receipt import DOUBLY_SIGNED_LIMIT, DoublySigned, Receipt, open_doubly_signed, place_key
from axonp2p.ledger.voiding import Voided, Voiding, open_voiding, voiding_key
from axonp2p.wire.codec import decode_as

ENTRY_LIMIT = DOUBLY_SIGNED_LIMIT
"""The larger one of both."""
VOIDED_BEGINS = b"\x81\xa6voided"
"""How a map begins whose only key is `voided`; a receipt's entry has two keys."""


def decode_entry(data: bytes) -> DoublySigned | Voided:
    """An entry; nothing in it is believed yet. Raises `MessageTooLarge`, `MalformedMessage`."""
    if data.startswith(VOIDED_BEGINS):
        return decode_as(data, Voided, ENTRY_LIMIT)
    return decode_as(data, DoublySigned, ENTRY_LIMIT)


def open_entry(entry: DoublySigned | Voided) -> Receipt | Voiding:
    """Its content, once the ones that had to have signed it. Raises what `open_signed` raises."""
    return open_voiding(entry.voided) if isinstance(entry, Voided) else open_doubly_signed(entry)


def read_entry(entry: DoublySigned | Voided) -> Receipt | Voiding:
    """Its content, where its signatures were checked before. Raises `MessageTooLarge`, `MalformedMessage`."""
    if isinstance(entry, Voided):
        return Voiding.in_entry(entry)
    return decode_as(entry.receipt.payload, Receipt, Receipt.LIMIT)


def key_of_place(said: Receipt | Voiding) -> int:
    """By which an index finds it."""
    return voiding_key(said) if isinstance(said, Voiding) else place_key(said)
