"""Hostile programs in a real sandbox: what runs them there. Without bubblewrap these tests are skipped, saying why."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from axonp2p.errors import Unreachable
from axonp2p.sandbox.child import SandboxedWorker, WorkerEnd, start_worker, why_no_sandbox
from axonp2p.sandbox.limits import Limits, Priority
from axonp2p.sandbox.messages import BundleReady, Control, Started

PROBE = """\
import json, sys
from axonp2p.sandbox.inside import Inside, apply_limits
from axonp2p.sandbox.messages import Control, Started

def main():
    channel = Inside(int(sys.argv[1]))
    apply_limits(channel.receive()[0])
    channel.send(Started())
    channel.receive()
    names = {"channel": channel, "answer": lambda value: channel.send(Control(), json.dumps(value).encode())}
    exec(compile(open("/job/task.py").read(), "/job/task.py", "exec"), names)

main()
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    missing = why_no_sandbox() if here else ""
    for item in here:
        item.add_marker(pytest.mark.sandbox)
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"no sandbox here: {missing}"))


class Sandboxed:
    """Runs tasks, which find the functions `answer` and `channel`, as a stranger's code is run."""

    LIMITS = Limits(cores=1, memory_mb=200, scratch_mb=16, processes=20)

    def __init__(self, job: Path) -> None:
        self.job = job
        self.priority: Priority = "normal"
        """An idle one, as an owner has it who says nothing, would starve next to whatever else this machine does."""
        # pytest's is for its owner alone; a worker of root's is another user.
        job.chmod(0o755)

    @asynccontextmanager
    async def worker(self, task: str, limits: Limits = LIMITS) -> AsyncIterator[SandboxedWorker]:
        """A worker that runs `task`; nothing of it is left afterwards."""
        (self.job / "probe.py").write_text(PROBE)
        limits = replace(limits, priority=self.priority)
        worker = await start_worker(self.job, limits, program="probe", python_path=("/job",))
        try:
            await worker.channel.send(limits.start())
            assert await worker.channel.receive() == (Started(), b""), worker.log().decode()
            # Written while the sandbox runs already, as the daemon does with a bundle.
            (self.job / "task.py").write_text(textwrap.dedent(task))
            await worker.channel.send(BundleReady())
            yield worker
        finally:
            await worker.kill()
            assert not is_alive(worker.pid)

    async def answer(self, task: str, limits: Limits = LIMITS) -> Any:
        """What `task` answered."""
        async with asyncio.timeout(60), self.worker(task, limits) as worker:
            try:
                message, payload = await worker.channel.receive()
            except Unreachable:
                pytest.fail(f"{await worker.wait()}")
            assert message == Control()
            return json.loads(bytes(payload))

    async def end(self, task: str, limits: Limits = LIMITS) -> WorkerEnd:
        """How a worker with `task` ended by itself or by a limit."""
        async with asyncio.timeout(60), self.worker(task, limits) as worker:
            return await worker.wait()


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def sandboxed(tmp_path: Path) -> Sandboxed:
    return Sandboxed(tmp_path)


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether the process with that number runs."""
    return is_alive


DAEMON = """
import asyncio, sys
from pathlib import Path
from axonp2p.sandbox.child import start_worker
from axonp2p.sandbox.limits import Limits

async def main():
    limits = Limits(cores=1, memory_mb=200, scratch_mb=16)
    worker = await start_worker(Path(sys.argv[1]), limits, program="stay", python_path=("/job",))
    if sys.argv[2] == "working":
        await worker.channel.send(limits.start())
        await worker.channel.receive()
    print(worker.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""

STAY = """
import os, sys, time
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import Started

channel = Inside(int(sys.argv[1]))
channel.receive()
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
channel.send(Started())
time.sleep(600)
"""


@pytest.fixture
def start_daemon() -> Iterator[Callable[..., tuple[subprocess.Popen[str], int]]]:
    """Starts a process that starts a worker; when "working", the worker has a child and ignores its channel.

    Gives back that process and the number of the sandbox's first. `before` are words such as setpriv and its options.
    """
    # Not pytest's own folder, which other users may not enter.
    job = Path(tempfile.mkdtemp(prefix="axon-test-"))
    job.chmod(0o755)
    (job / "stay.py").write_text(STAY)
    started: list[subprocess.Popen[str]] = []

    def start(worker_is: str, before: tuple[str, ...] = ()) -> tuple[subprocess.Popen[str], int]:
        command = [*before, sys.executable, "-c", DAEMON, str(job), worker_is]
        daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/")
        started.append(daemon)
        assert daemon.stdout is not None
        return daemon, int(daemon.stdout.readline())

    yield start
    for daemon in started:
        daemon.kill()
        daemon.communicate()
    shutil.rmtree(job)
