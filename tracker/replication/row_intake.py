"""Rows that another tracker sent: each is checked as if a stranger had announced it, then kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, BadSignature
from axonp2p.logs import get_logger
from axonp2p.table.records import Row, open_row
from axonp2p.wire.envelope import Signed
from tracker.replication.replica import Replica
from tracker.table.row_sources import PassedOnBy
from tracker.table.table_store import TableStore

log = get_logger(__name__)

MOST_CHECKED_AT_ONCE = 32
"""Signatures that are checked in the event loop (40 microseconds each); more go to a thread."""


@dataclass(frozen=True)
class Taken:
    """The outcome for some rows."""

    new: int
    left: int
    """Rows that were not kept though their peers signed them: no room, a clock that is wrong."""
    no_room: bool = False
    """Whether there is no room for more rows of who sent them."""


class RowIntake:
    """Takes rows in."""

    def __init__(self, table: TableStore, replica: Replica, clock: Clock) -> None:
        self._table = table
        self._replica = replica
        self._clock = clock

    async def take(self, rows: Sequence[Signed[Row]], learnt: PassedOnBy | None) -> Taken:
        """Keep those that are believed and not known; durable when this returns.

        They count for the `learnt` tracker that sent them; None for a trusted one.
        """
        now = self._clock.now()
        unknown = [signed for signed in rows if not self._is_known(signed)]
        if len(unknown) > MOST_CHECKED_AT_ONCE:
            opened, forged = await asyncio.to_thread(_open_all, unknown, now)
        else:
            opened, forged = _open_all(unknown, now)
        if not opened:
            return Taken(0, len(unknown) - forged)
        new = len(await self._table.keep_many(opened, now, learnt))
        kept = sum(self._has(row) for _, row in opened)
        return Taken(new, len(unknown) - forged - kept, not self._table.has_room_for(learnt))

    def _is_known(self, signed: Signed[Row]) -> bool:
        known = self._replica.index.signed_of(signed.signer)
        return known is not None and known.payload == signed.payload

    def _has(self, row: Row) -> bool:
        return (self._replica.index.sequence_of(row.peer) or -1) >= row.sequence


def _open_all(rows: Sequence[Signed[Row]], now: float) -> tuple[list[tuple[Signed[Row], Row]], int]:
    """The rows that are to be believed, and how many were forged."""
    opened, forged = [], 0
    for signed in rows:
        try:
            opened.append((signed, open_row(signed, now)))
        except BadSignature as error:
            forged += 1
            log.warning("forged row from a tracker", reason=error.message)
        except AxonError as error:
            log.debug("row from a tracker not taken", reason=error.message)
    return opened, forged
