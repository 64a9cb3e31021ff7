"""A trial's worker as a plain process, where no sandbox can be had: its own folder for temporary files, and no more."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.child import WorkerEnd
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.log import harmless
from client_cli.interrupts import die_with_parent
from client_cli.worker_here import begin

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
