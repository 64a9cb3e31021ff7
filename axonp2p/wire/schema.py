"""Which messages this build speaks: builds of different age refuse each other by name, before any work is begun (pure).

`SCHEMAS` has a hash for each kind of job, over all messages that a client, peers and workers say to each other in such
a job: their names, fields, types, limits and defaults. An optional field is left out: a message that does not use it
is the same bytes to a build that lacks it (docs/decisions/0045). A peer's row, `TakeLease` and the first order to a
worker carry it. `scripts/write_messages_page` writes it, and a test holds it to the types.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from axonp2p.errors import VersionMismatch

SCHEMAS: Final = {
    "train": "e2c67c3a7ee26d5d",
    "run": "a0a070da13be5cb4",
    "map": "d84ef841d9a82231",
}
"""By kind of job."""
IN_ROWS: Final = "train"
"""The kind whose hash stands in a row, which has room for one. Of other kinds the peer itself says no, at the lease."""

Schema = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{16})?\Z")]
"""Sixteen hexadecimal digits; empty in messages of a build that did not say it."""


def row_differs(theirs: str, kind: str) -> bool:
    """Whether a peer with this hash in its row is known to speak other messages in jobs of that kind."""
    return kind == IN_ROWS and theirs != SCHEMAS[IN_ROWS]


def check_schema(theirs: str, kind: str) -> None:
    """Raise `VersionMismatch` when the client speaks other messages than this build in such jobs."""
    ours = SCHEMAS.get(kind)
    if theirs == ours:
        return
    cause = f"its messages are {theirs or 'older than their own hash'}, those of this side {ours}"
    raise VersionMismatch(
        "the client runs another version of Axon",
        cause=cause if ours else f"this side knows no jobs of the kind {kind!r}, only: {', '.join(SCHEMAS)}",
        fix="install the same version of Axon on both sides: pip install --upgrade axonp2p",
    )
