"""A credit proof: the receipts of some keys, what makes some void, and their way to a head that a tracker signed.

It is a file for others: docs/ledger.md describes every byte of it, and `axon-verify-ledger` reads it with nothing of
ours. A reader of it knows that these receipts are in that log; that there are no others only the whole log can show.
Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Literal

import msgspec

from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.log_messages import Included
from axonp2p.ledger.receipt import Receipt, counts_instead
from axonp2p.ledger.tree_head import TreeHead
from axonp2p.ledger.voiding import Spoiled, spoiled_by
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import Signed

MOST_KEYS = 65536
MOST_PROVED = 2**24


class CreditProof(Message, frozen=True):
    """The whole file."""

    keys: Annotated[list[PeerId], msgspec.Meta(max_length=MOST_KEYS)]
    """The keys whose receipts they are: one, or a client's and those that hosts signed with for it."""
    head: Signed[TreeHead]
    """The log that they are in."""
    receipts: Annotated[list[Included], msgspec.Meta(max_length=MOST_PROVED)]
    """All that the tracker showed, the smallest number first."""
    voidings: Annotated[list[Included], msgspec.Meta(max_length=MOST_PROVED)] = []
    """All entries that make receipts of or from these keys void, the smallest number first."""
    format: Literal["axon/credit-proof/2"] = "axon/credit-proof/2"


def counting(receipts: Iterable[tuple[Receipt, bytes]], voided: Collection[Spoiled] = ()) -> set[bytes]:
    """Which of these receipts, each with its payload, count: of several with one number only one does, unless void."""
    best: dict[tuple[str, PeerId, int], tuple[bytes, Receipt]] = {}
    for receipt, payload in receipts:
        place = (receipt.reservation, receipt.peer, receipt.number)
        if place not in best or counts_instead(payload, best[place][0]):
            best[place] = payload, receipt
    return {payload for payload, receipt in best.values() if spoiled_by(receipt) not in voided}
