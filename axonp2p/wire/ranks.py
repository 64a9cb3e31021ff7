"""The members of a job are numbered from 0; every message that names one names it by its rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

MOST_MEMBERS = 64
"""Peers of one job at a time."""
MOST_RANKS = 4096
"""Peers that one job may ever have: a rank is never given twice."""

Rank = Annotated[int, msgspec.Meta(ge=0, lt=MOST_RANKS)]


def bytes_of(ranks: Sequence[int]) -> bytes:
    """Their number and the ranks, for hashes: two bytes each, which every rank fits."""
    return b"".join(number.to_bytes(2, "big") for number in (len(ranks), *ranks))
