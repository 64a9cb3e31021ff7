"""Announces, whichever door they come in by: each rule for them is asked here, in one order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from axonp2p.clock import Clock
from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import LEAST_PING_S, Announced, Row
from axonp2p.transport.address import source_of
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.wire.envelope import Signed
from tracker.table.admission import open_announced
from tracker.table.announce_interval import AnnounceInterval
from tracker.table.table_store import TableStore

ANNOUNCES_A_SECOND_OF_ONE, ANNOUNCES_AT_ONCE_OF_ONE = 2.0, 120.0
"""The announces that one key may make: short jobs, one after the other, change its row twice each."""
NEWCOMER_COSTS = 3.0
"""An announce of a peer that is not known yet; a household has few that are new, and a flood nothing else."""
PINGS_A_SECOND = 20.0


class AdmittedRow(NamedTuple):
    """A row that this tracker takes."""

    row: Row
    now: float
    """When it came, Unix time."""
    stored: asyncio.Future[None] | None
    """Done once it is durable; None: it is already."""


class Announces:
    """Takes rows in. `interval` is how often peers shall announce themselves."""

    def __init__(
        self, tracker: PeerId, table: TableStore, limit: RateLimit, interval: AnnounceInterval, clock: Clock
    ) -> None:
        """`limit` is what each household may ask, of which the door has taken one request already."""
        self._tracker = tracker
        self._table = table
        self._limit = limit
        self._interval = interval
        self._clock = clock
        self._keys = RateLimit(ANNOUNCES_A_SECOND_OF_ONE, ANNOUNCES_AT_ONCE_OF_ONE)
        self.first_look: Callable[[Row, str], bool | None] = lambda row, source: None
        """Whether a peer that announces from this IP address can be called there; None until that is known."""

    async def take(self, signed: Signed[Row], address: str) -> Announced:
        """The answer to a row, or a withdrawal, that came from the IP address `address`; it is durable by then.

        Raises an `AxonError` that names the one reason why it is not taken.
        """
        accepted = self.accept(signed, address)
        if accepted.stored is not None:
            await asyncio.shield(accepted.stored)  # another may wait for it too
        return self.answer(accepted, address)

    def accept(self, signed: Signed[Row], address: str) -> AdmittedRow:
        """Have a row stored, and wait for nothing: once that is done, `answer`. Raises as `take`."""
        now = self._clock.now()
        if not self._table.index.knows(signed.signer):
            self._limit.take(address, self._clock.monotonic(), NEWCOMER_COSTS - 1)
        row = open_announced(signed, now)
        if row.capability is not None:  # who leaves is always heard
            # After the signature: else anybody could use it up.
            self._keys.charge(signed.signer, self._clock.monotonic())
        return AdmittedRow(row, now, self._table.keep(signed, row, now, source_of(address)))

    def answer(self, accepted: AdmittedRow, address: str) -> Announced:
        """The answer to a peer whose row is durable."""
        again_in = self._interval.again_in
        return Announced(
            tracker=self._tracker,
            again_in=again_in,
            seen_from=address,
            time=accepted.now,
            reached=self.first_look(accepted.row, address),
            ping_in=ping_in(len(self._table.index), again_in),
        )


def ping_in(peers: int, again_in: float) -> float | None:
    """How often each of so many peers may look whether this tracker lives, in seconds; None for not at all.

    A peer that looks finds another tracker, or this one after an outage, sooner than at its next announce. All of them
    together look 20 times a second, so only a small swarm does.
    """
    seconds = max(LEAST_PING_S, peers / PINGS_A_SECOND)
    return seconds if seconds <= again_in / 2 else None
