"""Receipts of some keys as a table and as CSV. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from axonp2p.client.ledger.credit_history import CreditHistory, HistoryLine, PendingCredit
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.balances import credits_of
from axonp2p.plain_text import columns, plural
from client_cli.text.render import credits_text, flops_text

CSV_COLUMNS = (
    "entry", "issued", "job", "round", "client", "peer", "flops", "credits", "samples", "milliseconds", "reservation",
    "number", "counts",
)  # fmt: skip


def history_table(history: CreditHistory, names: Mapping[PeerId, str]) -> str:
    """A line a receipt, the newest first."""
    rows = [_cells(line, history.keys, names) for line in history.lines]
    heads = ["entry", "when (UTC)", "job", "round", "earned from / owed to", "credits", "work"]
    table = columns(heads, rows, right=(0, 3, 5, 6)) if rows else "no receipt yet"
    return f"{table}\n{history.tracker}: log of {history.head.size:,} entries, root {history.head.root.hex()[:16]}"


def pending_text(pending: PendingCredit) -> str:
    """What this client's jobs wait for; empty when it is nothing."""
    if not pending.receipts:
        return ""
    amount = credits_text(pending.credits)
    return f"pending: {plural(pending.receipts, 'receipt')} of yours, {amount} credits, that peers have not signed yet"


def history_csv(history: CreditHistory) -> str:
    """All of it, the oldest first, as a table for other programs."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for line in reversed(history.lines):
        writer.writerow(history_row(line))
    return text.getvalue().rstrip("\n")


def history_row(line: HistoryLine) -> dict[str, object]:
    """One receipt for programs."""
    receipt = line.receipt
    return {
        "entry": line.number,
        "issued": _when(receipt.issued).isoformat(),
        "job": receipt.job,
        "round": receipt.round,
        "client": receipt.client,
        "peer": receipt.peer,
        "flops": receipt.flops,
        "credits": credits_of(receipt.flops),
        "samples": receipt.samples,
        "milliseconds": receipt.milliseconds,
        "reservation": receipt.reservation,
        "number": receipt.number,
        "counts": int(line.counts),
    }


def _cells(line: HistoryLine, keys: Sequence[PeerId], names: Mapping[PeerId, str]) -> list[str]:
    receipt = line.receipt
    earned = receipt.peer in keys
    other = receipt.client if earned else receipt.peer
    amount = credits_text(credits_of(receipt.flops)) if line.counts else "void"
    return [
        str(line.number),
        f"{_when(receipt.issued):%Y-%m-%d %H:%M}",
        receipt.job,
        str(receipt.round + 1),
        f"{'from' if earned else 'to'} {names.get(other, short(other))}",
        amount,
        flops_text(receipt.flops),
    ]


def _when(unix_seconds: int) -> datetime:
    # A receipt may say any time: one that no calendar has is shown as the latest that it has.
    return datetime.fromtimestamp(min(unix_seconds, 253402300799), UTC)
