"""GET /metrics on a listener of its own, without TLS: for Prometheus on this computer, or where its operator says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from axonp2p.transport.address import join_host_port, split_host_port
from axonp2p.transport.http.plain_server import PlainServer

OPTION = "--metrics-listen"
FRESH_S = 1.0
"""Metrics are made at most once in so many seconds, however often somebody asks."""


class MetricsListener:
    """`page` makes the text and its content type; `listen` is HOST:PORT."""

    def __init__(self, page: Callable[[], tuple[bytes, str]], listen: str) -> None:
        """Raises `SettingsError` for what is not HOST:PORT."""
        self._make = page
        self._made: tuple[bytes, str] = (b"", "")
        self._made_at = float("-inf")
        self._host, self._port = split_host_port(listen)
        app = web.Application()
        app.router.add_get("/metrics", self._page)
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        self._server = PlainServer(app, called="listener for metrics", fix=f"{OPTION} 127.0.0.1:0", headers=headers)

    async def start(self) -> str:
        """Listen; gives the address. Raises `PortTaken` or `SettingsError`."""
        port = await self._server.start(self._host, self._port)
        return f"http://{join_host_port(self._host, port)}/metrics"

    async def stop(self) -> None:
        """Close every connection."""
        await self._server.stop()

    async def _page(self, request: web.Request) -> web.Response:
        now = asyncio.get_running_loop().time()
        if now - self._made_at >= FRESH_S:
            self._made, self._made_at = self._make(), now
        body, content_type = self._made
        return web.Response(body=body, headers={"Content-Type": content_type})
