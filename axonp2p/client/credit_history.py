"""The receipts of a key as a tracker's log has them, each checked; and those of this client that are not there yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from axonp2p.client.job_store import JobRecord
from axonp2p.errors import LogForked, NotFound
from axonp2p.identity.peer_id import PeerId, public_key_of, short
from axonp2p.jobs.lifecycle import JobState
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.credit_proof import CreditProof, counting
from axonp2p.ledger.entry import decode_entry
from axonp2p.ledger.log_client import history
from axonp2p.ledger.log_messages import Included
from axonp2p.ledger.log_watch import FILE, keep_watched, look_at_logs, read_watched
from axonp2p.ledger.receipt import DoublySigned, Receipt, open_doubly_signed, open_receipt
from axonp2p.ledger.tree_head import TreeHead, open_head
from axonp2p.ledger.voiding import Voided, open_voiding
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http_caller import HttpCaller
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
class History:
    """What a tracker's log has about a key."""

    tracker: str
    key: PeerId
    head: TreeHead
    lines: list[HistoryLine]
    """The newest first."""
    proof: bytes = b""
    """The credit proof, when it was asked for."""


@dataclass(frozen=True)
class Pending:
    """Work that this client accepted and that no log has yet: its peers have not signed."""

    receipts: int
    flops: int

    @property
    def credits(self) -> float:
        """What it will owe for it."""
        return credits_of(self.flops)


def read_key(text: str) -> PeerId:
    """The id in `text`. Raises `NotFound` when it is none."""
    try:
        public_key_of(text)
    except ValueError as error:
        raise NotFound(f"{text} is no key", cause=str(error), fix="axon peers --json    shows whole ids") from error
    return text


def pending_of(records: Iterable[JobRecord]) -> Pending:
    """Of jobs that are under way or may be resumed; at the end of a job what was not signed is void."""
    ended = (JobState.FINISHED, JobState.CANCELLED)
    waiting = [data for record in records if record.state not in ended for one in record.receipts for data in one.open]
    receipts = [open_receipt(decode_as(data, Signed[Receipt], _SIGNED_LIMIT)) for data in waiting]
    return Pending(len(receipts), sum(receipt.flops for receipt in receipts))


async def ask_history(trackers: TrackerLines, home: Path, key: PeerId, *, most: int, prove: bool) -> History:
    """The newest `most` receipts about `key` (0: all), with `prove` as a credit proof too.

    Raises `LogForked` when the tracker's log is known to be false, and what asking raises.
    """
    caller, told = await trackers.first(lambda caller: _ask(caller, key, most, prove))
    head = open_head(told.head)
    await compare_heads(caller, home)
    voided = {open_voiding(voiding.voided).spoils for _, voiding in told.voidings}
    receipts = [(one.number, doubly.receipt.payload, open_doubly_signed(doubly)) for one, doubly in told.receipts]
    counted = counting(((receipt, payload) for _, payload, receipt in receipts), voided)
    lines = [HistoryLine(number, receipt, payload in counted) for number, payload, receipt in receipts]
    return History(caller.called, key, head, lines, encode(told.proof(key)) if prove else b"")


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

    head: Signed[TreeHead]
    receipts: list[tuple[Included, DoublySigned]]
    voidings: list[tuple[Included, Voided]]

    def proof(self, key: PeerId) -> CreditProof:
        """All of it as a file for others."""
        receipts = [one for one, _ in reversed(self.receipts)]
        voidings = [one for one, _ in reversed(self.voidings)]
        return CreditProof(key=key, head=self.head, receipts=receipts, voidings=voidings)


async def _ask(caller: HttpCaller, key: PeerId, most: int, prove: bool) -> _Told:
    """The newest receipts of a key, at least `most` if there are so many, and every word that makes some void."""
    told = await history(caller, key, prove=prove)
    head, found = told.head, list(told.entries)
    while told.entries and (not most or len(found) < most) and found[-1].number:
        told = await history(caller, key, found[-1].number, open_head(head).size, prove=prove)
        found += told.entries
    receipts: list[tuple[Included, DoublySigned]] = []
    for one in found:
        if not isinstance(entry := decode_entry(one.entry), Voided):
            receipts.append((one, entry))
    size = open_head(head).size
    voidings = await ask_voidings(caller, key, size, prove=prove) if size else []
    return _Told(head, receipts[: most or None], voidings)


async def ask_voidings(
    caller: HttpCaller, key: PeerId, size: int = 0, *, most: int = 0, prove: bool = False
) -> list[tuple[Included, Voided]]:
    """Every word in a tracker's log (of so many entries; 0: as it is) that makes receipts of or from a key void.

    The newest `most`; 0 for all.
    """
    found: list[tuple[Included, Voided]] = []
    before = 0
    while True:
        told = await history(caller, key, before, size, prove=prove, only_voidings=True)
        for one in told.entries:
            if isinstance(entry := decode_entry(one.entry), Voided):
                found.append((one, entry))
        before = told.entries[-1].number if told.entries else 0
        if not before or 0 < most <= len(found):
            return found[: most or None]
