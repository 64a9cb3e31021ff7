"""Pages that stay as new as what they show: news for open tabs (server-sent events), and one job's page made again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from aiohttp import web
from aiohttp_sse import sse_response

from axonp2p.errors import AxonError
from client_cli.report.document import Made, make, policy
from client_cli.report.files import on_the_wall
from client_cli.report.folder_view import FolderView
from client_cli.report.page_server import html_answer
from client_cli.text.kind_text import Command

LOOK_S = 0.5
"""Between two looks at the disk, while somebody looks at the page."""
LAST_LOOK_S = 5.0
"""So long open pages have to fetch how it ended."""
PING_S = 2


class NewsLine:
    """Tells the open tabs of a page when `trace`, which is called in a thread, gives something else than before."""

    def __init__(self, trace: Callable[[], object], every_s: float = LOOK_S) -> None:
        self.open = 0
        """How many tabs listen. While none does, nothing is looked at."""
        self._trace = trace
        self._every_s = every_s
        self._watching: asyncio.Task[None] | None = None
        self._turned = asyncio.Condition()
        self._number = 0
        self._ended = False
        self._last_looks: asyncio.Semaphore | None = None

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Answers a tab that listens, for as long as it does."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="page news")
        async with sse_response(request, ping_interval=PING_S) as response:
            self.open += 1
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
                self.open -= 1
        return response

    @contextmanager
    def looking(self) -> Iterator[None]:
        """While inside, the page is made for a tab."""
        last_looks = self._last_looks  # before: a look that began while the job ran does not show how it ended
        yield
        if last_looks:
            last_looks.release()

    async def see_the_end(self) -> None:
        """Let every open tab fetch the page once more, and wait for them a while."""
        await self.stop_watching()
        if not self.open:
            return
        self._last_looks = asyncio.Semaphore(0)
        await self._turn()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_LOOK_S):
                for _ in range(self.open):
                    await self._last_looks.acquire()

    async def end(self) -> None:
        """There are no more news."""
        await self.stop_watching()
        self._ended = True
        await self._turn()

    async def stop_watching(self) -> None:
        """Look for no more news: `trace` is not called any more."""
        if self._watching:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        seen: object = None
        while True:
            if self.open:
                try:
                    trace = await asyncio.to_thread(self._trace)
                except AxonError as error:
                    trace = error.in_a_line
                if trace != seen:
                    seen = trace
                    await self._turn()
            await asyncio.sleep(self._every_s)

    async def _turn(self) -> None:
        async with self._turned:
            self._number += 1
            self._turned.notify_all()

    async def _wait_for_a_turn(self) -> None:
        """Or for a while: a tab that was closed is noticed by its pings."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PING_S), self._turned:
                await self._turned.wait()


class LiveJob:
    """One job's page as browsers ask for it. `all_jobs` is where all of them are listed, if they are."""

    def __init__(self, view: FolderView, command: Command, *, all_jobs: str = "") -> None:
        self.line = NewsLine(view.trace)
        self._view = view
        self._command = command
        self._all_jobs = all_jobs
        self._making = asyncio.Lock()

    async def make(self) -> Made:
        """The document as of now. Raises `NotFound` or `SettingsError`."""
        async with self._making:
            return await asyncio.to_thread(self._make_now)

    def _make_now(self) -> Made:
        return make(self._view.look_at_all(), self._command, on_the_wall, live=True, all_jobs=self._all_jobs)

    async def page(self, request: web.Request) -> web.Response:
        """Answers a look at the page."""
        with self.line.looking():
            made = await self.make()
        return html_answer(made.html, policy(live=True))

    async def csv(self, request: web.Request) -> web.Response:
        """Answers a look at the numbers behind a picture."""
        name = request.match_info["name"]
        text = (await self.make()).csv.get(name)
        if text is None:
            raise web.HTTPNotFound
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return web.Response(text=text, content_type="text/csv", headers=headers)

    async def see_the_end(self) -> None:
        """Let open tabs see how the job ended."""
        await self.line.stop_watching()
        self._view.ask_again()
        await self.line.see_the_end()
