"""Balances as a table. Pure."""

from __future__ import annotations

from axonp2p.client.queries import Credits
from axonp2p.identity.peer_id import short
from axonp2p.plain_text import columns, plural
from client_cli.text.render import credits_text, flops_text


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
