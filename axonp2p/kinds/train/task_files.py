"""Files that the task writes into /out at its peers, brought home: they lie in `out/PEER/` of the job's folder."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress

from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.storage.arriving_files import ArrivingFiles, files_below
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.clock import Clock
from axonp2p.disk_errors import not_writable
from axonp2p.errors import SettingsError
from axonp2p.jobs.output_files import EVERY_FILE
from axonp2p.jobs.output_messages import TASK_FILES, OutputFile, OutputMessage
from axonp2p.kinds.train.events import TaskFilesKept, TaskFilesLost
from axonp2p.kinds.train.file_requests import FileRequests
from axonp2p.wire.frame import pack_frame

LAST_S, SILENT_S = 15.0, 5.0
"""For so long the files of all peers may take at the end of a job, and for so long nothing may come of them."""
LOOK_S = 0.2


class TaskFiles:
    """Of one life of a job. A disk that takes no files costs the files, and not the job."""

    def __init__(self, journal: JobJournal, crew: LeasedCrew, clock: Clock) -> None:
        self._journal = journal
        self._crew = crew
        self._clock = clock
        # A worker of an earlier life may still send what that one asked for.
        self._requests = FileRequests(journal.record.lives << 20)
        self._out = journal.folder.path / "out"
        self._parts = journal.folder.path / ".arriving-files"
        self._arriving: dict[int, ArrivingFiles] = {}
        """By rank."""
        self._there: dict[str, dict[str, int]] = {}
        """The files of each peer that lie here, with their bytes."""
        self._told: dict[str, TaskFilesKept] = {}
        """The last news told of each peer."""
        self._built: set[int] = set()
        """Those that can have written something."""
        self._last = False
        self._moved = 0.0
        """When something came last."""
        self._broken = False

    def built(self, rank: int) -> None:
        """This peer's worker has loaded the task."""
        self._built.add(rank)

    def ask_those_due(self) -> None:
        """Ask the peers whose turn it is."""
        now = self._clock.monotonic()
        for rank in self._requests.due(self._there_to_ask, now):
            self._ask(rank, now)

    async def fetch_last(self) -> None:
        """The work is over: ask all that can answer, and wait for what comes, but not long. May be called again."""
        self._last = True
        self._moved = self._clock.monotonic()
        for rank in self._there_to_ask:
            self._ask(rank, self._moved)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                while self._requests.open & self._there_to_ask and not self._broken:
                    if self._clock.monotonic() > self._moved + SILENT_S:
                        break
                    await asyncio.sleep(LOOK_S)
        self._last = False
        await asyncio.to_thread(shutil.rmtree, self._parts, ignore_errors=True)

    async def heard(self, rank: int, message: OutputMessage, payload: memoryview) -> None:
        """`training.coordinator.coordinator.FilesListener`."""
        arriving = self._arriving.get(rank)
        if arriving is None or arriving.request != message.request or self._broken:
            return
        self._moved = self._clock.monotonic()
        try:
            await asyncio.to_thread(arriving.take, message, payload)
        except SettingsError as error:
            self._break(error)
            return
        if isinstance(message, OutputFile):
            self._requests.came(rank, message.path, message.sha256)
            self._there[self._crew.leases[rank].name] = dict(arriving.there)
        if arriving.complete and self._arriving.get(rank) is arriving:
            self._over(rank, arriving)

    @property
    def _there_to_ask(self) -> set[int]:
        """Those that can answer."""
        paused = {peer.rank for peer in self._journal.record.peers if peer.paused and not peer.lost}
        return self._built & self._crew.present.keys() - paused

    def _ask(self, rank: int, now: float) -> None:
        name = self._crew.leases[rank].name
        order = self._requests.ask(rank, now)
        try:
            self._parts.mkdir(exist_ok=True, mode=0o700)
            there = self._there.setdefault(name, files_below(self._out / name))
        except OSError as error:
            self._break(not_writable(self._parts, error))
        if self._broken:
            return
        part = self._parts / f"{name}-{order.request}"
        self._arriving[rank] = ArrivingFiles(
            self._out / name, part, order.request, patterns=EVERY_FILE, bounds=TASK_FILES, there=there
        )
        self._crew.tell(rank, pack_frame(order))

    def _over(self, rank: int, arriving: ArrivingFiles) -> None:
        name = self._crew.leases[rank].name
        self._requests.answered(rank, self._clock.monotonic())
        del self._arriving[rank]
        there = self._there[name]
        kept = TaskFilesKept(peer=name, files=len(there), bytes=sum(there.values()), left_out=arriving.left_out)
        before = self._told.get(name)
        if not (kept.files or kept.left_out) or kept == before:
            return
        if before is None or kept.left_out > before.left_out or self._last:
            self._told[name] = kept
            self._journal.tell(kept)

    def _break(self, error: SettingsError) -> None:
        if not self._broken:
            self._broken = True
            self._journal.tell(TaskFilesLost(reason=error.in_a_line))
