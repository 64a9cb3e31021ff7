"""A worker that stands by in a real sandbox: walled in before it loads anything, and held by its lease's limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from axonp2p.sandbox.child import SandboxedWorker, start_worker
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.messages import BundleReady, Control, Started

LIMITS = Limits(cores=2, memory_mb=400, scratch_mb=16, processes=20, priority="normal")
PROBE = """\
import json, os, sys, threading
from axonp2p.sandbox.inside import serve_daemon
from axonp2p.sandbox.messages import BundleReady, Control, Started

ask, answers = threading.Event(), {}

def early():
    # A thread that a library starts while it is loaded: it is as walled in as the one that asked for the wall.
    ask.wait()
    pid = os.fork()
    if not pid:
        try:
            os.execv("/job/program", ["/job/program"])
        except OSError as error:
            os._exit(error.errno)
    answers["executes"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def load(cores):
    answers["cores"] = cores
    answers["found"] = os.listdir("/job")
    answers["thread"] = threading.Thread(target=early, daemon=True)
    answers["thread"].start()

def serve(inside, start):
    inside.send(Started())
    message, _ = inside.receive()
    assert isinstance(message, BundleReady)
    ask.set()
    answers.pop("thread").join()
    answers["bundle"] = sorted(os.listdir("/job"))
    answers["blobs"] = os.listdir("/blobs")
    inside.send(Control(), json.dumps(answers).encode())
    held = bytearray(300 * 2**20)
    held[::4096] = bytes(len(held[::4096]))
    inside.receive()

serve_daemon(serve, load)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)  # pytest's is for its owner alone; a worker of root's is another user
    (tmp_path / "standby").mkdir(mode=0o755)
    (tmp_path / "standby" / "probe.py").write_text(PROBE)
    return tmp_path / "standby"


@pytest.fixture
async def standing(folder: Path) -> AsyncIterator[SandboxedWorker]:
    blobs = folder.with_name("standby-blobs")
    blobs.mkdir(mode=0o755)
    worker = await start_worker(folder, LIMITS, program="probe", python_path=("/job",), blobs=blobs)
    try:
        await worker.stand_by()
        yield worker
    finally:
        await worker.kill()


async def leased(worker: SandboxedWorker, folder: Path, memory_mb: int) -> None:
    """The lease's folders take the place of the empty ones, as the daemon has it."""
    await asyncio.to_thread(folder.rename, folder.with_name("bundle"))
    await asyncio.to_thread(folder.with_name("standby-blobs").rename, folder.with_name("blobs"))
    worker.bind(memory_mb)
    await worker.channel.send(Limits(cores=2, memory_mb=memory_mb, scratch_mb=16, processes=20).start())
    assert await worker.channel.receive() == (Started(), b""), worker.log().decode()


def program(folder: Path) -> None:
    (folder / "program").write_text("#!/usr/bin/true\n")
    (folder / "program").chmod(0o755)


async def test_it_sees_its_bundle_and_blobs_later_and_its_first_threads_are_walled_in(standing, folder):
    async with asyncio.timeout(60):
        await leased(standing, folder, 1000)
        program(folder.with_name("bundle"))
        (folder.with_name("blobs") / "array").write_bytes(b"brought")
        await standing.channel.send(BundleReady())
        message, payload = await standing.channel.receive()
    assert message == Control()
    told = json.loads(bytes(payload))
    assert told == {
        "cores": 2,
        "found": ["probe.py"],
        "executes": 13,
        "bundle": ["probe.py", "program"],
        "blobs": ["array"],
    }


@pytest.mark.parametrize(("memory_mb", "limit"), [(100, "memory"), (1000, "")])
async def test_it_has_as_much_memory_as_its_lease(standing, folder, memory_mb, limit):
    async with asyncio.timeout(60):
        await leased(standing, folder, memory_mb)
        program(folder.with_name("bundle"))
        await standing.channel.send(BundleReady())
        await standing.channel.receive()
        ended = asyncio.create_task(standing.wait())
        await asyncio.wait([ended], timeout=30 if limit else 3)
    assert (await standing.kill()).limit == limit


@pytest.mark.parametrize("milliseconds", [0, 2, 5, 10, 20, 30, 50])
async def test_a_start_that_is_cancelled_leaves_no_process(folder, milliseconds):
    before = set(psutil.Process().children(recursive=True))
    starting = asyncio.create_task(start_worker(folder, LIMITS, program="probe", python_path=("/job",)))
    await asyncio.sleep(milliseconds / 1000)
    starting.cancel()
    started = (await asyncio.gather(starting, return_exceptions=True))[0]
    if isinstance(started, SandboxedWorker):
        await started.kill()
    left = set(psutil.Process().children(recursive=True)) - before
    assert [process.name() for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
    assert str(folder) not in str([process.info["cmdline"] for process in psutil.process_iter(["cmdline"])])


async def test_a_lease_that_no_worker_can_stand_by_for_ends_it(standing):
    async with asyncio.timeout(60):
        await standing.channel.send(Limits(cores=2, memory_mb=400, scratch_mb=16, executes=True).start())
        end = await standing.wait()
    assert "ended with exit code 3" in end.reason
    assert "stand by" in end.log_tail
