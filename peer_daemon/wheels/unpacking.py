"""One wheel is unpacked in a sandbox of its own, which sees that wheel and nothing else, and writes nothing.

A wheel is a stranger's zip file: it is parsed behind the wall only. Only names and bytes come out of the sandbox,
which are checked (`wheels.arrival`) and written here. A hostile wheel can at most spoil what comes of itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from axonp2p.errors import PeerMisbehaved, Unreachable
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.child import SandboxedWorker, WorkerEnd, start_worker
from axonp2p.sandbox.limits import Limits, Priority
from axonp2p.sandbox.messages import Control
from axonp2p.wheels.messages import FromUnpacker
from axonp2p.wheels.wheel_writer import WheelWriter
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame

PROGRAM = "axonp2p.wheels.unpacker"
CLOSED_S = 10.0
"""For so long what has closed its channel may take to end."""
LIMITS = Limits(
    cores=1,
    memory_mb=512,
    scratch_mb=1,
    processes=4,
    open_files=64,
    cpu_seconds=180,
    wall_seconds=900,
    log_bytes=64 * 1024,
)
"""Far more than the largest wheel takes."""


@dataclass(frozen=True)
class UnpackingFor:
    """The lease for which a wheel is unpacked."""

    came: Callable[[int], None] = lambda size: None
    """Hears of bytes as they come."""
    beside: Callable[[SandboxedWorker], AbstractAsyncContextManager[None]] = lambda worker: nullcontext()
    """Around the life of the sandbox: it stands still when the lease's own does."""
    priority: Priority = "idle"


async def unpack_wheel(folder: Path, title: str, into: Path, most_bytes: int, lease: UnpackingFor) -> int:
    """Unpack the one wheel in `folder` into the empty folder `into`; what it counts (`WheelWriter.size`).

    Raises `PeerMisbehaved` for a wheel that is none, `LimitReached` for one that is too large, `SandboxMissing`.
    """
    limits = replace(LIMITS, priority=lease.priority)
    worker = await start_worker(folder, limits, program=PROGRAM)
    writer = WheelWriter(title, into, most_bytes)
    try:
        async with lease.beside(worker):
            await worker.channel.send(limits.start())
            await _hear(worker.channel, writer, lease.came)
    except Unreachable as error:
        end = await _end_of(worker)
        raise PeerMisbehaved(f"{title} cannot be unpacked: what unpacks it {end.reason}") from error
    finally:
        await worker.kill()
        await asyncio.to_thread(writer.close)
    return writer.size


async def _end_of(worker: SandboxedWorker) -> WorkerEnd:
    """Why it closed its channel; it is ended if it goes on without."""
    try:
        async with asyncio.timeout(CLOSED_S):
            return await worker.wait()
    except TimeoutError:
        return await worker.kill()


async def _hear(channel: WorkerChannel, writer: WheelWriter, came: Callable[[int], None]) -> None:
    while True:
        message, payload = await channel.receive()
        if not isinstance(message, Control):
            continue
        frame = split_frame(payload)
        said: FromUnpacker = decode(frame.header, FromUnpacker, HEADER_LIMIT)
        if await asyncio.to_thread(writer.hear, said, frame.payload):
            return
        came(len(frame.payload))
