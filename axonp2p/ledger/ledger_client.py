"""A tracker's ledger, asked from outside."""

from __future__ import annotations

from collections.abc import Sequence

from axonp2p.errors import MalformedMessage
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.receipt import (
    BALANCES_LIMIT,
    RECEIPTS_KEPT_LIMIT,
    Balances,
    BalancesAsked,
    DoublySigned,
    Receipts,
    ReceiptsKept,
)
from axonp2p.ledger.voiding import VOIDING_KEPT_LIMIT, VoidingHandedIn, VoidingKept
from axonp2p.transport.http.http_caller import HttpCaller

RECEIPTS_PATH = "/v1/receipts"
VOIDINGS_PATH = "/v1/voidings"
BALANCES_PATH = "/v1/balances"


async def hand_in(
    caller: HttpCaller, receipts: Sequence[DoublySigned], tokens: Sequence[bytes] = (), *, relayed: bool = False
) -> ReceiptsKept:
    """Give receipts (1 to 200) to a tracker. It holds on disk each one that it counts as new or known.

    `tokens` (encoded `Signed[Token]`) belong to reservations that another tracker, or a peer, gave; `relayed` is for
    trackers that pass receipts on. `receipt_batch_of` finds how many of both fit. Raises `MalformedMessage` when
    the answer does not account for every receipt, and what `HttpCaller.call` raises.
    """
    asked = Receipts(receipts=list(receipts), tokens=list(tokens), relayed=relayed)
    kept = await caller.call(RECEIPTS_PATH, asked, ReceiptsKept, RECEIPTS_KEPT_LIMIT)
    refused = kept.refused
    if kept.new + kept.known + len(refused) != len(receipts) or any(index >= len(receipts) for index in refused):
        raise MalformedMessage(f"{caller.called} does not account for all of {len(receipts)} receipts")
    return kept


async def hand_in_voiding(caller: HttpCaller, voiding: VoidingHandedIn) -> VoidingKept:
    """Give a conviction to a tracker. Without a reason against it, the tracker holds it on disk."""
    return await caller.call(VOIDINGS_PATH, voiding, VoidingKept, VOIDING_KEPT_LIMIT)


async def balances(caller: HttpCaller, keys: Sequence[PeerId] = (), job: str = "") -> Balances:
    """Sums over a tracker's receipts: of these keys, of everyone in one job, of both, or of the largest earners."""
    return await caller.call(BALANCES_PATH, BalancesAsked(keys=list(keys), job=job), Balances, BALANCES_LIMIT)
