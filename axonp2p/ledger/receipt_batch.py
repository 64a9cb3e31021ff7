"""How many receipts fit one message to a tracker, with the tokens of their reservations (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from axonp2p.ledger.receipt import MOST_RECEIPTS, RECEIPTS_LIMIT, DoublySigned, Receipt
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD

_OF_A_RECEIPT = Receipt.LIMIT + 2 * ENVELOPE_OVERHEAD
_OF_ITS_FRAME = 512


@dataclass(frozen=True)
class ReceiptBatch:
    """What goes into one message."""

    receipts: list[DoublySigned]
    tokens: list[bytes]
    """Each once."""


def receipt_batch_of(waiting: Iterable[tuple[DoublySigned, bytes]]) -> ReceiptBatch:
    """The first of `waiting`, receipts with the encoded token of each (empty when it is not to be sent), that fit.

    At least one, when there is any: a receipt and the largest token are far below the limit.
    """
    receipts: list[DoublySigned] = []
    tokens: dict[bytes, None] = {}
    left = RECEIPTS_LIMIT - _OF_ITS_FRAME
    for doubly, token in waiting:
        left -= min(_OF_A_RECEIPT, len(doubly.receipt.payload) + 2 * ENVELOPE_OVERHEAD)
        if token and token not in tokens:
            left -= len(token) + 8
        if left < 0 or len(receipts) == MOST_RECEIPTS:
            break
        receipts.append(doubly)
        if token:
            tokens[token] = None
    return ReceiptBatch(receipts, list(tokens))
