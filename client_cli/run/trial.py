"""A job's first copy, run here for a moment in the sandbox in which a peer would run it (a door)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from axonp2p.errors import JobFailed
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.kinds import KINDS
from axonp2p.kinds.run.messages import CopyExited, CopyStarted, FromWorkerRun
from axonp2p.kinds.run.section import RunJob, order_for
from axonp2p.sandbox.child import SandboxedWorker, start_worker, why_no_sandbox
from axonp2p.sandbox.limits import Limits, scratch_within
from axonp2p.sandbox.messages import BundleReady, Control, Started
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

TRY_S = 20.0
"""So long the command may run: it is tried, not done."""
START_S = 60.0
TICK_S = 4.0
"""So often it is said that it still runs."""


@dataclass(frozen=True)
class Trial:
    """What came of it."""

    not_tried: str = ""
    """Why it was not tried; empty when it was."""
    code: int | None = None
    """How it ended; None when it still ran."""
    seconds: float = 0.0
    log: str = ""
    """What it printed."""
    reason: str = ""
    """Why it ended, where that was not by itself."""


def try_first_copy(spec: RunJob, bundle: Bundle, say: Callable[[str], None]) -> Trial:
    """Run it. Raises `JobFailed` where the sandbox itself ends."""
    if spec.need.datasets:
        return Trial(not_tried=f"it reads {', '.join(spec.need.datasets)}, which lies at peers")
    if reason := why_no_sandbox():
        return Trial(not_tried=reason)
    with tempfile.TemporaryDirectory(prefix="axon-check-") as scratch:
        job = Path(scratch)
        job.chmod(0o755)  # a worker of root's is another user
        bundle.copy_to(job)
        for file in bundle.files:
            (job / file.path).chmod(0o755)
        return asyncio.run(_try(job, spec, say))


async def _try(job: Path, spec: RunJob, say: Callable[[str], None]) -> Trial:
    kind = KINDS[spec.kind]
    cores, memory_mb = spec.need.cores, spec.need.memory
    limits = Limits(cores, memory_mb, scratch_within(memory_mb), executes=kind.executes)
    worker = await start_worker(job, limits, program=kind.worker)
    try:
        async with asyncio.timeout(START_S):
            await worker.channel.send(limits.start())
            started, _ = await worker.channel.receive()
        if not isinstance(started, Started):
            raise JobFailed("the sandbox did not start", cause=worker.log().decode())
        await worker.channel.send(BundleReady())
        await worker.channel.send(Control(), pack_frame(order_for("check", spec.run, 0, 0)))
        ticking = asyncio.create_task(_tick(say))
        try:
            async with asyncio.timeout(TRY_S):
                exited = await _exit(worker)
        except TimeoutError:
            return Trial(seconds=TRY_S, log=worker.log().decode())
        finally:
            ticking.cancel()
        await asyncio.sleep(0.1)  # the last of its log is still in the pipe
        return Trial(code=exited.code, seconds=exited.seconds, log=worker.log().decode(), reason=exited.reason)
    finally:
        await worker.kill()


async def _exit(worker: SandboxedWorker) -> CopyExited:
    while True:
        message, payload = await worker.channel.receive()
        if isinstance(message, Control):
            said: FromWorkerRun = decode(split_frame(payload).header, FromWorkerRun, HEADER_LIMIT)
            if isinstance(said, CopyExited):
                return said
            assert isinstance(said, CopyStarted)


async def _tick(say: Callable[[str], None]) -> None:
    seconds = 0.0
    while True:
        await asyncio.sleep(TICK_S)
        seconds += TICK_S
        say(f"it still runs after {seconds:.0f} s; it is ended after {TRY_S:.0f} s")
