"""Balances as a table. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from axonp2p.client.queries import Credits
from axonp2p.errors import Ambiguous
from axonp2p.identity.peer_id import PeerId, short
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

    What fits none of them is given back as it is.
    """
    begun = text.lower()
    found = [key for key, name in names.items() if begun and (key.startswith(begun) or name == text)]
    if len(found) > 1:
        told = ", ".join(sorted(f"{names[key]} ({short(key)})" for key in found)[:MOST_NAMED])
        raise Ambiguous(f"{text} matches {len(found)} keys: {told}", fix="give more of the id")
    return found[0] if found else text
