"""An HTTP server on loopback for pages about jobs: it shows, and takes no orders.

Its address has a secret in its path, so that other accounts of this computer cannot look either.
"""

from __future__ import annotations

import secrets

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from axonp2p.errors import AxonError
from axonp2p.transport.address import join_host_port
from axonp2p.transport.http.own_page import HEADERS, loopback, own_names, why_not_ours
from axonp2p.transport.http.plain_server import PlainServer

FRAMED_BY_NONE = "frame-ancestors 'none'"
_NOTHING = {"Content-Security-Policy": f"default-src 'none'; {FRAMED_BY_NONE}"}


class PageServer:
    """Answers browsers of this computer. `listen` is HOST:PORT on loopback; port 0: a free one."""

    def __init__(self, listen: str, *, called: str, cause: str, option: str) -> None:
        """`called` names the page for people, `cause` is why strangers must not reach it, and `option` what people
        type before a port. Raises `SettingsError` when others could reach `listen`."""
        afar = "from afar: ssh -L 7080:127.0.0.1:7080 THIS-COMPUTER"
        self._host, self._port = loopback(listen, called, cause=cause, fix=f"{option}7080; {afar}")
        self._under = f"/{secrets.token_urlsafe(12)}/"
        self._names: set[str] = set()
        self._app = web.Application(middlewares=[_guarded(self._names)])
        self._server = PlainServer(self._app, called=called, fix=f"{option}0", headers={**HEADERS, **_NOTHING})

    def add(self, path: str, handler: Handler) -> None:
        """Looks at this path, below the address, are answered by `handler`. Before `start`."""
        self._app.router.add_get(self._under + path, handler)

    async def start(self) -> str:
        """Listen; gives the address. Raises `PortTaken` or `SettingsError`."""
        port = await self._server.start(self._host, self._port)
        self._names.update(own_names(self._host, port))
        return f"http://{join_host_port(self._host, port)}{self._under}"

    async def stop(self) -> None:
        """Close every connection. Harmless when it does not listen."""
        await self._server.stop()


def html_answer(html: str, policy: str) -> web.Response:
    """A page with its own Content-Security-Policy."""
    headers = {"Content-Security-Policy": f"{policy}; {FRAMED_BY_NONE}"}
    return web.Response(text=html, content_type="text/html", headers=headers)


def _guarded(names: set[str]) -> Middleware:
    """Refuses who must not come in."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        heads = request.headers
        why = why_not_ours(
            names, host=heads.get("Host"), origin=heads.get("Origin"), fetch_site=heads.get("Sec-Fetch-Site")
        )
        if why:
            raise web.HTTPForbidden(text=why)
        try:
            return await handler(request)
        except AxonError as error:
            return web.Response(text=error.in_a_line, status=500)

    return guarded
