"""A worker of a job, started here for `axon check`: a fresh copy of the bundle, in the sandbox of a peer (a door)."""

from __future__ import annotations

import asyncio
import importlib.metadata
import shlex
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from axonp2p.errors import AxonError, JobFailed, PackagesWrong, Unreachable
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.spec import JobSpec
from axonp2p.peers.capability import meets_requirement, package_of
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.child import SandboxedWorker, start_worker, why_no_sandbox
from axonp2p.sandbox.limits import Limits, scratch_within
from axonp2p.sandbox.messages import BundleReady, Started
from axonp2p.wheels.bundled import MOST_UNPACKED_BYTES, wheels_among
from axonp2p.wheels.unpacker import NoWheel, ToldFiles, unpack
from axonp2p.wheels.wheel_writer import WheelWriter
from client_cli.meanwhile import Meanwhile

START_S = 600.0
"""Torch is loaded within seconds, unless the disk is slow or the machine busy; meanwhile it is told."""
DATA = Path("/data")


TRY_S = 20.0
"""So long a first call or copy may take: it is tried, not done."""
LOG_SHOWN = 1000
"""Characters of what it printed."""
T = TypeVar("T")


class WorkerHere(Protocol):
    """The parts of a worker that a trial needs, in a sandbox or not."""

    channel: WorkerChannel

    def log(self) -> bytes:
        """The output of the worker so far, without control characters."""
        ...


def try_in_sandbox(
    spec: JobSpec, bundle: Bundle, meanwhile: Meanwhile, attempt: Callable[[SandboxedWorker], Awaitable[T]]
) -> T | str:
    """The outcome of `attempt` with a worker of this job, or the reason why the job cannot be tried here.

    Raises `JobFailed` where the sandbox itself ends.
    """
    if reason := why_not_here(spec) or why_no_sandbox():
        return reason
    meanwhile.begin("copying the bundle into a fresh folder")

    async def tried(folder: Path) -> T:
        async with sandboxed(folder, spec, KINDS[spec.kind].worker) as worker:
            return await attempt(worker)

    with fresh_copy(bundle) as folder:
        try:
            return asyncio.run(tried(folder))
        except (Unreachable, TimeoutError) as error:
            raise JobFailed("the sandbox ended while the job was tried in it", cause=str(error)) from error


@contextmanager
def fresh_copy(bundle: Bundle) -> Iterator[Path]:
    """A folder with the files that would be sent, wheels unpacked, and no others; nobody but root may change them.

    Raises `PackagesWrong` for a wheel that peers would not take either.
    """
    with tempfile.TemporaryDirectory(prefix="axon-check-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)  # a worker of root's is another user
        bundle.copy_to(folder)
        for file in bundle.files:
            (folder / file.path).chmod(0o555)
        unpack_wheels(bundle, folder)
        yield folder


@asynccontextmanager
async def sandboxed(folder: Path, spec: JobSpec, program: str) -> AsyncIterator[SandboxedWorker]:
    """`program` in the sandbox in which a peer would run this job, with the bundle in `folder`; ended afterwards.

    Raises `SandboxMissing`, and as `begin`.
    """
    limits = limits_of(spec)
    data = {name: DATA / name for name in spec.need.datasets}
    worker = await start_worker(folder, limits, program=program, data=data)
    try:
        await begin(worker, limits)
        yield worker
    finally:
        await worker.kill()


async def begin(worker: WorkerHere, limits: Limits) -> None:
    """Tell it what a daemon tells a worker first. Raises `JobFailed` when it does not start."""
    try:
        async with asyncio.timeout(START_S):
            await worker.channel.send(limits.start())
            started, _ = await worker.channel.receive()
        if isinstance(started, Started):
            await worker.channel.send(BundleReady())
            return
    except (Unreachable, TimeoutError):
        pass
    raise JobFailed("the job's worker did not start here", cause=worker.log().decode().strip(), fix="axon-peer doctor")


def limits_of(spec: JobSpec) -> Limits:
    """Those of a peer that lends what the job needs, but for its priority: somebody waits for this one."""
    need = spec.need
    return Limits(
        cores=need.cores,
        memory_mb=need.memory,
        scratch_mb=scratch_within(need.memory),
        executes=KINDS[spec.kind].executes,
        priority="normal",
    )


def why_not_here(spec: JobSpec) -> str:
    """The reason why the job cannot be tried here: needs that only peers may meet; empty when nothing is missing."""
    lacking = [text for text in spec.need.packages if not meets_requirement(text, _installed(package_of(text)))]
    if lacking:
        return f"{' and '.join(lacking)} cannot be had here (pip install {' '.join(map(shlex.quote, lacking))})"
    data = [name for name in spec.need.datasets if not (DATA / name).exists()]
    return f"it reads {' and '.join(data)}, which only peers have" if data else ""


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def unpack_wheels(bundle: Bundle, into: Path) -> None:
    """Unpack the wheels of the bundle below the folder `into`, as they lie in a sandbox.

    Raises `PackagesWrong` for what peers would not take either. Blocks.
    """
    sources = {file.path: file.source for file in bundle.files}
    for wheel in wheels_among(bundle.blob.files):
        folder = into / wheel.unpacked
        folder.mkdir(parents=True)
        for above in (folder, *folder.parents[:2]):
            above.chmod(0o755)  # a worker of root's is another user
        writer = WheelWriter(wheel.title, folder, MOST_UNPACKED_BYTES)
        try:
            unpack(sources[wheel.path], ToldFiles(lambda message, payload=b"", to=writer: to.hear(message, payload)))
        except NoWheel as error:
            raise PackagesWrong(f"{wheel.title} {error}", fix="bring another version of it") from error
        except AxonError as error:
            raise PackagesWrong(error.message, fix="bring another version of it") from error
        finally:
            writer.close()
