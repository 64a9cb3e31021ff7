"""The page for a browser at the public port: which tracker this is, whether it is well, and its whole address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

import axonp2p
from axonp2p.errors import NotFound
from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.http.own_page import HEADERS, LOOK, POLICY
from tracker.page.server import ICON

_FILES = {"/look.css": (LOOK, "text/css"), "/icon.svg": (ICON, "image/svg+xml")}


@dataclass(frozen=True)
class LandingFacts:
    """The facts that are shown: no more than `/v1/health` tells everybody."""

    tracker: PeerId
    address: Callable[[], str]
    """As peers and clients need it; empty while it starts."""
    trouble: Callable[[], str]
    alive: Callable[[], int]


class Landing:
    """GET / for browsers; a program that asks for it hears a refusal as before."""

    def __init__(self, told: LandingFacts) -> None:
        self._told = told
        # Not sent as a file: connections whose caller a proxy or a relay names cannot do that (`NamedTransport`).
        self._files = {path: (file.read_bytes(), kind) for path, (file, kind) in _FILES.items()}

    def add_routes(self, app: web.Application) -> None:
        """GET /, its sheet and its icon."""
        app.router.add_get("/", self._page)
        for path in _FILES:
            app.router.add_get(path, self._file)

    async def _page(self, request: web.Request) -> web.Response:
        if "text/html" not in request.headers.get("Accept", ""):
            raise NotFound("GET /: not found", fix="GET /v1/health    or look with a browser")
        from tracker.page.render import landing_page  # Jinja2 is loaded when the first browser comes

        told = self._told
        text = await asyncio.to_thread(
            landing_page, told.tracker, axonp2p.__version__, told.address(), told.trouble(), told.alive()
        )
        headers = {"Content-Security-Policy": POLICY, **HEADERS}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def _file(self, request: web.Request) -> web.Response:
        body, kind = self._files[request.path]
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Cache-Control": "max-age=3600"}
        return web.Response(body=body, headers=headers)
