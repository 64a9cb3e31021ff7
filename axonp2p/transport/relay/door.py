"""Where registrations arrive, and what else may begin a session beside them: at a tracker (a door)."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from aiohttp import web

from axonp2p.errors import MalformedMessage, Refused
from axonp2p.transport.relay.server import RelayServer
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tunnel.messages import RegisterAtRelay

FIRST_MESSAGE_S = 10.0
"""How long a caller may take to say what it wants."""


class OtherSessions(Protocol):
    """The handler of sessions that are opened for something else."""

    asks: Any
    """The messages with which one begins: a union."""

    async def serve(self, session: Session, message: Any, payload: memoryview) -> None:
        """Have the session, whose first message was one of `asks`, until this returns or raises an `AxonError`."""


class RelayDoor:
    """Sessions of who wants to be carried to, and CONNECT of who wants to reach them."""

    def __init__(self, server: RelayServer | None, called: str, beside: OtherSessions | None = None) -> None:
        """Without a `server` everybody is told that `called` carries nothing."""
        self.server = server
        self._called = called
        self._beside = beside

    def add_to(self, app: web.Application) -> None:
        """CONNECT, and what the called peers ask."""
        if self.server is not None:
            app.middlewares.append(self.server.connects)
            self.server.add_routes(app)

    async def serve(self, session: Session) -> None:
        """`Listener.serve_sessions`."""
        first = RegisterAtRelay if self._beside is None else RegisterAtRelay | self._beside.asks
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S):
                message, payload = await session.receive(first)
        except TimeoutError:
            raise Refused(f"nothing was said within {FIRST_MESSAGE_S:.0f} s") from None
        if self._beside and not isinstance(message, RegisterAtRelay):
            await self._beside.serve(session, message, payload)
            return
        if self.server is None:
            raise Refused(f"{self._called} carries connections for nobody")
        if payload:
            raise MalformedMessage("a first message has no payload")
        await self.server.serve(session)

    async def stop(self) -> None:
        """End every stream."""
        if self.server is not None:
            await self.server.stop()
