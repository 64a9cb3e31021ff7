"""An HTTP server on loopback for pages about jobs: it shows, and takes no orders.

Its address has a secret in its path, so that other accounts of this computer cannot look either.
"""

from __future__ import annotations

import secrets

from aiohttp import web
from aiohttp.typedefs import Handler

from axonp2p.transport.http.loopback_server import LoopbackServer

FRAMED_BY_NONE = "frame-ancestors 'none'"
_NOTHING = f"default-src 'none'; {FRAMED_BY_NONE}"


class PageServer:
    """Answers browsers of this computer. `listen` is HOST:PORT on loopback; port 0: a free one."""

    def __init__(self, listen: str, *, called: str, cause: str, option: str) -> None:
        """`called` names the page for people, `cause` is why strangers must not reach it, and `option` what people
        type before a port. Raises `SettingsError` when others could reach `listen`."""
        fix = f"{option}7080; from afar: ssh -L 7080:127.0.0.1:7080 THIS-COMPUTER"
        self._under = f"{secrets.token_urlsafe(12)}/"
        self._server = LoopbackServer(
            listen, called=called, cause=cause, fix=fix, free_port=f"{option}0", policy=_NOTHING
        )

    def add(self, path: str, handler: Handler) -> None:
        """Looks at this path, below the address, are answered by `handler`. Before `start`."""
        self._server.add(f"/{self._under}{path}", handler)

    async def start(self) -> str:
        """Listen; gives the address. Raises `PortTaken` or `SettingsError`."""
        return await self._server.start() + self._under

    async def stop(self) -> None:
        """Close every connection. Harmless when it does not listen."""
        await self._server.stop()


def html_answer(html: str, policy: str) -> web.Response:
    """A page with its own Content-Security-Policy."""
    headers = {"Content-Security-Policy": f"{policy}; {FRAMED_BY_NONE}"}
    return web.Response(text=html, content_type="text/html", headers=headers)
