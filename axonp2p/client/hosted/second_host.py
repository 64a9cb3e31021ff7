"""The second host of a job, which keeps a copy of what the first one has: asked when that one does not answer.

The copy never begins by itself. `go_over` has it go on, on its owner's word alone, and the first host is told to leave
the job as soon as it answers again (`leave_former`): two hosts work on one job only while nobody can reach the first.
"""

from __future__ import annotations

import asyncio

import msgspec

from axonp2p.client.hosted.hosted_copy import HostedCopy, opened_record
from axonp2p.client.hosted.hosted_mark import HostedMark, OtherHost, has_all, read_mark, write_mark
from axonp2p.client.hosted.how_far import after_text, kept_here, kept_there
from axonp2p.client.leasing.hiring import Means
from axonp2p.client.storage.job_record import has_record
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError, PeerMisbehaved, Refused, SettingsError, Unreachable
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.messages import HostedWish
from axonp2p.jobs.lifecycle import JobState
from axonp2p.logs import get_logger

log = get_logger(__name__)

WITHIN_S = 5.0
"""How long the other host may take, where nobody waits for it."""


def is_gone(error: AxonError) -> bool:
    """Whether a host that answers so, or not at all, may be gone for good: dead, emptied, or another in its place."""
    return isinstance(error, Unreachable) or type(error) in (Refused, PeerMisbehaved)


def without_host(folder: JobFolder) -> str:
    """How the job goes on when its host is gone for good, and from where."""
    kept = kept_here(folder)
    begins = after_text(kept, folder, "from its beginning: nothing of it is kept here")
    begins += ", kept here" if kept else ""
    where = "" if folder.bundle.exists() else ", on the computer that submitted it"
    mark = read_mark(folder)
    if mark and mark.standby:
        after = after_text(mark.standby.kept, folder, "from its beginning: it told of nothing kept yet")
        there = f"continues at {mark.standby.place.called}, which keeps a copy, {after}"
        here = f"or axon resume {folder.path.name} --here, which continues {begins}{where}"
        return f"axon resume {folder.path.name}      (when the host is gone for good; {there}; {here})"
    return f"axon resume {folder.path.name} --here      (when the host is gone for good{where}; continues {begins})"


async def look_at_copy(means: Means, folder: JobFolder, *, take: bool = True, result: bool = False) -> None:
    """Learn how far the copy is. Raises nothing but `SettingsError`.

    With `take`, what is newer than what is here comes too, and with `result` what it came to, however large.
    """
    mark = read_mark(folder)
    if mark is None or mark.standby is None:
        return
    try:
        async with await HostLine.open(means.key, mark.standby.place) as line:
            state, told = await line.folder(folder.path.name, b"")
            there = opened_record(told, folder.path.name)
            kept = kept_there(state.files, there)
            is_newer = (kept or 0) > (kept_here(folder) or 0)
            is_done = there is not None and there.state is JobState.FINISHED and not has_all(folder)
            if take and (is_newer or is_done or not has_record(folder.record_file)):
                await HostedCopy(folder, line, means.clock, result=result).look()
    except SettingsError:
        raise
    except AxonError as error:
        log.info("the copy is not reached", job=folder.path.name, reason=error.in_a_line)
    else:
        standby = msgspec.structs.replace(mark.standby, kept=kept)
        write_mark(folder, msgspec.structs.replace(mark, standby=standby))


async def go_over(means: Means, folder: JobFolder, mark: HostedMark, standby: OtherHost) -> None:
    """Have the job go on where its copy is. Raises what asking raises."""
    async with await HostLine.open(means.key, standby.place) as line:
        await line.tell(folder.path.name, "resume")
        former = OtherHost(tracker=mark.tracker, host=mark.host)
        write_mark(folder, HostedMark(tracker=standby.tracker, host=standby.host, former=former))
        await HostedCopy(folder, line, means.clock, result=False).look()


async def leave_former(means: Means, folder: JobFolder) -> None:
    """Tell the host that the job was taken from to leave it, if it answers by now. Raises `SettingsError` alone."""
    mark = read_mark(folder)
    if mark is None or mark.former is None:
        return
    if await _is_told(means, folder, mark.former, "leave", "fetched") and (now := read_mark(folder)):
        write_mark(folder, msgspec.structs.replace(now, former=None))


async def let_copy_go(means: Means, folder: JobFolder) -> None:
    """The job's owner has what came of it: nobody need keep the copy. Raises `SettingsError` alone."""
    mark = read_mark(folder)
    if mark is None or mark.standby is None:
        return
    if await _is_told(means, folder, mark.standby, "fetched") and (now := read_mark(folder)):
        write_mark(folder, msgspec.structs.replace(now, standby=None))


async def _is_told(means: Means, folder: JobFolder, other: OtherHost, *wishes: HostedWish) -> bool:
    """Whether it has heard them, or does not hold the job any more."""
    job = folder.path.name
    try:
        async with asyncio.timeout(WITHIN_S), await HostLine.open(means.key, other.place) as line:
            for wish in wishes:
                await line.tell(job, wish)
    except (AxonError, TimeoutError) as error:
        if type(error) is Refused:
            return True
        log.info("another host of the job is not told", job=job, host=other.place.called, wishes=wishes)
        return False
    return True
