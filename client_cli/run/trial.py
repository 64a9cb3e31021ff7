"""A job's first copy, run here for a moment in the sandbox in which a peer would run it (a door)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.kinds import KINDS
from axonp2p.kinds.run.messages import CopyExited, CopyStarted, FromWorkerRun
from axonp2p.kinds.run.section import RunJob, order_for
from axonp2p.sandbox.child import SandboxedWorker, why_no_sandbox
from axonp2p.sandbox.messages import Control
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from client_cli.meanwhile import Meanwhile
from client_cli.worker_here import fresh_copy, sandboxed, why_not_here

TRY_S = 20.0
"""So long the command may run: it is tried, not done."""


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


def try_first_copy(spec: RunJob, bundle: Bundle, meanwhile: Meanwhile) -> Trial:
    """Run it. Raises `JobFailed` where the sandbox itself ends."""
    if reason := why_not_here(spec) or why_no_sandbox():
        return Trial(not_tried=reason)
    meanwhile.begin("copying the bundle into a fresh folder")
    with fresh_copy(bundle) as folder:
        return asyncio.run(_try(folder, spec, meanwhile))


async def _try(folder: Path, spec: RunJob, meanwhile: Meanwhile) -> Trial:
    async with sandboxed(folder, spec, KINDS[spec.kind].worker) as worker:
        await worker.channel.send(Control(), pack_frame(order_for("check", spec.run, 0, 0)))
        meanwhile.begin(f"copy 0, which is ended after {TRY_S:.0f} s,")
        try:
            async with asyncio.timeout(TRY_S):
                exited = await _exit(worker)
        except TimeoutError:
            return Trial(seconds=TRY_S, log=worker.log().decode())
        await asyncio.sleep(0.1)  # the last of its log is still in the pipe
        return Trial(code=exited.code, seconds=exited.seconds, log=worker.log().decode(), reason=exited.reason)


async def _exit(worker: SandboxedWorker) -> CopyExited:
    while True:
        message, payload = await worker.channel.receive()
        if isinstance(message, Control):
            said: FromWorkerRun = decode(split_frame(payload).header, FromWorkerRun, HEADER_LIMIT)
            if isinstance(said, CopyExited):
                return said
            assert isinstance(said, CopyStarted)
