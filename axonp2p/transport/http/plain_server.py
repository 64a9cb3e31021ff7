"""HTTP without TLS, for pages and metrics on this computer or a network that its operator trusts: bounded (a door)."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from axonp2p.errors import PortTaken, SettingsError
from axonp2p.transport.address import join_host_port
from axonp2p.transport.http.http_replies import name_server

HEAD_BYTES = 8 * 1024
MOST_CONNECTIONS = 64
"""Open at once; more are closed as they come. Browsers and scrapers hold a few."""
KEEP_ALIVE_S = 15.0
CLOSED_WITHIN_S = 1.0


class PlainServer:
    """Serves `app`. `called` names it for people ("operator's page")."""

    def __init__(self, app: web.Application, *, called: str, fix: str, headers: Mapping[str, str]) -> None:
        """`fix` is what they type to get a free port ("--page-listen 127.0.0.1:0"). `headers` are on every answer that
        does not say otherwise."""
        self._called, self._fix = called, fix
        app.on_response_prepare.extend([name_server, _adding(headers)])
        # No log of requests: nobody needs it, and what is not written cannot tell anything.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=CLOSED_WITHIN_S,
            keepalive_timeout=KEEP_ALIVE_S,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
        )
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; gives the port. Raises `PortTaken` or `SettingsError`."""
        await self._runner.setup()
        serves = self._runner.server
        assert serves is not None

        def new() -> asyncio.Protocol:
            return serves() if len(serves.connections) < MOST_CONNECTIONS else _TooMany()

        try:
            self._server = await asyncio.get_running_loop().create_server(new, host, port)
        except OSError as error:
            await self._runner.cleanup()
            raise self._cannot_listen(error, join_host_port(host, port)) from error
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """Close every connection. Harmless when it does not listen."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._runner.cleanup()

    def _cannot_listen(self, error: OSError, where: str) -> SettingsError:
        if error.errno == errno.EADDRINUSE:
            return PortTaken(
                f"{where} is taken, so there is no {self._called}",
                fix=f"{self._fix}    takes a free port",
            )
        return SettingsError(
            f"the {self._called} cannot listen at {where}",
            cause=error.strerror or str(error),
            fix=f"{self._fix}    takes a free port of this computer",
        )


class _TooMany(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


def _adding(headers: Mapping[str, str]) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    async def add(request: web.Request, response: web.StreamResponse) -> None:
        for name, value in headers.items():
            response.headers.setdefault(name, value)

    return add
