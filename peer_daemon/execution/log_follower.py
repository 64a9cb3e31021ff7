"""Sends a client what its job writes, as it comes: cleaned, at a pace. Nothing is kept for it but the log itself."""

from __future__ import annotations

import asyncio

from axonp2p.errors import Unreachable
from axonp2p.jobs.messages import LOG_BYTES_A_SECOND, MOST_LOG_NEWS, LogNews
from axonp2p.sandbox.log import harmless, without_a_broken_end
from axonp2p.transport.sessions.session import Session
from peer_daemon.execution.lease_context import RunningWorker
from peer_daemon.links.in_turn import InTurn

LOOK_EVERY_S = 0.25
_MOST_READ = MOST_LOG_NEWS // 3
"""A byte that is replaced becomes three."""


class LogFollower:
    """One session's. Who writes faster than is sent goes on: what is no longer kept by then is left out."""

    def __init__(self, session: Session, upload: InTurn, worker: RunningWorker) -> None:
        self._session = session
        self._upload = upload
        self._worker = worker
        self._following: asyncio.Task[None] | None = None

    def follow(self, start: int) -> None:
        """From that byte on; one that was followed before is followed no more."""
        self.stop()
        self._following = asyncio.create_task(self._follow(start))

    def stop(self) -> None:
        """Send nothing more."""
        if self._following is not None:
            self._following.cancel()

    async def _follow(self, at: int) -> None:
        while True:
            start, written = self._worker.log_since(at, _MOST_READ)
            written = without_a_broken_end(written)
            if not written:
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            at = start + len(written)
            text = harmless(written).encode()
            await self._upload.bulk(self._session, len(text))
            try:
                await self._session.send(LogNews(start=start, end=at), text, bulk=True)
            except Unreachable:
                return  # the client is away: it asks anew when it is back
            await asyncio.sleep(max(LOOK_EVERY_S, len(text) / LOG_BYTES_A_SECOND))
