"""The client's session of one lease, and the one that takes its place when the client comes back.

What is said to a client that is away is lost: when it is back it asks anew. So nobody behind it ever waits for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from axonp2p.errors import Unreachable
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import Message


class ClientLine:
    """As much of a session as those need that speak to the client."""

    def __init__(self, session: Session) -> None:
        self.session = session
        """The newest."""
        self._came = asyncio.Event()

    def put(self, session: Session) -> Session:
        """The client is back; gives the session that this one replaces."""
        before, self.session = self.session, session
        self._came.set()
        return before

    async def other_than(self, session: Session) -> None:
        """Returns once there is another one."""
        while self.session is session:
            self._came.clear()
            await self._came.wait()

    @property
    def ended(self) -> asyncio.Event:
        """Set when the client is away."""
        return self.session.ended

    async def send(self, message: Message, payload: bytes | memoryview = b"", *, bulk: bool = False) -> None:
        """Say it, if the client is there."""
        with suppress(Unreachable):
            await self.session.send(message, payload, bulk=bulk)
