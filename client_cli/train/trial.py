"""A job's task, tried here in the sandbox in which a peer would run it: its first steps, as a peer takes them (a door).

The trial itself is `kinds.train.local.trial`, in a process of its own, so that this one never loads torch.

Where no sandbox can be had it is a plain process, with its own folder for temporary files and no more.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from axonp2p.errors import JobFailed, LimitReached, PeerMisbehaved, Unreachable
from axonp2p.jobs.bundle import Bundle
from axonp2p.kinds.train.local.trial_messages import FromTrial, TrialDoing, TrialFound, mistake_of
from axonp2p.kinds.train.section import TrainJob
from axonp2p.missing_modules import not_installed
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.child import SandboxedWorker, WorkerEnd, why_no_sandbox
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.log import harmless
from axonp2p.sandbox.messages import Control
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame
from client_cli.child_errors import last_lines
from client_cli.interrupts import die_with_parent
from client_cli.meanwhile import Meanwhile
from client_cli.train.check_text import TaskTrial
from client_cli.worker_here import begin, fresh_copy, limits_of, sandboxed, why_not_here

PROGRAM = "axonp2p.kinds.train.local.trial_worker"
ENDING_S = 10.0
"""So long a process may take to end that has closed its channel."""


def try_task(spec: TrainJob, bundle: Bundle, meanwhile: Meanwhile, say: Callable[[str], None]) -> TaskTrial:
    """Try it. Raises `TaskMistake` with the user's own traceback, or `JobFailed` where the task ends its process."""
    if find_spec("torch") is None:
        lacking = not_installed(["torch"], "a trial")
        return TaskTrial(not_tried=f"{lacking.message}   {lacking.fix}")
    if reason := why_not_here(spec):
        return TaskTrial(not_tried=reason)
    meanwhile.begin("building the sandbox")
    no_sandbox = why_no_sandbox()
    if no_sandbox:
        say(f"the task is tried without the sandbox: {no_sandbox}")
    meanwhile.begin("copying the bundle into a fresh folder")
    with fresh_copy(bundle) as folder:
        found = asyncio.run(_try(_worker(folder, spec, in_sandbox=not no_sandbox), meanwhile))
    return TaskTrial(found, no_sandbox=no_sandbox)


def _worker(
    folder: Path, spec: TrainJob, *, in_sandbox: bool
) -> AbstractAsyncContextManager[SandboxedWorker | PlainWorker]:
    return sandboxed(folder, spec, PROGRAM) if in_sandbox else plain(folder, limits_of(spec), PROGRAM)


async def _try(
    starting: AbstractAsyncContextManager[SandboxedWorker | PlainWorker], meanwhile: Meanwhile
) -> TrialFound:
    meanwhile.begin("loading torch")
    async with starting as worker:
        try:
            while True:
                message, payload = await worker.channel.receive()
                if isinstance(message, Control):
                    said: FromTrial = decode(split_frame(payload).header, FromTrial, HEADER_LIMIT)
                    if isinstance(said, TrialDoing):
                        meanwhile.begin(said.what)
                    elif isinstance(said, TrialFound):
                        return said
                    else:
                        raise mistake_of(said)
        except PeerMisbehaved as error:
            raise JobFailed("the task wrote into its worker's channel", cause=error.message) from error
        except Unreachable as error:
            try:
                async with asyncio.timeout(ENDING_S):
                    raise why_ended(await worker.wait()) from error
            except TimeoutError:
                raise JobFailed("the task closed its worker's channel", fix="look for os.close()") from error


def why_ended(end: WorkerEnd) -> JobFailed:
    """The error for a trial that ended without an answer."""
    if end.limit:
        fix = {
            "memory": "ask for more under [need] (memory), or take a smaller batch or model",
            "disk": "write less below /tmp: it is in memory, and may hold a quarter of it",
        }.get(end.limit, "peers hold the task to the same limit: do with less")
        return LimitReached(f"the task {end.reason}", cause=last_lines(end.log_tail), fix=fix)
    fix = "look for exit() in the task, and for libraries that end the process"
    return JobFailed(f"the task's process {end.reason}, without an answer", cause=last_lines(end.log_tail), fix=fix)


MOST_LOG = 64 * 1024


class PlainWorker:
    """Of what a `SandboxedWorker` has: what a trial needs of it."""

    def __init__(self, process: asyncio.subprocess.Process, channel: WorkerChannel, log: Path) -> None:
        self.channel = channel
        self._process = process
        self._log = log

    def log(self) -> bytes:
        """The end of what it printed."""
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - MOST_LOG))
            return harmless(file.read(MOST_LOG)).encode()

    async def wait(self) -> WorkerEnd:
        """As a `SandboxedWorker`'s."""
        code = await self._process.wait()
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        return WorkerEnd(how, "", self.log().decode())


@asynccontextmanager
async def plain(folder: Path, limits: Limits, program: str) -> AsyncIterator[PlainWorker]:
    """`program` with the bundle in `folder`; ended afterwards with all that it started. Raises `JobFailed`."""
    ours, theirs = socket.socketpair()
    scratch = Path(tempfile.mkdtemp(prefix="axon-check-"))
    process: asyncio.subprocess.Process | None = None
    channel = WorkerChannel(ours)
    try:
        with theirs, (scratch / "log").open("wb") as log:
            (scratch / "tmp").mkdir()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", program, str(theirs.fileno()), str(folder)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # As in the sandbox, which has no compiler: what a task compiles runs as it is.
                env={**os.environ, "TMPDIR": str(scratch / "tmp"), "TORCH_COMPILE_DISABLE": "1"},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        worker = PlainWorker(process, channel, scratch / "log")
        await begin(worker, limits)
        yield worker
    finally:
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        channel.close()
        shutil.rmtree(scratch)
