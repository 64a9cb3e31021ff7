"""HTTP for a page that only browsers of this computer may see (a door)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from axonp2p.errors import AxonError
from axonp2p.transport.address import join_host_port
from axonp2p.transport.http.own_page import HEADERS, POLICY, loopback, own_names, why_not_ours
from axonp2p.transport.http.plain_server import PlainServer

Guard = Callable[[web.Request, Collection[str]], web.Response | None]
"""The answer to a request that must not come in, given the page's own names; None: it may."""


def refuse_other_sites(request: web.Request, names: Collection[str]) -> web.Response | None:
    """The guard of a page that takes no orders."""
    heads = request.headers
    host, origin, site = heads.get("Host"), heads.get("Origin"), heads.get("Sec-Fetch-Site")
    why = why_not_ours(names, host=host, origin=origin, fetch_site=site)
    return web.Response(text=f"{why}\n", status=403) if why else None


class LoopbackServer:
    """Serves `app` to browsers of this computer, with the protecting headers on every answer."""

    def __init__(
        self,
        listen: str,
        *,
        called: str,
        cause: str,
        fix: str,
        free_port: str,
        policy: str = POLICY,
        guard: Guard = refuse_other_sites,
    ) -> None:
        """`listen` is HOST:PORT on loopback; port 0: a free one. `called` names the page for people ("status page").

        `cause` is why strangers must not reach it, `fix` how people set an address that is right, `free_port` how they
        take a free port. Raises `SettingsError` when others could reach `listen`.
        """
        self._host, self._port = loopback(listen, called, cause=cause, fix=fix)
        self._guard = guard
        self._names: frozenset[str] = frozenset()
        self.app = web.Application(middlewares=[self._guarded])
        headers = {"Content-Security-Policy": policy, **HEADERS}
        self._server = PlainServer(self.app, called=called, fix=free_port, headers=headers)

    def add(self, path: str, handler: Handler) -> None:
        """Looks at this path are answered by `handler`. Before `start`."""
        self.app.router.add_get(path, handler)

    def add_files(self, files: Mapping[str, tuple[Path, str]]) -> None:
        """Serve these files, each with its type, under /static/, and nothing else of their folders. Before `start`."""
        for name, (file, kind) in files.items():
            self.add(f"/static/{name}", partial(_file, file, kind))

    async def start(self) -> str:
        """Listen; gives the address, such as http://127.0.0.1:7072/. Raises `PortTaken` or `SettingsError`."""
        port = await self._server.start(self._host, self._port)
        self._names = own_names(self._host, port)
        return f"http://{join_host_port(self._host, port)}/"

    async def stop(self) -> None:
        """Close every connection. Harmless when it does not listen."""
        await self._server.stop()

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if (refusal := self._guard(request, self._names)) is not None:
            return refusal
        try:
            return await handler(request)
        except AxonError as error:
            return web.Response(text=f"{error.in_a_line}\n", status=500)


async def _file(file: Path, kind: str, request: web.Request) -> web.StreamResponse:
    return web.FileResponse(file, headers={"Content-Type": f"{kind}; charset=utf-8", "Cache-Control": "no-cache"})
