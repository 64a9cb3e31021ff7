"""Balances as a table; receipts of some keys as a table and as CSV. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from axonp2p.client.ledger.credit_history import CreditHistory, HistoryLine, PendingCredit
from axonp2p.client.queries import Credits
from axonp2p.errors import Ambiguous
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.balances import credits_of
from axonp2p.plain_text import columns, plural
from client_cli.text.render import credits_text, flops_text

MOST_NAMED = 5
"""Keys in one message."""


def credits_table(credits: Credits) -> str:
    """A line a key, and what they are the sum of; where the tracker tells it, what of each one's earnings stands."""
    tells_standing = any(balance.stands is not None for balance in credits.balances)
    rows = [
        [
            balance.name,
            short(balance.key),
            credits_text(balance.earned),
            *([credits_text(balance.stands or 0)] if tells_standing else []),
            credits_text(balance.owed),
            flops_text(balance.earned_flops or balance.owed_flops),
            str(balance.receipts),
        ]
        for balance in credits.balances
    ]
    heads = ["who", "id", "earned", *(["stands"] if tells_standing else []), "owed", "work", "receipts"]
    table = columns(heads, rows, right=range(2, len(heads)))
    text = f"{table}\nsum of {plural(credits.receipts, 'receipt')} at {credits.tracker}"
    if credits.hosted:
        by_job = ", ".join(f"{one.name} {credits_text(one.owed)}" for one in credits.hosted)
        text += f"\nyours includes what hosts signed for: {by_job} owed"
    return text


def whole_key(text: str, names: Mapping[PeerId, str]) -> str:
    """The id that is meant: a whole one, or the beginning or the name of one of `names`. Raises `Ambiguous`.

    A word that fits none of them is given back as it is.
    """
    begun = text.lower()
    found = [key for key, name in names.items() if begun and (key.startswith(begun) or name == text)]
    if len(found) > 1:
        told = ", ".join(sorted(f"{names[key]} ({short(key)})" for key in found)[:MOST_NAMED])
        raise Ambiguous(f"{text} matches {len(found)} keys: {told}", fix="give more of the id")
    return found[0] if found else text


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
    """The text about receipts of this client's jobs that peers have not signed yet; empty when there are none."""
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
