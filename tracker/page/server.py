"""The operator's page as a small HTTP server on loopback: it shows, and takes no orders."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Protocol

from aiohttp import web

from axonp2p.errors import AxonError
from axonp2p.transport.http.loopback_server import LoopbackServer
from axonp2p.transport.http.own_page import LOOK
from tracker.page.overview import Overview

STATIC = Path(__file__).parent / "static"
ICON = STATIC / "icon.svg"
FILES = {
    "look.css": (LOOK, "text/css"),
    "page.css": (STATIC / "page.css", "text/css"),
    "page.js": (STATIC / "page.js", "text/javascript"),
    "icon.svg": (ICON, "image/svg+xml"),
}
"""All that is served from the disk; nothing else of the folder is."""
OPTION = "--page-listen"
FRESH_S = 1.0
"""The page is made at most once in so many seconds, and by one request at a time, however often somebody asks."""


class Collects(Protocol):
    """The values shown come from it: `recorder`."""

    async def overview(self) -> Overview:
        """As it is now. Raises `Busy` while the tracker starts."""
        ...


class OperatorPage:
    """Shows what `recorder` collects to browsers of this computer. `listen` is HOST:PORT on loopback."""

    def __init__(self, recorder: Collects, listen: str) -> None:
        """Raises `SettingsError` when others could reach `listen`."""
        self._recorder = recorder
        self._made = ""
        self._made_at = float("-inf")
        self._making = asyncio.Lock()
        self._server = LoopbackServer(
            listen,
            called="operator's page",
            cause="whoever reads the page sees what peers and other trackers do here",
            fix=f"{OPTION} 127.0.0.1:7073; from afar: ssh -L 7073:127.0.0.1:7073 THIS-COMPUTER",
            free_port=f"{OPTION} 127.0.0.1:0",
        )
        self._server.add("/", self._page)
        self._server.add_files(FILES)

    async def start(self) -> str:
        """Listen; gives the address. Raises `PortTaken` or `SettingsError`."""
        return await self._server.start()

    async def stop(self) -> None:
        """Close every connection."""
        await self._server.stop()

    async def _page(self, request: web.Request) -> web.Response:
        async with self._making:
            now = asyncio.get_running_loop().time()
            if now - self._made_at >= FRESH_S:
                try:
                    overview = await self._recorder.overview()
                except AxonError as error:
                    return web.Response(text=f"{error}\n", status=503)
                self._made, self._made_at = await asyncio.to_thread(_render, overview), now
        return web.Response(text=self._made, content_type="text/html")


def _render(overview: Overview) -> str:
    # Imported here, in a thread: while nobody looks the templates cost no memory, and their loading stops no answer.
    from tracker.page.render import operators_page

    return operators_page(overview, lambda at: datetime.fromtimestamp(at).astimezone())
