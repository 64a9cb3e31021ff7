"""Balances as a table. Pure."""

from __future__ import annotations

from axonp2p.client.looking import Credits
from axonp2p.identity.peer_id import short
from axonp2p.plain_text import columns, plural
from client_cli.render import credits_text, flops_text


def credits_table(credits: Credits) -> str:
    """A line a key, and what they are the sum of."""
    rows = [
        [
            balance.name,
            short(balance.key),
            credits_text(balance.earned),
            credits_text(balance.owed),
            flops_text(balance.earned_flops or balance.owed_flops),
            str(balance.receipts),
        ]
        for balance in credits.balances
    ]
    table = columns(["who", "id", "earned", "owed", "work", "receipts"], rows, right=(2, 3, 4, 5))
    text = f"{table}\nsum of {plural(credits.receipts, 'receipt')} at {credits.tracker}"
    if credits.hosted:
        by_job = ", ".join(f"{one.name} {credits_text(one.owed)}" for one in credits.hosted)
        text += f"\nyours includes what hosts signed for: {by_job} owed"
    return text
