"""Receipts about some keys as a tracker's log has them, each checked; and this client's that are not there yet."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from axonp2p.client.ledger.own_keys import keys_with_receipts
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.errors import BadSignature, LogForked, MalformedMessage, NotFound, PeerMisbehaved
from axonp2p.identity.peer_id import PeerId, public_key_of, short
from axonp2p.jobs.lifecycle import JobState
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.credit_proof import CreditProof, counting
from axonp2p.ledger.entry import VOIDED_BEGINS, decode_entry
from axonp2p.ledger.log_client import history, page_by_page
from axonp2p.ledger.log_messages import Included
from axonp2p.ledger.log_watch import FILE, keep_watched, look_at_logs, read_watched
from axonp2p.ledger.receipt import DoublySigned, Receipt, open_doubly_signed, open_receipt
from axonp2p.ledger.tree_head import TreeHead, open_head
from axonp2p.ledger.voiding import Voided, open_voiding
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed

_SIGNED_LIMIT = 4096


@dataclass(frozen=True)
class HistoryLine:
    """One receipt in the log."""

    number: int
    """Of the entry."""
    receipt: Receipt
    counts: bool
    """False when another one with the same reservation, peer and number counts instead, or its peer was convicted."""


@dataclass(frozen=True)
class CreditHistory:
    """The entries of a tracker's log about some keys: one, or all that are one client's."""

    tracker: str
    keys: list[PeerId]
    head: TreeHead
    lines: list[HistoryLine]
    """The newest first."""
    proof: bytes = b""
    """The credit proof, when it was asked for."""


@dataclass(frozen=True)
class PendingCredit:
    """Work that this client accepted and that no log has yet: its peers have not signed."""

    receipts: int
    flops: int

    @property
    def credits(self) -> float:
        """The credits that it will owe for it."""
        return credits_of(self.flops)


def read_key(text: str) -> PeerId:
    """The id in `text`. Raises `NotFound` when it is none."""
    try:
        public_key_of(text)
    except ValueError as error:
        raise NotFound(f"{text} is no key", cause=str(error), fix="axon peers --json    shows whole ids") from error
    return text


def pending_of(records: Iterable[JobRecord], keys: Collection[PeerId]) -> PendingCredit:
    """Of jobs that are under way or may be resumed; at the end of a job what was not signed is void.

    `keys` are this client's: what a host says of a job counts as far as the job's own key has signed it.
    """
    ended = (JobState.FINISHED, JobState.CANCELLED)
    waiting = [data for record in records if record.state not in ended for one in record.receipts for data in one.open]
    receipts = [receipt for data in waiting if (receipt := _opened(data)) is not None and receipt.client in keys]
    return PendingCredit(len(receipts), sum(receipt.flops for receipt in receipts))


def _opened(data: bytes) -> Receipt | None:
    try:
        return open_receipt(decode_as(data, Signed[Receipt], _SIGNED_LIMIT))
    except PeerMisbehaved:
        return None


async def ask_history(
    trackers: TrackerLines, home: Path, keys: Sequence[PeerId], *, most: int, prove: bool
) -> CreditHistory:
    """The newest `most` receipts about any of `keys` (0: all), with `prove` as a credit proof too.

    Raises `LogForked` when the tracker's log is known to be false, and what asking raises.
    """
    caller, told = await trackers.first(lambda caller: _ask(caller, keys, most, prove))
    head = open_head(told.head)
    await compare_heads(caller, home)
    voided = {open_voiding(voiding.voided).spoils for _, voiding in told.voidings}
    receipts = [(one.number, doubly.receipt.payload, open_doubly_signed(doubly)) for one, doubly in told.receipts]
    if any(not {receipt.client, receipt.peer} & set(told.keys) for _, _, receipt in receipts):
        raise MalformedMessage(f"{caller.called} tells receipts about others than was asked")
    counted = counting(((receipt, payload) for _, payload, receipt in receipts), voided)
    lines = [HistoryLine(number, receipt, payload in counted) for number, payload, receipt in receipts]
    return CreditHistory(caller.called, told.keys, head, lines, encode(told.proof()) if prove else b"")


async def compare_heads(caller: HttpCaller, home: Path) -> None:
    """Look at a tracker's log beside what was seen of it before. Raises `LogForked` when it is false."""
    watched = await asyncio.to_thread(read_watched, home)
    (looked,) = await look_at_logs([caller], watched)
    await asyncio.to_thread(keep_watched, home, watched)
    if looked.head and (convicted := watched.conviction_of(looked.head.tracker)):
        raise LogForked(
            f"the log of {caller.called} ({short(convicted.tracker)}) is false: {convicted.why}",
            fix=f"ask another with --tracker ADDRESS; the evidence is in {home / FILE}",
        )


@dataclass(frozen=True)
class _Told:
    """The newest first, each beside what it decodes to."""

    keys: list[PeerId]
    """Those that have receipts, and the first one in any case."""
    head: Signed[TreeHead]
    receipts: list[tuple[Included, DoublySigned]]
    voidings: list[tuple[Included, Voided]]

    def proof(self) -> CreditProof:
        """All of it as a file for others."""
        receipts = [one for one, _ in reversed(self.receipts)]
        voidings = [one for one, _ in reversed(self.voidings)]
        return CreditProof(keys=self.keys, head=self.head, receipts=receipts, voidings=voidings)


async def _ask(caller: HttpCaller, keys: Sequence[PeerId], most: int, prove: bool) -> _Told:
    """The newest receipts of these keys, as many as `most` if there are, and every word that makes some void."""
    used = await keys_with_receipts(caller, keys)
    signed: Signed[TreeHead] | None = None
    found: dict[int, Included] = {}
    void: dict[int, Included] = {}
    for key in used:
        signed = await _ask_one(caller, key, signed, found, most, prove=prove)
        await _ask_one(caller, key, signed, void, 0, prove=prove, only_voidings=True)
    assert signed is not None, "there is a key at least"
    receipts = [(one, entry) for one, entry in _newest_first(found) if not isinstance(entry, Voided)]
    return _Told(used, signed, receipts[: most or None], _voidings(void))


async def ask_voidings(caller: HttpCaller, key: PeerId, *, most: int = 0) -> list[tuple[Included, Voided]]:
    """The newest `most` words (0: all) in a tracker's log that make receipts of or from a key void."""
    found: dict[int, Included] = {}
    await _ask_one(caller, key, None, found, most, prove=False, only_voidings=True)
    return _voidings(found)[: most or None]


def _newest_first(found: Mapping[int, Included]) -> list[tuple[Included, DoublySigned | Voided]]:
    return [(found[number], decode_entry(found[number].entry)) for number in sorted(found, reverse=True)]


def _voidings(found: Mapping[int, Included]) -> list[tuple[Included, Voided]]:
    return [(one, entry) for one, entry in _newest_first(found) if isinstance(entry, Voided)]


async def _ask_one(
    caller: HttpCaller,
    key: PeerId,
    signed: Signed[TreeHead] | None,
    found: dict[int, Included],
    most: int,
    *,
    prove: bool,
    only_voidings: bool = False,
) -> Signed[TreeHead]:
    """Add the newest `most` receipts of a key to `found`, all by one head: `signed`, or the one that is given.

    The words that make some void come along; with `only_voidings` there is nothing but those, `most` of them.
    """
    before = count = 0
    while not (most and count >= most):
        size = open_head(signed).size if signed else 0
        if signed and not size:
            break  # a log without entries
        asked = partial(history, caller, key, before, size, prove=prove, only_voidings=only_voidings)
        told = await page_by_page(asked)
        if signed and _tree(told.head) != _tree(signed):
            raise BadSignature(f"{caller.called} tells parts of two logs as one")
        signed = signed or told.head
        numbers = [one.number for one in told.entries]
        found |= {one.number: one for one in told.entries}
        count += sum(only_voidings or not one.entry.startswith(VOIDED_BEGINS) for one in told.entries)
        if not numbers or not numbers[-1]:
            break
        before = numbers[-1]
    assert signed is not None, "it was asked once at least"
    return signed


def _tree(signed: Signed[TreeHead]) -> tuple[str, str, int, bytes]:
    head = open_head(signed)
    return head.tracker, head.log, head.size, head.root
