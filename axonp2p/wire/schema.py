"""Which messages this build speaks: builds of different age refuse each other by name, before any work is begun (pure).

`WORK_SCHEMA` is a hash of all messages that a client, peers and workers say to each other during a job: their names,
fields, types, limits and defaults. A peer's row, `TakeLease` and `Prepare` carry it. `scripts/write_messages_page`
writes it, and a test holds it to the types.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from axonp2p.errors import VersionMismatch

WORK_SCHEMA: Final = "f95b02dbe8b53e9b"

Schema = Annotated[str, msgspec.Meta(max_length=16)]
"""Sixteen hexadecimal digits; empty in messages of a build that did not say it."""


def check_schema(theirs: str, who: str) -> None:
    """Raise `VersionMismatch` when `who` (such as "the client") speaks other messages than this build."""
    if theirs != WORK_SCHEMA:
        raise VersionMismatch(
            f"{who} runs another version of Axon",
            cause=f"its messages are {theirs or 'older than their own hash'}, those of this side {WORK_SCHEMA}",
            fix="install the same version of Axon on both sides: pip install --upgrade axonp2p",
        )
