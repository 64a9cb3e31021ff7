"""The members of a job are numbered from 0; every message that names one names it by its rank."""

from __future__ import annotations

from typing import Annotated

import msgspec

MOST_MEMBERS = 64
"""Peers of one job."""

Rank = Annotated[int, msgspec.Meta(ge=0, lt=MOST_MEMBERS)]
