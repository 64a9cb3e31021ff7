"""Runs all hostile jobs, each in a sandbox of its own, beside one peaceful job, and prints how each ended, as JSON.

A program, so that it can be run as any user: `python -m tests.system.sandbox.hostile.contain`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil

from axonp2p.errors import AxonError
from axonp2p.sandbox.attacks.attack import Tried
from axonp2p.sandbox.attacks.run import LIMITS as WALL_LIMITS
from axonp2p.sandbox.attacks.run import attacked_machine, hear
from axonp2p.sandbox.child import SandboxedWorker, start_worker
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.messages import BundleReady, Control, Started
from tests.system.sandbox.hostile import inside
from tests.system.sandbox.hostile.all_jobs import JOBS
from tests.system.sandbox.hostile.jobs import ALIVE, HostileJob
from tests.system.sandbox.hostile.light import inside as light
from tests.system.sandbox.hostile.light.outside import more_to_attack

LIMITS = Limits(cores=1, memory_mb=200, scratch_mb=16, processes=20, log_bytes=16 * 1024, priority="normal")
AT_A_TIME = 3
_LISTEN_S = 1.0
_LISTENED = 3000
"""Messages after which nobody listens any more."""
_PATIENCE_S = 1.5
"""For a job that never ends by itself."""
_END_S = 60.0
_ALL_PROCESSES = 2000
"""So many of this user's: should the wall fall, the machine that the test runs on stands."""


class HowItEnded(msgspec.Struct):
    """What came of one hostile job."""

    name: str
    ended: str
    """The limit that ended it; "": none did; "alive": the daemon ended it."""
    reason: str
    log: str
    heard: list[str]
    left: list[int]
    """Processes of it that still run."""
    answered: bool
    """Whether the peaceful job answered afterwards."""
    seconds: float


class Told(msgspec.Struct):
    """What came of all of them."""

    user: int
    """Who ran them."""
    tried: list[Tried]
    """How the attacks went that harm nothing."""
    jobs: list[HowItEnded]
    descriptors: int
    """How many more this process had open in the end."""
    memory_mb: int
    """The most memory that this process had."""


class Peaceful:
    """A job that does what it is asked, beside all the others."""

    def __init__(self, worker: SandboxedWorker) -> None:
        self.worker = worker
        self._one_at_a_time = asyncio.Lock()

    async def answers(self) -> bool:
        """Whether it does within a long time."""
        question = os.urandom(2**16)
        with contextlib.suppress(AxonError, TimeoutError):
            async with self._one_at_a_time, asyncio.timeout(_END_S):
                await self.worker.channel.send(Control(), question)
                return (await self.worker.channel.receive())[1] == question
        return False


async def begin(folder: Path, name: str, limits: Limits) -> SandboxedWorker:
    """A worker that has taken its limits and was told which job to run."""
    worker = await start_worker(folder, limits, program=inside.__name__, python_path=("/job",))
    try:
        await worker.channel.send(limits.start())
        assert await worker.channel.receive() == (Started(), b""), worker.log().decode()
        await worker.channel.send(BundleReady())
        await worker.channel.send(Control(), name.encode())
    except BaseException:
        print((await worker.kill()).log_tail, file=sys.stderr)
        raise
    return worker


async def run(folder: Path, job: HostileJob, peaceful: Peaceful) -> HowItEnded:
    """Let the job do its worst, and see how it ends."""
    began = time.monotonic()
    worker = await begin(folder, job.name, replace(LIMITS, **job.limits))
    heard = await listen(worker) if job.heard else []
    if job.sent_to:
        await send_much(worker)
    ended = ""
    try:
        async with asyncio.timeout(_PATIENCE_S if ALIVE in job.ends else _END_S):
            end = await worker.wait()
    except TimeoutError:
        ended = ALIVE
    family = [worker.pid, *(child.pid for child in _children(worker.pid))]
    end = await worker.kill()
    left = [pid for pid in family if _runs(pid)]
    answered = await peaceful.answers()
    seconds = time.monotonic() - began
    return HowItEnded(job.name, ended or end.limit, end.reason, end.log_tail, heard, left, answered, seconds)


async def listen(worker: SandboxedWorker) -> list[str]:
    """Names of what it sends for a while, and of the error that ends it."""
    heard: set[str] = set()
    try:
        async with asyncio.timeout(_LISTEN_S):
            for _ in range(_LISTENED):
                message, _ = await worker.channel.receive()
                heard.add(type(message).__name__)
    except TimeoutError:
        pass
    except AxonError as error:
        heard.add(type(error).__name__)
    return sorted(heard) or [""]


async def send_much(worker: SandboxedWorker) -> None:
    """As long as the channel takes it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LISTEN_S):
            while True:
                await worker.channel.send(Control(), bytes(2**20))


def _children(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return list(psutil.Process(pid).children(recursive=True))
    return []


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


async def try_the_wall() -> list[Tried]:
    """How each light attack went: those of `axon-peer doctor`, and the others."""
    async with attacked_machine() as (job, target), more_to_attack(target):
        copy_into(job)
        worker = await start_worker(job, WALL_LIMITS, program=light.__name__, python_path=("/job",))
        return await hear(worker, light.ATTACKS)


def copy_into(job: Path) -> None:
    """The modules of the hostile jobs and attacks, which a worker imports."""
    own = Path(__file__).parent
    inside_job = job / own.relative_to(own.parents[3])
    shutil.copytree(own, inside_job, ignore=shutil.ignore_patterns("__pycache__"))


async def contain(folder: Path) -> Told:
    """Run them all, a few at a time."""
    # Inherited by every worker, and kept by those that are no root.
    resource.setrlimit(resource.RLIMIT_NPROC, (_ALL_PROCESSES, _ALL_PROCESSES))
    tried = await try_the_wall()
    copy_into(folder)
    peaceful = Peaceful(await begin(folder, inside.PEACEFUL, LIMITS))
    assert await peaceful.answers()
    descriptors = len(os.listdir("/proc/self/fd"))
    room = asyncio.Semaphore(AT_A_TIME)

    async def next_one(job: HostileJob) -> HowItEnded:
        async with room:
            return await run(folder, job, peaceful)

    ended = await asyncio.gather(*map(next_one, JOBS.values()))
    more = len(os.listdir("/proc/self/fd")) - descriptors
    await peaceful.worker.kill()
    return Told(os.getuid(), tried, ended, more, most_memory_mb())


def most_memory_mb() -> int:
    """Not `ru_maxrss`, which counts the memory of the process that started this one as well."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) // 1024


def main() -> None:
    """Run them in a folder that is gone afterwards."""
    # An attack is aimed at the group of this process, by its number.
    os.setpgid(0, 0)
    with tempfile.TemporaryDirectory(prefix="axon-hostile-") as folder:
        # The worker is another user than root.
        os.chmod(folder, 0o755)
        print(msgspec.json.encode(asyncio.run(contain(Path(folder)))).decode())


if __name__ == "__main__":
    main()
