"""The status page as a small HTTP server on loopback: one page, its files, and the same `/api/` as the control door."""

from __future__ import annotations

import asyncio
import errno
from datetime import datetime
from pathlib import Path
from typing import get_args

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from axonp2p.console import error_json
from axonp2p.errors import PortTaken, Refused, SettingsError
from axonp2p.transport.address import join_host_port
from axonp2p.transport.http.own_page import LOOK
from peer_daemon.control.api import Steering, add_api
from peer_daemon.control.status import HistoryTold, State, Status
from peer_daemon.page.guard import HEADERS, TOKEN_HEADER, PageCaller, loopback, own_names, why_refused
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
HEAD_BYTES = 8 * 1024
CLOSED_WITHIN_S = 1.0


class StatusPage:
    """Serves `steering` to browsers of this computer. `listen` is HOST:PORT on loopback; port 0 takes a free one."""

    def __init__(self, steering: Steering, listen: str, token_file: Path) -> None:
        """Raises `SettingsError` when others could reach `listen`."""
        self._steering = steering
        self._host, self._port = loopback(listen)
        self._token_file = token_file
        self._token = kept_token(token_file)
        self._runner: web.AppRunner | None = None

    async def start(self) -> int:
        """Listen, and write the page's address with its token into the token file; gives the port.

        Raises `PortTaken`, or `SettingsError` when the address or the file cannot be had.
        """
        names: set[str] = set()
        app = web.Application(middlewares=[_guarded(names, self._token)])
        app.on_response_prepare.append(_protect)
        app.router.add_get("/", self._page)
        for name in FILES:
            app.router.add_get(f"/static/{name}", _file)
        for state in get_args(State):
            app.router.add_get(f"/icon/{state}.svg", _icon)
        add_api(app, self._steering, under="/api")
        # No log of requests: nobody needs it, and what is not written cannot tell anything.
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=CLOSED_WITHIN_S, max_line_size=HEAD_BYTES, max_field_size=HEAD_BYTES
        )
        await runner.setup()
        try:
            port = await self._listen(runner, names)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        return port

    async def _listen(self, runner: web.AppRunner, names: set[str]) -> int:
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            raise _cannot_listen(error, join_host_port(self._host, self._port)) from error
        port: int = runner.addresses[0][1]
        names.update(own_names(self._host, port))
        url = f"http://{join_host_port(self._host, port)}/"
        await asyncio.to_thread(write_address, self._token_file, url, self._token)
        return port

    async def stop(self) -> None:
        """Close every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _page(self, request: web.Request) -> web.Response:
        status = self._steering.status()
        told = await self._steering.history(status.now - DAY_S)
        return web.Response(text=await asyncio.to_thread(_render, status, told), content_type="text/html")


def _render(status: Status, told: HistoryTold) -> str:
    # Imported here, in a thread: while nobody looks the templates cost no memory, and their loading stops no lease.
    from peer_daemon.page.render import page

    return page(status, told, lambda at: datetime.fromtimestamp(at).astimezone())


async def _file(request: web.Request) -> web.StreamResponse:
    file, kind = FILES[request.path.removeprefix("/static/")]
    return web.FileResponse(file, headers={"Content-Type": f"{kind}; charset=utf-8", "Cache-Control": "no-cache"})


async def _icon(request: web.Request) -> web.Response:
    state: State = request.path.removeprefix("/icon/").removesuffix(".svg")  # type: ignore[assignment]
    return web.Response(text=tab_icon(state), content_type="image/svg+xml", headers={"Cache-Control": "no-cache"})


def _guarded(names: set[str], token: str) -> Middleware:
    """Refuses who must not come in, and puts the protecting headers on every answer."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        heads = request.headers
        caller = PageCaller(
            method=request.method,
            host=heads.get("Host"),
            origin=heads.get("Origin"),
            fetch_site=heads.get("Sec-Fetch-Site"),
            token=heads.get(TOKEN_HEADER),
        )
        if why := why_refused(caller, frozenset(names), token):
            error = Refused(why, fix="axon-peer page")
            return web.json_response(text=error_json(error), status=403)
        return await handler(request)

    return guarded


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def _cannot_listen(error: OSError, address: str) -> SettingsError:
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"{address} is taken, so there is no status page", fix='page = "127.0.0.1:0" takes a free port'
        )
    return SettingsError(f"cannot listen on {address}: {error.strerror}", fix='page = "127.0.0.1:7072" in config.toml')
