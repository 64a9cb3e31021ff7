"""Jobs that a tracker carries on, for commands that know only folders: the folder here is made a copy of that one."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from axonp2p.client.discovery.trackers import which_trackers
from axonp2p.client.hosted.hosted_mark import has_all, read_mark
from axonp2p.client.hosted.how_far import after_text, has_result
from axonp2p.client.storage.job_names import no_such_job
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import Ambiguous, AxonError, NotFound, PeerMisbehaved, Refused, SettingsError, Unreachable
from axonp2p.jobs.lifecycle import is_over
from axonp2p.settings import read_settings
from client_cli.context import Context
from client_cli.text.render import age_text

if TYPE_CHECKING:
    from axonp2p.client.job import Job
    from axonp2p.client.storage.job_commands import JobCommand
    from axonp2p.hosting.host import Host
    from axonp2p.hosting.messages import HostedWish

LOOK_S = 0.5
_WISHES: dict[str, HostedWish] = {"pause": "pause", "leave": "leave", "stop": "stop", "cancel": "cancel"}
"""`JobCommand` as hosts know them."""


def looked_at(
    job: str, context: Context, trackers: Sequence[str], *, result: bool = False, steers: bool = False
) -> JobFolder:
    """The folder of a job as it is now: its own, or what its host has told this moment.

    A host that does not answer is no error where the folder was copied before, unless the `result` is wanted, or who
    asks `steers` the job. Raises `NotFound`.
    """
    here = _here(job, context)
    if here is not None and (read_mark(here) is None or (result and has_all(here))):
        return here
    if here is None and not _may_be_elsewhere(context, trackers):
        return context.jobs().find(job)  # raises
    with context.swarm(trackers) as swarm:
        try:
            swarm.look_at_host(job if here is None else here.path.name, result=result)
        except NotFound:
            raise
        except SettingsError as error:  # no tracker is known, say: first of all there is no such job here
            if here is not None:
                raise
            missing = no_such_job(job, context.jobs().names())
            why = f"not on this computer, and no tracker could be asked: {error.in_a_line}"
            raise NotFound(missing.message, cause=missing.cause or why, fix=missing.fix) from error
        except (Unreachable, Refused, PeerMisbehaved) as error:
            if here is None or steers or (result and not has_result(here)):
                raise
            context.say(f"{error.in_a_line}: this is what it told last")
            if error.fix:
                context.say(f"fix: {error.fix}")
    return here or context.jobs().find(job)


@contextmanager
def following_host(
    job: str, context: Context, trackers: Sequence[str]
) -> Iterator[tuple[JobFolder, Callable[[], None]]]:
    """The same; while inside, the folder of a hosted job follows what happens there.

    The second thing given raises `Unreachable` once the host has not answered for long.
    """
    folder = looked_at(job, context, trackers)
    if read_mark(folder) is None:
        yield folder, lambda: None
        return
    with context.swarm(trackers) as swarm:
        silences: queue.SimpleQueue[Unreachable] = queue.SimpleQueue()
        attached = swarm.attach(folder.path.name, silent=silences.put)

        def check() -> None:
            while not silences.empty():
                error = silences.get()
                context.say(f"{error.in_a_line}; it is called again and again\nfix: {error.fix}")
            try:
                attached.wait(0)
            except AxonError:
                if not is_over(folder.read().state):  # else it is what the job ended with, which is shown as its end
                    raise

        yield folder, check


def is_hosted(job: str, context: Context, trackers: Sequence[str]) -> bool:
    """Whether a tracker carries the job on. Raises `NotFound` when there is no such job at all."""
    return read_mark(looked_at(job, context, trackers)) is not None


def resume_at_host(job: str, context: Context, trackers: Sequence[str]) -> int:
    """Have the host go on with the job, or the one that keeps a copy when the host is gone; gives the exit code."""
    name = context.jobs().find(job).path.name
    with context.swarm(trackers) as swarm:
        why = swarm.resume_at_host(name)
    folder = looked_at(name, context, trackers)
    mark = read_mark(folder)
    where = mark.place.called if mark else ""
    if why:
        context.say(f"{why}: {name} continues from the copy. If that host comes back, your next command about the job")
        context.say("tells it to leave the job.")
    context.answer(
        f"{name} continues at {where}.  See it: {context.command('watch', name)}",
        {"job": name, "state": "resumed"} | hosted_data(folder),
    )
    return 0


def stop_at_host(
    folder: JobFolder, wish: JobCommand, context: Context, trackers: Sequence[str]
) -> tuple[JobRecord, bool]:
    """Have the host stop the job, and wait until it has; what the job is then, and whether a process worked on it."""
    job = folder.path.name
    with context.swarm(trackers) as swarm:
        working = swarm.look_at_host(job).at_work
        if working or wish in ("stop", "cancel"):
            swarm.tell_host(job, _WISHES[wish])
        while swarm.look_at_host(job).at_work:
            time.sleep(LOOK_S)
    return folder.read(), working


def handed_over(job: Job, context: Context) -> int:
    """Tell that a tracker has the job now; gives the exit code."""
    folder = JobFolder(job.folder)
    mark = read_mark(folder)
    assert mark is not None
    lines = [
        f"{mark.place.called} carries {job.id} on. You may switch this computer off.",
        f"{mark.standby.place.called} keeps a copy of it."
        if mark.standby
        else f"No second host keeps a copy of it ({mark.without_copy}): what it keeps is there alone.",
        "See it, here or on another computer with the same key (client.key in your home):",
        f"  {context.command('watch', job.id)}",
        f"  {context.command('fetch', job.id, '-o', 'OUT')}      when it is done",
    ]
    context.answer("\n".join(lines), {"job": job.id, "state": "handed over"} | hosted_data(folder))
    return 0


def hosted_data(folder: JobFolder) -> dict[str, Any]:
    """The host that carries the job on, for text and JSON; empty for a job of this computer."""
    mark = read_mark(folder)
    if mark is None:
        return {}
    asked = f", asked {age_text(time.time() - mark.asked)} ago" if mark.asked else ""
    trouble = f"; given up: {mark.trouble}" if mark.trouble else ""
    former = f"; {mark.former.place.called} is to leave it when it answers" if mark.former else ""
    found = {"hosted": f"{mark.place.address.host_port}{asked}{trouble}{former}", "hosted_at": mark.tracker}
    if mark.role == "copy":
        return found | {"copy": _copy_text(mark.place, mark.kept, folder), "copy_at": mark.tracker}
    if mark.standby:
        return found | {
            "copy": _copy_text(mark.standby.place, mark.standby.kept, folder),
            "copy_at": mark.standby.tracker,
        }
    return found


def _copy_text(place: Host, kept: int | None, folder: JobFolder) -> str:
    return f"{place.address.host_port}, {after_text(kept, folder, 'nothing yet')}"


def _here(job: str, context: Context) -> JobFolder | None:
    try:
        return context.jobs().find(job)
    except Ambiguous:
        raise
    except NotFound:
        return None


def _may_be_elsewhere(context: Context, trackers: Sequence[str]) -> bool:
    """Without a key nothing was ever handed over, and without a tracker there is nobody to ask."""
    if not (context.home / "client.key").exists():
        return False
    remembered = (context.home / "trackers.json").exists()
    return remembered or bool(which_trackers(trackers, read_settings(context.home), context.home))
