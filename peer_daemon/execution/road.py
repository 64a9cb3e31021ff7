"""How the links of one lease use this machine's line: as `transport.link.Road` asks."""

from __future__ import annotations

import time
from collections.abc import Hashable

from axonp2p.transport.sessions.session import Session
from peer_daemon.execution.worker_credit import WorkerCredit
from peer_daemon.execution.workplace import Workplace


class LeaseRoad:
    """The links share the line with all other leases; what they have taken, the worker may say again."""

    def __init__(self, place: Workplace, credit: WorkerCredit) -> None:
        self._place = place
        self._credit = credit
        self.carried_bytes = 0
        """What the worker said to members, and they took."""

    async def turn(self, link: Hashable, count: int) -> None:
        """`Road`."""
        await self._place.upload.bulk(link, count)

    async def word(self, count: int) -> None:
        """`Road`."""
        await self._place.upload.word(count)

    def went(self, rank: int, count: int) -> None:
        """`Road`."""
        self.carried_bytes += count
        self._credit.went(rank, count)

    def opened(self, session: Session) -> None:
        """`Road`."""
        session.slow_down(self.hold_back)
        self._place.line.watch(session)

    def hold_back(self, count: int) -> float:
        """For how many seconds the owner's limit holds back what comes after so many bytes."""
        return self._place.download.wait(count, time.monotonic())
