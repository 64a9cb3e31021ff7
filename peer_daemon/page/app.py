"""The status page as a small HTTP server on loopback: one page, its files, and the same `/api/` as the control door."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import get_args

from aiohttp import web

from axonp2p.console import error_json
from axonp2p.errors import Refused
from axonp2p.transport.http.loopback_server import LoopbackServer
from axonp2p.transport.http.own_page import LOOK
from peer_daemon.control.api import Steering, add_api
from peer_daemon.control.status import HistoryTold, State, Status
from peer_daemon.page.guard import TOKEN_HEADER, PageCaller, why_refused
from peer_daemon.page.picture import DAY_S, tab_icon
from peer_daemon.page.token import kept_token, write_address

STATIC = Path(__file__).parent / "static"
FILES = {
    "look.css": (LOOK, "text/css"),
    "page.css": (STATIC / "page.css", "text/css"),
    "page.js": (STATIC / "page.js", "text/javascript"),
    "vendored/uPlot.min.js": (STATIC / "vendored" / "uPlot.min.js", "text/javascript"),
    "vendored/uPlot.min.css": (STATIC / "vendored" / "uPlot.min.css", "text/css"),
}
"""All that is served from the disk; nothing else of the folder is."""


class StatusPage:
    """Serves `steering` to browsers of this computer. `listen` is HOST:PORT on loopback; port 0 takes a free one."""

    def __init__(self, steering: Steering, listen: str, token_file: Path) -> None:
        """Raises `SettingsError` when others could reach `listen`."""
        self._steering = steering
        self._token_file = token_file
        self._token = kept_token(token_file)
        self._server = LoopbackServer(
            listen,
            called="status page",
            cause="whoever reads the page sees what this computer does",
            fix='page = "127.0.0.1:7072" in config.toml; from afar: ssh -L 7072:127.0.0.1:7072 THIS-COMPUTER',
            free_port='page = "127.0.0.1:0" in config.toml',
            guard=self._refuse,
        )
        self._server.add("/", self._page)
        self._server.add_files(FILES)
        for state in get_args(State):
            self._server.add(f"/icon/{state}.svg", _icon)
        add_api(self._server.app, steering, under="/api")

    async def start(self) -> str:
        """Listen, and write the page's address with its token into the token file; gives the address.

        Raises `PortTaken`, or `SettingsError` when the address or the file cannot be had.
        """
        address = await self._server.start()
        try:
            await asyncio.to_thread(write_address, self._token_file, address, self._token)
        except BaseException:
            await self._server.stop()
            raise
        return address

    async def stop(self) -> None:
        """Close every connection."""
        await self._server.stop()

    def _refuse(self, request: web.Request, names: Collection[str]) -> web.Response | None:
        heads = request.headers
        caller = PageCaller(
            method=request.method,
            host=heads.get("Host"),
            origin=heads.get("Origin"),
            fetch_site=heads.get("Sec-Fetch-Site"),
            token=heads.get(TOKEN_HEADER),
        )
        why = why_refused(caller, names, self._token)
        return web.json_response(text=error_json(Refused(why, fix="axon-peer page")), status=403) if why else None

    async def _page(self, request: web.Request) -> web.Response:
        status = self._steering.status()
        told = await self._steering.history(status.now - DAY_S)
        return web.Response(text=await asyncio.to_thread(_render, status, told), content_type="text/html")


def _render(status: Status, told: HistoryTold) -> str:
    # Imported here, in a thread: while nobody looks the templates cost no memory, and their loading stops no lease.
    from peer_daemon.page.render import page

    return page(status, told, lambda at: datetime.fromtimestamp(at).astimezone())


async def _icon(request: web.Request) -> web.Response:
    state: State = request.path.removeprefix("/icon/").removesuffix(".svg")  # type: ignore[assignment]
    return web.Response(text=tab_icon(state), content_type="image/svg+xml", headers={"Cache-Control": "no-cache"})
