"""A worker in a sandbox: started, watched, ended, and its end explained."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from axonp2p.errors import MalformedMessage, SandboxMissing
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.environment import closed_to_others, find_environment
from axonp2p.sandbox.launch import Launched, find_bubblewrap, launch, made_up_files
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.log import LEAST_PAUSE_S, READ_AT_ONCE, BoundedLog, LogPace
from axonp2p.sandbox.messages import StandBy, StandsBy
from axonp2p.sandbox.walls.command_line import Descriptors, bubblewrap_command
from axonp2p.sandbox.walls.diagnosis import FIXED_BY, LINUX_ONLY, Kernel, why_it_failed
from axonp2p.sandbox.walls.drop_privileges import choose_user
from axonp2p.sandbox.walls.seccomp import filter_program, open_filter
from axonp2p.sandbox.watch.ending import Circumstances, ending
from axonp2p.sandbox.watch.init_process import InitProcess
from axonp2p.sandbox.watch.priority import processors_taken
from axonp2p.sandbox.watch.processors import processors_for
from axonp2p.sandbox.watch.verdict import LimitVerdict
from axonp2p.sandbox.watch.watcher import Watch
from axonp2p.sandbox.watch.worker_group import WorkerGroup, own_territory

LOG_TAIL = 4000
"""Characters of the log that the end of a worker carries."""
_LOG_END_S = 2.0

_TRY_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker ended."""

    reason: str
    """A sentence without a subject: "ended with exit code 1"."""
    limit: str
    """The limit that it met: "memory", "gpu-memory", "processes", "cpu", "cores", "files", "output", "disk", "time"; or
    "" for none."""
    log_tail: str
    """The last of what it printed, without control characters."""


@dataclass(frozen=True)
class Usage:
    """The resources that a worker used at the last look, all its processes together."""

    memory_bytes: int
    """That are no cache of a file."""
    cpu_seconds: float
    """Of processor time since it was started."""
    tasks: int
    """Processes and threads."""


class SandboxedWorker:
    """One worker in its sandbox. The code that started it calls `kill` in the end, ended or not.

    `started` is monotonic seconds, `pid` the sandbox's first process as seen from outside.
    """

    def __init__(self, launched: Launched, channel: WorkerChannel, limits: Limits, group: WorkerGroup | None) -> None:
        self.channel = channel
        self.started = time.monotonic()
        self.pid = launched.first.pid
        self._launched = launched
        self._limits = limits
        self._group = group
        self._log = BoundedLog(limits.log_bytes)
        self._log_pace, self._floods = LogPace(), False
        os.set_blocking(launched.log.fileno(), False)
        self._watch = Watch(launched.first, limits, lambda: self._log.total, group)
        self._killed = False
        self._end = asyncio.create_task(self._until_the_end())

    async def wait(self) -> WorkerEnd:
        """Wait until no process of the sandbox is left, and say why."""
        return await asyncio.shield(self._end)

    @property
    def frozen(self) -> bool:
        """Whether it was told to stand still."""
        return self._watch.freezer.frozen

    async def freeze(self) -> None:
        """Make all its processes stand still; returns when they do, within a second. `kill` works on them too."""
        await asyncio.to_thread(self._watch.freezer.freeze)

    async def thaw(self) -> None:
        """Let its processes go on."""
        await asyncio.to_thread(self._watch.freezer.thaw)

    async def stand_by(self) -> None:
        """Have it load what it is made of, and wait for its `Start`.

        Returns when its sandbox is whole: before, a folder that it is to show must not be renamed. Raises what the
        channel's `receive` raises.
        """
        await self.channel.send(StandBy(cores=self._limits.cores))
        message, _ = await self.channel.receive()
        if not isinstance(message, StandsBy):
            raise MalformedMessage(f"{type(message).__name__} in answer to StandBy")
        self._watch.rest(True)

    def bind(self, memory_mb: int) -> None:
        """It stood by, and works for a lease with this memory from now on; all other limits stay. Raises `OSError`."""
        limits = replace(self._limits, memory_mb=memory_mb)
        if self._group is not None:
            self._group.limit(limits)
        self._limits = self._watch.limits = limits
        self._watch.rest(False)
        self.started = time.monotonic()

    def hold_to(self, cores: int) -> None:
        """Let all its threads run on so many cores only, from now on and until this is called again.

        0: on as many as its limits say, as at its start.
        """
        allowed = os.sched_getaffinity(0)
        if not cores and self._group is not None and self._group.holds_cores:
            self._watch.hold_to(frozenset(allowed))
        else:
            taken = processors_taken(allowed, self._watch.pids())
            self._watch.hold_to(processors_for(cores or self._limits.cores, allowed, taken))

    def end_over(self, limit: str, reason: str) -> None:
        """End it at a limit that only who started it can see; `reason` as in `WorkerEnd`."""
        self._watch.end(LimitVerdict(limit, reason))

    def usage(self) -> Usage:
        """Its use at the last look, which is a tenth of a second old at most, half a second while frozen."""
        last = self._watch.last
        return Usage(last.memory_bytes, last.cpu_seconds, last.tasks)

    async def kill(self) -> WorkerEnd:
        """End the sandbox at once, with all its processes, and close the channel."""
        self._killed = True
        if not self._end.done():
            self._watch.kill()
        end = await self.wait()
        self.channel.close()
        return end

    def log(self, start: int = 0) -> bytes:
        """Its output from byte `start` on, UTF-8: head and tail within the limit, control characters replaced."""
        if not self._floods and not self._launched.log.closed:
            with contextlib.suppress(BlockingIOError):
                self._read_piece()  # printed in the pause between two readings, and perhaps the last that it prints
        return self._log.text(start).encode()

    def log_since(self, start: int, most: int) -> tuple[int, bytes]:
        """At most `most` of the bytes that it printed from `start` on, as it printed them, and where they begin."""
        return self._log.since(start, most)

    async def _until_the_end(self) -> WorkerEnd:
        reading = asyncio.create_task(self._read_log())
        self._watch.start()
        try:
            code = await self._launched.bubblewrap.wait()
        finally:
            # bubblewrap ends with the worker's main process; children that it left behind end here.
            self._watch.kill()
        await self._launched.first.ended()
        verdict = await asyncio.to_thread(self._watch.stop)
        self._launched.first.close()
        # Nobody can hold the other end any more, but what lies in the pipe may be long.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOG_END_S):
                await reading
        tail = self._log.end(LOG_TAIL)
        out_of_memory = self._group is not None and self._group.ran_out_of_memory()
        found = Circumstances(code, self._killed, verdict, out_of_memory, self._watch.last, tail)
        if self._group is not None:
            await asyncio.to_thread(self._group.remove)
        return WorkerEnd(*ending(found, self._limits), tail)

    async def _read_log(self) -> None:
        # Straight from the pipe, which fills while nothing is read: a reader of asyncio's would read ahead.
        pipe, loop = self._launched.log, asyncio.get_running_loop()
        readable = asyncio.Event()
        try:
            while True:
                readable.clear()
                loop.add_reader(pipe.fileno(), readable.set)
                try:
                    await readable.wait()
                finally:
                    loop.remove_reader(pipe.fileno())
                try:
                    pause = self._read_piece()
                except BlockingIOError:
                    continue
                if pause is None:
                    return
                await asyncio.sleep(pause)
        finally:
            pipe.close()

    def _read_piece(self) -> float | None:
        """Take what is in the pipe; the seconds until the next reading, None at its end. Raises `BlockingIOError`."""
        piece = os.read(self._launched.log.fileno(), READ_AT_ONCE)
        if not piece:
            return None
        self._log.add(piece)
        pause = self._log_pace.pause(len(piece), asyncio.get_running_loop().time())
        self._floods = pause > LEAST_PAUSE_S
        return pause


def why_no_sandbox() -> str:
    """ "" when a sandbox can be had here, else why not and the command that mends it.

    Builds one and runs the interpreter in it; blocks for some 200 ms.
    """
    if sys.platform != "linux":
        return LINUX_ONLY
    try:
        bubblewrap = find_bubblewrap()
        filter_program()
    except SandboxMissing as missing:
        return f"{missing.message}{FIXED_BY}{missing.fix}"
    environment, user = find_environment(), choose_user()
    closed = None if user is None else closed_to_others(environment)
    if closed is not None:
        return f"a worker of root's runs as another user, who may not read {closed}{FIXED_BY}chmod -R a+rX {closed}"
    with contextlib.ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="axon-"))
        limits = Limits(cores=1, memory_mb=256, scratch_mb=1)
        files = tuple((opened.enter_context(file).fileno(), path) for file, path in made_up_files(limits))
        program = opened.enter_context(open_filter()).fileno()
        # Where a worker waits for its word to go, there are zeros to be read at once.
        info = opened.enter_context(open("/dev/null", "wb")).fileno()
        go = opened.enter_context(open("/dev/zero", "rb")).fileno()
        command = bubblewrap_command(
            bubblewrap,
            environment,
            limits,
            job_folder=folder,
            descriptors=Descriptors(files=files, info=info, go=go, filter=program),
            run=["axonp2p.sandbox.limits"],
            user=user,
        )
        try:
            tried = subprocess.run(
                command,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=(*(file for file, _ in files), info, go, program),
                timeout=_TRY_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap cannot be run: {error}"
    if tried.returncode == 0:
        return ""
    return why_it_failed(tried.stderr.decode(errors="replace"), _kernel(), root=user is not None)


def _kernel() -> Kernel:
    names = (
        "kernel/unprivileged_userns_clone",
        "kernel/apparmor_restrict_unprivileged_userns",
        "user/max_user_namespaces",
    )
    found: list[int | None] = []
    for name in names:
        try:
            found.append(int(Path("/proc/sys", name).read_text(encoding="ascii")))
        except (OSError, ValueError):
            found.append(None)
    return Kernel(*found)


async def start_worker(
    job_folder: Path,
    limits: Limits,
    *,
    program: str,
    python_path: tuple[str, ...] = (),
    data: Mapping[str, Path] | None = None,
    blobs: Path | None = None,
) -> SandboxedWorker:
    """Start `python -m PROGRAM FD` in a sandbox that sees `job_folder`, read-only, as /job.

    Each folder of `data` is shown, read-only, as /data/NAME, and the folder `blobs` as /blobs.
    `python_path` are folders inside, such as /job, where modules are looked for after Axon's own and the packages.
    Returns when the sandbox stands; Python is still loading in it. Files that are written to these folders later
    appear inside at once. Raises `SandboxMissing`, and `SettingsError` when data is not where it was said to be.
    The sandbox ends with the thread that calls this.
    """
    territory = await asyncio.to_thread(own_territory)
    group = territory.group(limits) if territory else None
    try:
        launched = await launch(
            job_folder, limits, program, python_path, data, blobs=blobs, prepare=partial(_settle, group, limits)
        )
    except BaseException:
        if group is not None:
            group.remove()
        raise
    return SandboxedWorker(launched, WorkerChannel(launched.channel), limits, group)


def _settle(group: WorkerGroup | None, limits: Limits, first: InitProcess) -> None:
    first.lower(limits.priority)
    if group is not None:
        group.take(first.pid)
    if group is None or not group.holds_cores:
        # Before anything runs in it: whatever it starts is held as well.
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(first.pid, processors_for(limits.cores, allowed, processors_taken(allowed)))
