"""The job's page beside whatever else a command does: served from a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from axonp2p.client.loop_thread import LoopThread
from axonp2p.client.storage.job_store import JobFolder
from client_cli.report.folder_view import FolderView
from client_cli.report.server import JobPage
from client_cli.report.standing import Command


@contextmanager
def served(folder: JobFolder, command: Command, listen: str, *, ours: bool) -> Iterator[str]:
    """While inside, the page of the job in `folder` is there; gives its address.

    `ours`: this program works on the job. Raises `PortTaken` or `SettingsError`.
    """
    thread = LoopThread()
    page = JobPage(FolderView(folder, ours=ours), command, listen)
    try:
        yield thread.call(page.start())
    finally:
        thread.call(page.close())
        thread.stop()
