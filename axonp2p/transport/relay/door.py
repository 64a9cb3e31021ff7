"""Where registrations arrive when sessions serve nothing else: at a tracker (a door)."""

from __future__ import annotations

import asyncio

from aiohttp import web

from axonp2p.errors import MalformedMessage, Refused
from axonp2p.transport.relay.messages import RegisterAtRelay
from axonp2p.transport.relay.server import RelayServer
from axonp2p.transport.session import Session

FIRST_MESSAGE_S = 10.0
"""How long a caller may take to say what it wants."""


class RelayDoor:
    """Sessions of who wants to be carried to, and CONNECT of who wants to reach them."""

    def __init__(self, server: RelayServer | None, called: str) -> None:
        """Without a `server` everybody is told that `called` carries nothing."""
        self.server = server
        self._called = called

    def add_to(self, app: web.Application) -> None:
        """CONNECT, and what the called peers ask."""
        if self.server is not None:
            app.middlewares.append(self.server.connects)
            self.server.add_routes(app)

    async def serve(self, session: Session) -> None:
        """`Listener.serve_sessions`."""
        if self.server is None:
            raise Refused(f"{self._called} carries connections for nobody")
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S):
                _, payload = await session.receive(RegisterAtRelay)
        except TimeoutError:
            raise Refused(f"nothing was said within {FIRST_MESSAGE_S:.0f} s") from None
        if payload:
            raise MalformedMessage("a first message has no payload")
        await self.server.serve(session)

    async def stop(self) -> None:
        """End every stream."""
        if self.server is not None:
            await self.server.stop()
