"""The page of one job as a small HTTP server on loopback, for as long as a program shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axonp2p.client.loop_thread import LoopThread
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.settings import home_path
from client_cli.report.folder_view import FolderView
from client_cli.report.live import LiveJob
from client_cli.report.page_server import PageServer
from client_cli.text.kind_text import Command

OPTION = "--page 127.0.0.1:"


class JobPage:
    """Serves what `view` sees to browsers of this computer. `listen` is HOST:PORT on loopback; port 0: a free one."""

    def __init__(self, view: FolderView, command: Command, listen: str) -> None:
        """Raises `SettingsError` when others could reach `listen`."""
        cause = "whoever reads the page sees the job"
        self._server = PageServer(listen, called="job's page", cause=cause, option=OPTION)
        self.job = LiveJob(view, command)
        self._server.add("", self.job.page)
        self._server.add("events", self.job.line.events)
        self._server.add("{name}.csv", self.job.csv)

    async def start(self) -> str:
        """Listen; gives the address. Raises `PortTaken` or `SettingsError`."""
        return await self._server.start()

    async def close(self) -> None:
        """Let open pages see how it ended, and close every connection."""
        await self.job.see_the_end()
        await self.job.line.end()
        await self._server.stop()


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
    more = [] if home == home_path("client", None) else ["--home", str(home)]
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
