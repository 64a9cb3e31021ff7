"""How the links of one lease use this machine's line: as `transport.link.LinkShaper` asks."""

from __future__ import annotations

import time
from collections.abc import Hashable

from axonp2p.transport.lanes.lane import BulkLane
from axonp2p.transport.sessions.session import Session
from peer_daemon.execution.lease_context import LeaseContext
from peer_daemon.execution.worker_credit import WorkerCredit


class LeaseLinkShaper:
    """The links share the line with all other leases; what they have taken, the worker may say again."""

    def __init__(self, context: LeaseContext, credit: WorkerCredit) -> None:
        self._context = context
        self._credit = credit
        self.carried_bytes = 0
        """The bytes that the worker sent to members, and that they took."""

    async def turn(self, link: Hashable, count: int) -> None:
        """`LinkShaper`."""
        await self._context.upload.bulk(link, count)

    async def word(self, count: int) -> None:
        """`LinkShaper`."""
        await self._context.upload.word(count)

    def went(self, rank: int, count: int) -> None:
        """`LinkShaper`."""
        self.carried_bytes += count
        self._credit.went(rank, count)

    def opened(self, session: Session) -> None:
        """`LinkShaper`."""
        session.slow_down(self.hold_back)
        self._context.line.watch(session)

    def lane_opened(self, lane: BulkLane) -> None:
        """`LinkShaper`."""
        self._context.line.watch(lane)

    def hold_back(self, count: int) -> float:
        """For how many seconds the owner's limit holds back what comes after so many bytes, also on sessions."""
        return self._context.download.wait(count, time.monotonic())
