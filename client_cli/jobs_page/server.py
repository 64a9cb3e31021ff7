"""The page of all jobs, and each job's own below it, as one small HTTP server on loopback."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from aiohttp import web

from axonp2p.client.loop_thread import LoopThread
from axonp2p.client.storage.job_store import JobStore
from axonp2p.plain_text import plural
from axonp2p.transport.http.own_page import LOOK
from client_cli.jobs_page.home_view import HomeView
from client_cli.jobs_page.listed import ListedJobs
from client_cli.report import signs
from client_cli.report.document import Local, icon_address, live_script, only_these
from client_cli.report.files import on_the_wall
from client_cli.report.folder_view import FolderView
from client_cli.report.live import LiveJob, NewsLine
from client_cli.report.page_server import PageServer, html_answer
from client_cli.text.kind_text import Command

LOOK_S = 1.0
"""Between two looks at all folders, while somebody looks at the list."""
MOST_JOBS = 16
"""The jobs whose events are kept read at a time, beyond those that open tabs show."""
MOST_NAME = 255
OPTION = "--port "

Answer = Callable[[LiveJob, web.Request], Awaitable[web.StreamResponse]]


class JobsPage:
    """Serves the jobs of `home` to browsers of this computer; port 0: a free one."""

    def __init__(self, home: Path, command: Command, port: int) -> None:
        self._home = home
        self._store = JobStore(home)
        self._command = command
        self._view = HomeView(home, command)
        self._line = NewsLine(self._view.trace, LOOK_S)
        self._jobs: OrderedDict[str, LiveJob] = OrderedDict()
        """The one that was looked at last is the last."""
        cause = "whoever reads the page sees the jobs"
        self._server = PageServer(f"127.0.0.1:{port}", called="page of all jobs", cause=cause, option=OPTION)
        self._server.add("", self._list)
        self._server.add("events", self._line.events)
        self._server.add("job/{job}", _to_its_folder)
        self._server.add("job/{job}/", self._of_a_job(LiveJob.page))
        self._server.add("job/{job}/events", self._of_a_job(lambda job, request: job.line.events(request)))
        self._server.add("job/{job}/{name}.csv", self._of_a_job(LiveJob.csv))

    async def start(self) -> str:
        """Listen; gives the address. Raises `PortTaken` or `SettingsError`."""
        return await self._server.start()

    async def close(self) -> None:
        """Close every connection."""
        for line in (self._line, *(job.line for job in self._jobs.values())):
            await line.end()
        await self._server.stop()

    async def _list(self, request: web.Request) -> web.Response:
        html = await asyncio.to_thread(self._list_now, request.query.get("page", ""))
        return html_answer(html, list_policy())

    def _list_now(self, asked: str) -> str:
        return list_page(self._view.look(asked), self._command, on_the_wall, str(self._home))

    def _of_a_job(self, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answered(request: web.Request) -> web.StreamResponse:
            return await answer(await self._job(request.match_info["job"]), request)

        return answered

    async def _job(self, name: str) -> LiveJob:
        plain = len(name.encode(errors="replace")) <= MOST_NAME and Path(name).name == name
        if not plain or not self._store.has_record(name):
            raise web.HTTPNotFound(text="There is no such job on this computer.\n")
        job = self._jobs.pop(name, None)
        if job is None:
            view = FolderView(self._store.place_of(name), ours=False)
            job = LiveJob(view, self._command, all_jobs="../../")
        unseen = [other for other, live in self._jobs.items() if not live.line.open]
        gone = [self._jobs.pop(other) for other in unseen[: max(0, len(self._jobs) + 1 - MOST_JOBS)]]
        self._jobs[name] = job
        for live in gone:
            await live.line.end()
        return job


async def _to_its_folder(request: web.Request) -> web.Response:
    raise web.HTTPFound(f"{request.rel_url.raw_path}/")


@contextmanager
def served_jobs(home: Path, command: Command, port: int) -> Iterator[str]:
    """While inside, the page is there, served from a thread of its own; gives its address.

    Raises `PortTaken` or `SettingsError`.
    """
    page, thread = JobsPage(home, command, port), LoopThread()
    try:
        yield thread.call(page.start())
    finally:
        try:
            thread.call(page.close())
        finally:
            thread.stop()


if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent


def list_policy() -> str:
    """The Content-Security-Policy of the document."""
    return only_these(_style(), live_script(), live=True)


def list_page(listed: ListedJobs, command: Command, local: Local, home: str) -> str:
    """The whole page; `home` is the folder whose jobs they are."""
    word = f"{listed.at_work:,} AT WORK" if listed.at_work else "NONE AT WORK"
    return _template().render(
        listed=listed,
        word=word,
        look="running" if listed.at_work else "cancelled",
        icon=icon_address("running" if listed.at_work else "cancelled"),
        policy=list_policy(),
        style=_style(),
        script=live_script(),
        again=command("page"),
        command=command,
        local=local,
        home=home,
    )


@cache
def _style() -> str:
    return LOOK.read_text() + (HERE / "static" / "jobs.css").read_text()


@cache
def _template() -> Template:
    from axonp2p.transport.http.page_templates import page_templates

    filters: dict[str, Callable[..., object]] = {
        "plural": plural,
        "sign": signs.state_sign,
        "share": lambda row: f"{100 * min(1.0, row.done / (row.units or 1)):.2f}",
        "address": lambda job: quote(job, safe=""),
    }
    return page_templates(HERE / "templates", filters).get_template("jobs.html")
