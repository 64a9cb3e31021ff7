"""The process in which a host carries a client's job on: `axon resume` without a terminal, for one job.

`axonp2p.hosting.process` starts it, as `python -m axonp2p.client.hosted_run HOME JOB --tracker ADDRESS ...`. With
`--copy-from` it only copies the job once from the host that carries it on. It obeys
words on its stdin, and ends at once, as if killed, when that is closed: then nobody cares for it any more. Its exit
code is 0 when the job's folder says how it ended, whether well or not.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from axonp2p.client.events.events import JobEndedBadly
from axonp2p.client.hosted.hosted_copy import HostedCopy
from axonp2p.client.hosted.hosted_mark import remove_mark
from axonp2p.client.job import Job
from axonp2p.client.run.finish_kept import finish_kept
from axonp2p.client.storage.job_commands import JobCommand
from axonp2p.client.storage.job_record import ErrorRecord, has_record, new_record
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.client.swarm import Swarm
from axonp2p.clock import SystemClock
from axonp2p.console import run_program
from axonp2p.errors import AxonError, JobFailed
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.host import Host
from axonp2p.hosting.hosted_folder import packed_in
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.jobs.kinds import KINDS, load
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.jobs.spec import read_spec
from axonp2p.logs import configure_logs
from axonp2p.transport.address import PinnedAddress

NICE = 10
"""The host's own work comes first."""
ORPHAN_EXIT = 3


def main() -> int:
    """Carry the job on to its end, or write down how it ended."""
    told = _arguments()
    folder = JobFolder(told.home / "jobs" / told.job)
    configure_logs(level="warning")
    os.nice(NICE)
    if told.end_as:
        return run_program(lambda: end_as(folder, JobState(told.end_as), told.why), debug=False)
    import resource  # hosts are trackers, which Windows has none of

    resource.setrlimit(resource.RLIMIT_FSIZE, (told.most_bytes, told.most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if told.copy_from:
        threading.Thread(target=_obey, args=[{}], name="words", daemon=True).start()
        host = Host(PinnedAddress.parse(told.copy_from), told.host)
        return run_program(lambda: asyncio.run(copy_once(folder, told.home, host, told.most_bytes)), debug=False)
    return run_program(lambda: carry_on(folder, told.home, told.trackers), debug=False)


def carry_on(folder: JobFolder, home: Path, trackers: list[str]) -> int:
    """The whole of a life. Raises what kept the job from beginning."""
    begin(folder)
    remove_mark(folder)  # of the host that it was copied from
    for packed in packed_in(folder.path):  # of an earlier life
        packed.unlink()
    with Swarm(trackers, home=home, hosted=True) as swarm:
        job = swarm.resume(folder.path.name)
        threading.Thread(target=_obey, args=[words_of(job)], name="words", daemon=True).start()
        with suppress(AxonError):  # it stands in the folder
            job.wait()
    if not is_over(folder.read().state):
        return JobFailed.exit_code
    pack_results(folder)
    return 0


def pack_results(folder: JobFolder) -> None:
    """Make the file of results that its owner fetches, where its kind has one."""
    if pack := KINDS[folder.read().kind].pack:
        load(pack)(folder.path)


async def copy_once(folder: JobFolder, home: Path, host: Host, most_bytes: int) -> None:
    """Copy what is new of the job at that host, with the job's own key. Raises what asking raises."""
    async with await HostLine.open(load_or_create_key(home / "client.key"), host) as line:
        await HostedCopy(folder, line, SystemClock(), result=True, most_bytes=most_bytes).look()
    if folder.model.exists():
        folder.checkpoints(1).remove_all()


def begin(folder: JobFolder) -> None:
    """Write the record of a job of which there is only the bundle. Raises `JobFileWrong`."""
    if not has_record(folder.record_file):
        spec = read_spec(folder.bundle)
        folder.write(new_record(folder.path.name, spec, spec.name, SystemClock().now()), lasting=True)


def end_as(folder: JobFolder, state: JobState, why: str) -> int:
    """Write down how a job on which nobody works any more has ended, and have its results ready."""
    _write_end(folder, state, why)
    pack_results(folder)
    return 0


def _write_end(folder: JobFolder, state: JobState, why: str) -> None:
    now = SystemClock().now()
    begin(folder)
    if state is JobState.FINISHED:
        key = load_or_create_key(folder.path.parent.parent / "client.key")
        try:
            asyncio.run(finish_kept(folder, key, SystemClock()))
            return
        except JobFailed:  # nothing of it is kept, or it is over
            state = JobState.PAUSED
    with folder.held():
        folder.mend()
        record = folder.read()
        if record.state is JobState.FINISHED or (is_over(record.state) and state is not JobState.CANCELLED):
            return
        error = ErrorRecord(code=JobFailed.code, message=why, fix=f"axon resume {record.id}")
        failed = state is JobState.FAILED
        changes = {"state": state, "updated": now, "waits_for": [], "error": error if failed else record.error}
        folder.write(msgspec.structs.replace(record, **changes), lasting=True)
        if failed:
            event = JobEndedBadly(job=record.id, code=error.code, message=why, cause="", fix=error.fix)
            folder.add_event(msgspec.structs.replace(event, at=now))


def words_of(job: Job) -> dict[str, Callable[[], None]]:
    """The action that each word of its owner's leads to."""
    return {
        JobCommand.PAUSE: job.pause,
        JobCommand.LEAVE: job.leave,
        JobCommand.STOP: job.stop,
        JobCommand.CANCEL: job.cancel,
    }


def _obey(words: dict[str, Callable[[], None]]) -> None:
    """Obey the job's owner, word by word; and end, when the host is gone."""
    for line in sys.stdin:
        if act := words.get(line.strip()):
            act()
    os._exit(ORPHAN_EXIT)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hosted_run", description="Carry a client's job on.")
    parser.add_argument("home", type=Path)
    parser.add_argument("job")
    parser.add_argument("--tracker", dest="trackers", action="append", default=[])
    parser.add_argument("--most-bytes", type=int, default=2**62)
    parser.add_argument("--end-as", choices=["paused", "finished", "cancelled", "failed"], default="")
    parser.add_argument("--why", default="")
    parser.add_argument("--copy-from", default="")
    parser.add_argument("--host", default="")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
