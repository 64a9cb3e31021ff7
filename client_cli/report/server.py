"""The job's page as a small HTTP server on loopback: it shows, and takes no orders.

Its address has a secret in its path, so that other accounts of this computer cannot look either.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from aiohttp_sse import sse_response

from axonp2p.client.loop_thread import LoopThread
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError, PortTaken, SettingsError
from axonp2p.settings import home_folder
from axonp2p.transport.address import join_host_port
from axonp2p.transport.http.own_page import HEADERS, loopback, own_names, why_not_ours
from client_cli.report.document import Made, make, policy
from client_cli.report.files import on_the_wall
from client_cli.report.folder_view import FolderView
from client_cli.text.kind_text import Command

LOOK_S = 0.5
"""Between two looks at the folder, while somebody looks at the page."""
LAST_LOOK_S = 5.0
"""So long open pages have to fetch how the job ended."""
PING_S = 2
HEAD_BYTES = 8 * 1024
CLOSED_WITHIN_S = 1.0


class JobPage:
    """Serves what `view` sees to browsers of this computer. `listen` is HOST:PORT on loopback; port 0: a free one."""

    def __init__(self, view: FolderView, command: Command, listen: str) -> None:
        """Raises `SettingsError` when others could reach `listen`."""
        self._view = view
        self._command = command
        self._host, self._port = loopback(
            listen,
            "job's page",
            cause="whoever reads the page sees the job",
            fix="--page 127.0.0.1:7080; from afar: ssh -L 7080:127.0.0.1:7080 THIS-COMPUTER",
        )
        self._secret = secrets.token_urlsafe(12)
        self._runner: web.AppRunner | None = None
        self._watching: asyncio.Task[None] | None = None
        self._made = asyncio.Lock()
        self._turned = asyncio.Condition()
        self._number = 0
        self._open = 0
        self._ended = False
        self._last_looks: asyncio.Semaphore | None = None

    async def start(self) -> str:
        """Listen; gives the address. Raises `PortTaken` or `SettingsError`."""
        names: set[str] = set()
        app = web.Application(middlewares=[_guarded(names)])
        app.on_response_prepare.append(_protect)
        under = f"/{self._secret}/"
        app.router.add_get(under, self._page)
        app.router.add_get(f"{under}events", self._events)
        app.router.add_get(under + "{name}.csv", self._csv)
        # No log of requests: nobody needs it, and what is not written cannot tell anything.
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=CLOSED_WITHIN_S, max_line_size=HEAD_BYTES, max_field_size=HEAD_BYTES
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            await runner.cleanup()
            raise _cannot_listen(error, join_host_port(self._host, self._port)) from error
        port: int = runner.addresses[0][1]
        names.update(own_names(self._host, port))
        self._runner = runner
        self._watching = asyncio.create_task(self._watch(), name="job page")
        return f"http://{join_host_port(self._host, port)}{under}"

    async def close(self) -> None:
        """Let open pages see how it ended, and close every connection."""
        if self._watching:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        self._view.ask_again()
        if self._open:
            self._last_looks = asyncio.Semaphore(0)
            await self._turn()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_LOOK_S):
                    for _ in range(self._open):
                        await self._last_looks.acquire()
        self._ended = True
        await self._turn()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _watch(self) -> None:
        seen = None
        while True:
            if self._open:
                trace = await asyncio.to_thread(self._view.trace)
                if trace != seen:
                    seen = trace
                    await self._turn()
            await asyncio.sleep(LOOK_S)

    async def _turn(self) -> None:
        async with self._turned:
            self._number += 1
            self._turned.notify_all()

    async def _wait_for_a_turn(self) -> None:
        """Or for a while: a tab that was closed is noticed by its pings."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PING_S), self._turned:
                await self._turned.wait()

    async def _make(self) -> Made:
        async with self._made:
            return await asyncio.to_thread(self._make_now)

    def _make_now(self) -> Made:
        return make(self._view.look(), self._command, on_the_wall, live=True)

    async def _page(self, request: web.Request) -> web.Response:
        last_looks = self._last_looks  # before: a look that began while the job ran does not show how it ended
        made = await self._make()
        if last_looks:
            last_looks.release()
        return web.Response(text=made.html, content_type="text/html")

    async def _csv(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        text = (await self._make()).csv.get(name)
        if text is None:
            raise web.HTTPNotFound
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return web.Response(text=text, content_type="text/csv", headers=headers)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        async with sse_response(request, ping_interval=PING_S) as response:
            self._open += 1
            known = -1
            try:
                while response.is_connected() and not self._ended:
                    if self._number == known:
                        await self._wait_for_a_turn()
                        continue
                    known = self._number
                    await response.send(str(known), event="over" if self._last_looks else "changed")
            except ConnectionResetError:
                pass  # the tab was closed
            finally:
                self._open -= 1
        return response


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


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    own = {"Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'"}
    for name, value in {**HEADERS, **own}.items():
        response.headers.setdefault(name, value)


def _cannot_listen(error: OSError, address: str) -> SettingsError:
    if error.errno == errno.EADDRINUSE:
        return PortTaken(f"{address} is taken", fix="--page 127.0.0.1:0 takes a free port")
    return SettingsError(f"cannot listen on {address}: {error.strerror}", fix="--page 127.0.0.1:0")


class ServedPage:
    """The page of the job in `folder`, served from a thread of its own until `close`."""

    def __init__(
        self, folder: JobFolder, command: Command | None = None, listen: str = "127.0.0.1:0", *, ours: bool = False
    ) -> None:
        """`ours`: this program works on the job. Raises `PortTaken` or `SettingsError`."""
        spell = command or spelled_for(folder.path.parent.parent)
        self._page = JobPage(FolderView(folder, ours=ours), spell, listen)
        self._thread = LoopThread()
        try:
            self.address = self._thread.call(self._page.start())
        except BaseException:
            self._thread.stop()
            raise

    def close(self) -> None:
        """Let open tabs see how the job ended, and end."""
        try:
            self._thread.call(self._page.close())
        finally:
            self._thread.stop()


def spelled_for(home: Path) -> Command:
    """Commands about jobs of that home, as they can be typed."""
    more = [] if home == home_folder("client", None) else ["--home", str(home)]
    return lambda *words: " ".join(["axon", *words, *more])


@contextmanager
def served(folder: JobFolder, command: Command, listen: str, *, ours: bool) -> Iterator[str]:
    """While inside, the page of the job in `folder` is there, served from a thread of its own; gives its address.

    `ours`: this program works on the job. Raises `PortTaken` or `SettingsError`.
    """
    page = ServedPage(folder, command, listen, ours=ours)
    try:
        yield page.address
    finally:
        page.close()
