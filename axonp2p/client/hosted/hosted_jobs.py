"""Jobs of this client that a host carries on: found from anywhere with the key, copied, followed, steered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from axonp2p.client.events.events import Event
from axonp2p.client.hosted.hosted_copy import HostedCopy
from axonp2p.client.hosted.hosted_mark import HostedMark, OtherHost, read_mark, remove_mark, write_mark
from axonp2p.client.hosted.hosts import FoundJob, FoundJobs, find_jobs
from axonp2p.client.hosted.second_host import go_over, is_gone, leave_former, let_copy_go, look_at_copy, without_host
from axonp2p.client.leasing.hiring import Means
from axonp2p.client.storage.event_feed import EventTail
from axonp2p.client.storage.job_names import several
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.disk_errors import not_writable
from axonp2p.errors import (
    Ambiguous,
    AxonError,
    JobFailed,
    NotFound,
    PeerMisbehaved,
    Refused,
    SettingsError,
    Unreachable,
    error_classes,
)
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.host import Host
from axonp2p.hosting.messages import HostedWish
from axonp2p.jobs.lifecycle import JobState
from axonp2p.logs import get_logger

log = get_logger(__name__)

LOOK_S = 1.0
"""Between two looks at a job that is followed."""
BEGINS_S = 20.0
"""How long a job's process at its host may take to write its first word."""
SILENT_S = 180.0
"""For how long a host is called again and again before a job that is followed is given up."""
CALL_AGAIN_S = 3.0
TOLD_AFTER = 2
"""Calls in a row without an answer, after which that is told."""


class ClientHostedJobs:
    """Those of one client. Methods raise what asking a host raises, and `SettingsError` of this disk."""

    def __init__(self, means: Means, store: JobStore) -> None:
        self._means = means
        self._store = store

    async def find(self, job: str) -> JobFolder:
        """The folder here of a hosted job, by its id or the beginning of it; copied when it was not here yet.

        Raises `NotFound`.
        """
        try:
            folder = self._store.find(job)
        except Ambiguous:
            raise
        except NotFound as missing:
            found = await find_jobs(self._means, all_of_them=True)
            return await self._settle(_the_one(found, job, missing))
        if read_mark(folder) is None:
            raise NotFound(f"{folder.path.name} is a job of this computer, which no host carries on")
        return folder

    async def find_all(self) -> list[str]:
        """Copy what is new of all jobs that any known tracker holds; who could not be asked."""
        found = await find_jobs(self._means)
        silent = list(found.silent)
        for one in found.jobs:
            try:
                await self._settle(one)
            except (AxonError, OSError) as error:  # one job, or one host that lies, is no reason to show none
                silent.append(f"{one.job.job}: {error.in_a_line if isinstance(error, AxonError) else error.strerror}")
        return silent

    async def look(self, folder: JobFolder, *, result: bool = False) -> HostedMark:
        """Copy what is new of a hosted job; with `result`, what it came to as well, once it is over."""
        await leave_former(self._means, folder)
        try:
            async with self._line(folder) as line:
                mark = await HostedCopy(folder, line, self._means.clock, result=result).look()
                fetched = result and not mark.at_work and folder.read().state is JobState.FINISHED
                if fetched:
                    await line.tell(folder.path.name, "fetched")
        except (Unreachable, Refused, PeerMisbehaved) as error:
            fix = await self._fix_without_host(folder, error, result=result)
            raise type(error)(error.message, cause=error.cause, fix=fix) from error
        if fetched:
            await let_copy_go(self._means, folder)
        return mark

    async def tell(self, folder: JobFolder, wish: HostedWish) -> None:
        """Pass a wish on; what becomes of it is seen by looking."""
        async with self._line(folder) as line:
            await line.tell(folder.path.name, wish)
            await HostedCopy(folder, line, self._means.clock, result=False).look()

    async def resume(self, folder: JobFolder) -> str:
        """Have it go on: at its host, or where its copy is when the host is gone. Gives why it is, if it is."""
        try:
            await self.tell(folder, "resume")
        except (Unreachable, Refused, PeerMisbehaved) as error:
            mark = read_mark(folder)
            if mark is None or mark.standby is None or not is_gone(error):
                raise
            await go_over(self._means, folder, mark, mark.standby)
            return error.in_a_line
        await leave_former(self._means, folder)
        return ""

    async def take_back(self, folder: JobFolder) -> None:
        """Make it a job of this computer again, as far as the host has come with it.

        A host that does not answer, or does not know the job any more, keeps nobody from going on with what is here.
        Raises `JobFailed` where the bundle is not.
        """
        job = folder.path.name
        if not folder.bundle.exists():
            fix = f"on the computer that submitted it: axon resume {job} --here"
            raise JobFailed(f"the bundle of {job} is not on this computer, so it cannot continue here", fix=fix)
        try:
            async with self._line(folder) as line:
                copy = HostedCopy(folder, line, self._means.clock, result=True)
                if (await copy.look()).at_work:
                    await line.tell(job, "leave")
                    await _until_over(copy)
                await line.tell(job, "fetched")
        except SettingsError:
            raise
        except AxonError as error:
            log.warning("the job continues without its host", job=job, reason=error.in_a_line)
            await look_at_copy(self._means, folder, result=True)
        await let_copy_go(self._means, folder)
        remove_mark(folder)

    async def follow(
        self,
        folder: JobFolder,
        tell: Callable[[Event], None],
        silent: Callable[[Unreachable], None] = lambda error: None,
    ) -> None:
        """Copy the job until nothing works on it any more, its result too, and tell what happens.

        `silent` is told when the host does not answer, once for each time that it falls silent. Raises what the job
        failed with, and `Unreachable` when its host does not answer for long.
        """
        await leave_former(self._means, folder)
        tail, clock = EventTail(folder), self._means.clock
        heard, tries = clock.monotonic(), 0
        for event in tail.fresh():
            tell(event)
        while True:
            try:
                async with self._line(folder) as line:
                    copy = HostedCopy(folder, line, clock, result=True)
                    while True:
                        mark = await copy.look()
                        heard, tries = clock.monotonic(), 0
                        for event in tail.fresh():
                            tell(event)
                        if not mark.at_work:
                            if folder.read().state is JobState.FINISHED:
                                await line.tell(folder.path.name, "fetched")
                                await let_copy_go(self._means, folder)
                            _raise_failure(folder.read(), mark)
                            return
                        await asyncio.sleep(LOOK_S)
            except Unreachable as error:
                tries += 1
                if clock.monotonic() > heard + SILENT_S:
                    raise
                if tries == TOLD_AFTER:
                    fix = await self._fix_without_host(folder, error)
                    silent(Unreachable(error.message, cause=error.cause, fix=fix))
                await asyncio.sleep(CALL_AGAIN_S)

    async def _settle(self, found: FoundJob) -> JobFolder:
        """Its folder here, made if need be, as the host has it now."""
        job = found.job.job
        folder = self._store.place_of(job)
        try:
            folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise not_writable(folder.path, error) from error
        known, host = read_mark(folder), found.host.peer
        if known and known.former and known.former.host == host:
            await leave_former(self._means, folder)
            return folder
        if known and known.host != host and found.job.role == "copy":  # its host is silent
            write_mark(folder, msgspec.structs.replace(known, standby=_other(found.host)))
            await look_at_copy(self._means, folder)
            return folder
        if known and found.copy_at and known.host == found.copy_at.peer:
            known = None  # written while the host was silent
        elif known.host != host if known else self._store.has_record(job):
            where = f"of {known.tracker}" if known else "of this computer"
            raise SettingsError(f"{job} is a job {where}, and {found.host.called} says that it has it as well")
        mark = known or HostedMark(tracker=str(found.host.address), host=host)
        mark = msgspec.structs.replace(
            mark,
            at_work=found.job.at_work,
            role=found.job.role,
            standby=_other(found.copy_at) or mark.standby,
            former=_other(found.former) or mark.former,
        )
        write_mark(folder, mark)
        await look_at_copy(self._means, folder, take=False)
        until = self._means.clock.monotonic() + BEGINS_S
        while True:
            mark = await self.look(folder)
            if self._store.has_record(job):
                return folder
            if mark.trouble:
                raise JobFailed(f"{found.host.called} has given {job} up: {mark.trouble}")
            if self._means.clock.monotonic() > until:
                raise Unreachable(f"{found.host.called} holds {job}, but its process has not begun", fix="try again")
            await asyncio.sleep(LOOK_S)

    async def _fix_without_host(self, folder: JobFolder, error: AxonError, *, result: bool = False) -> str:
        """The next step when a host answers so, now that it is known how far the copy is."""
        mark = read_mark(folder)
        if mark is None or mark.standby is None or not is_gone(error):
            return error.fix
        await look_at_copy(self._means, folder, result=result)
        return without_host(folder)

    @asynccontextmanager
    async def _line(self, folder: JobFolder) -> AsyncIterator[HostLine]:
        mark = read_mark(folder)
        if mark is None:
            raise NotFound(f"no host carries {folder.path.name} on")
        try:
            async with await HostLine.open(self._means.key, mark.place) as line:
                yield line
        except (Unreachable, Refused, PeerMisbehaved) as error:
            raise type(error)(error.message, cause=error.cause, fix=error.fix or without_host(folder)) from error


def _other(host: Host | None) -> OtherHost | None:
    return OtherHost(tracker=str(host.address), host=host.peer) if host else None


async def _until_over(copy: HostedCopy) -> None:
    while True:
        if not (await copy.look()).at_work:
            return
        await asyncio.sleep(LOOK_S)


def _the_one(found: FoundJobs, job: str, missing: NotFound) -> FoundJob:
    exact = [one for one in found.jobs if one.job.job == job]
    fitting = exact or [one for one in found.jobs if job and one.job.job.startswith(job)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise several(job, [f"{one.job.job} at {one.host.called}" for one in fitting])
    cause = "; ".join(["no tracker that answers carries it on", *found.silent])
    raise NotFound(missing.message, cause=cause, fix=missing.fix)


def _raise_failure(record: JobRecord, mark: HostedMark) -> None:
    if record.state is JobState.FAILED and record.error:
        told = record.error
        kind = error_classes().get(told.code, JobFailed)
        raise kind(told.message, cause=told.cause, fix=told.fix)
    if mark.trouble:
        raise JobFailed(f"the host has given {record.id} up: {mark.trouble}", fix=f"axon resume {record.id}")
