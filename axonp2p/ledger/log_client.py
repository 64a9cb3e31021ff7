"""A tracker's log, asked from outside."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from axonp2p.errors import BadSignature, MalformedMessage, TooOften
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.entry import decode_entry, key_of_place, read_entry
from axonp2p.ledger.log_messages import (
    ENTRIES_LIMIT,
    HEADS_LIMIT,
    HISTORY_LIMIT,
    LEAVES_LIMIT,
    PROOF_LIMIT,
    EntriesAsked,
    EntriesTold,
    HeadsTold,
    HistoryAsked,
    InclusionAsked,
    InclusionTold,
    KeyHistoryTold,
    LeavesAsked,
    LeavesTold,
    ProofAsked,
)
from axonp2p.ledger.merkle import HASH_BYTES, is_included, leaf_hash
from axonp2p.ledger.tree_head import ConsistencyProof, open_head
from axonp2p.ledger.voiding import VOIDING_LIMIT, EvidenceAsked, EvidenceTold
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import Signed

HEADS_PATH = "/v1/heads"
CONSISTENCY_PATH = "/v1/consistency"
INCLUSION_PATH = "/v1/inclusion"
LEAVES_PATH = "/v1/leaves"
ENTRIES_PATH = "/v1/entries"
HISTORY_PATH = "/v1/history"
EVIDENCE_PATH = "/v1/evidence"
MOST_WAITS, LONGEST_WAIT_S = 3, 10.0
"""How often, and how long, one page of many is waited for at a tracker that was asked too often."""

T = TypeVar("T")


async def page_by_page(ask: Callable[[], Awaitable[T]]) -> T:
    """One page of many, which together are more than a tracker gives at once: waits as long as it says, a few times.

    Raises what `ask` raises, in the end `TooOften` too.
    """
    for _ in range(MOST_WAITS):
        try:
            return await ask()
        except TooOften as error:
            await asyncio.sleep(min(error.wait_s, LONGEST_WAIT_S))
    return await ask()


async def heads(caller: HttpCaller) -> HeadsTold:
    """Its head and those that it saw."""
    return await caller.call(HEADS_PATH, None, HeadsTold, HEADS_LIMIT)


async def consistency(caller: HttpCaller, first: int, second: int) -> Signed[ConsistencyProof]:
    """Its proof, right or wrong, that the larger log continues the smaller one."""
    answer: type[Signed[ConsistencyProof]] = Signed[ConsistencyProof]
    return await caller.call(CONSISTENCY_PATH, ProofAsked(first=first, second=second), answer, PROOF_LIMIT)


async def inclusion(caller: HttpCaller, entry: bytes) -> InclusionTold:
    """The proof that this very entry is in its log, checked. Raises `BadSignature` when it proves nothing."""
    leaf = leaf_hash(entry)
    asked = InclusionAsked(place=key_of_place(read_entry(decode_entry(entry))), leaf=leaf)
    told = await caller.call(INCLUSION_PATH, asked, InclusionTold, HISTORY_LIMIT)
    head = open_head(told.head)
    if not is_included(leaf, told.included.number, head.size, told.included.path, head.root):
        raise BadSignature(f"{caller.called} does not prove that it has the entry")
    return told


async def leaves(caller: HttpCaller, first: int, count: int) -> list[tuple[int, bytes]]:
    """The places (see `place_key`) and hashes of its entries from `first` on."""
    told = await caller.call(LEAVES_PATH, LeavesAsked(first=first, count=count), LeavesTold, LEAVES_LIMIT)
    if len(told.leaves) != len(told.places) * HASH_BYTES or len(told.places) > count:
        raise MalformedMessage(f"{caller.called} tells other hashes than it was asked for")
    hashes = [told.leaves[at : at + HASH_BYTES] for at in range(0, len(told.leaves), HASH_BYTES)]
    return list(zip(told.places, hashes, strict=True))


async def entries(caller: HttpCaller, numbers: Sequence[int]) -> EntriesTold:
    """The first of these entries (1 to 100), one at least."""
    told = await caller.call(ENTRIES_PATH, EntriesAsked(numbers=list(numbers)), EntriesTold, ENTRIES_LIMIT)
    if not 1 <= len(told.entries) <= len(numbers):
        raise MalformedMessage(f"{caller.called} tells other entries than it was asked for")
    return told


async def history(
    caller: HttpCaller,
    key: PeerId,
    before: int = 0,
    size: int = 0,
    *,
    prove: bool = False,
    only_voidings: bool = False,
) -> KeyHistoryTold:
    """The entries about a key, the newest first; with `prove` each with its path, checked. Raises as `inclusion`."""
    asked = HistoryAsked(key=key, before=before, size=size, prove=prove, only_voidings=only_voidings)
    told = await caller.call(HISTORY_PATH, asked, KeyHistoryTold, HISTORY_LIMIT)
    head = open_head(told.head)
    numbers = [one.number for one in told.entries]
    if any(one >= other for one, other in pairwise([*numbers[::-1], before or head.size])):
        raise MalformedMessage(f"{caller.called} tells a history out of order")
    for one in told.entries:
        if prove and not is_included(leaf_hash(one.entry), one.number, head.size, one.path, head.root):
            raise BadSignature(f"{caller.called} does not prove that entry {one.number} is in its log")
    return told


async def evidence(caller: HttpCaller, sha256: bytes) -> EvidenceTold:
    """The evidence with this hash, and the tokens that it stands on. Raises `MalformedMessage` for any other bytes."""
    told = await caller.call(EVIDENCE_PATH, EvidenceAsked(sha256=sha256), EvidenceTold, VOIDING_LIMIT)
    if hashlib.sha256(told.evidence).digest() != sha256:
        raise MalformedMessage(f"{caller.called} tells other evidence than it was asked for")
    return told
