"""The worker of `kind = "run"` in a real sandbox: commands of a stranger, started, held by the walls, and heard of."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from axonp2p.jobs.output_messages import OutputFile, OutputPart, OutputsSent
from axonp2p.kinds.run.messages import (
    BeginCopy,
    CopyExited,
    CopyStarted,
    EndCopy,
    FromWorkerRun,
    SendOutputs,
    ToWorkerRun,
)
from axonp2p.sandbox.child import SandboxedWorker, start_worker
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.messages import BundleReady, Control, MayTell, Started
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

LIMITS = Limits(cores=1, memory_mb=512, scratch_mb=16, processes=20, priority="normal")


@asynccontextmanager
async def worker_of(job: Path, **files: str) -> AsyncIterator[SandboxedWorker]:
    """A worker that has its bundle: Python files by name."""
    worker = await start_worker(job, LIMITS, program="axonp2p.kinds.run.worker")
    try:
        async with asyncio.timeout(60):
            await worker.channel.send(LIMITS.start())
            assert await worker.channel.receive() == (Started(), b""), worker.log().decode()
            for name, text in files.items():
                write(job, name, text)
            await worker.channel.send(BundleReady())
            yield worker
    finally:
        await worker.kill()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    # pytest's is for its owner alone; a worker of root's is another user.
    tmp_path.chmod(0o755)
    return tmp_path


def write(job: Path, name: str, text: str) -> None:
    (job / f"{name}.py").write_text(textwrap.dedent(text))
    (job / f"{name}.py").chmod(0o755)


async def order(worker: SandboxedWorker, message: ToWorkerRun) -> None:
    await worker.channel.send(Control(), pack_frame(message))


async def hears(worker: SandboxedWorker) -> tuple[FromWorkerRun, bytes]:
    message, payload = await worker.channel.receive()
    assert isinstance(message, Control)
    frame = split_frame(payload)
    inner: FromWorkerRun = decode(frame.header, FromWorkerRun, HEADER_LIMIT)
    return inner, bytes(frame.payload)


async def runs(worker: SandboxedWorker, *words: str, attempt: int = 0) -> CopyExited:
    await order(worker, BeginCopy(job="sweep-1", index=2, copies=8, attempt=attempt, command=["python", *words]))
    assert (await hears(worker))[0] == CopyStarted(index=2, attempt=attempt)
    exited, _ = await hears(worker)
    assert isinstance(exited, CopyExited)
    return exited


async def test_a_command_prints_writes_and_sends_its_files(job: Path) -> None:
    work = """
        import os, sys, numpy, friend
        print("copy", os.environ["AXON_INDEX"], "of", os.environ["AXON_COPIES"], friend.WORD)
        numpy.save(os.environ["AXON_OUT"] + "/found.npy", numpy.arange(100_000))
        try:
            open("/job/more.txt", "w")
        except OSError as error:
            print("not there:", error.strerror)
    """
    async with worker_of(job, work=work, friend="WORD = 'of the bundle'") as worker:
        exited = await runs(worker, "work.py")
        assert (exited.ended, exited.code) == ("itself", 0), worker.log().decode()
        assert exited.cpu_seconds > 0
        assert exited.most_memory > 2**20
        await order(worker, SendOutputs(index=2, attempt=0, request=1, outputs=["*.npy"]))
        await worker.channel.send(MayTell(rank=None, bytes=2**22))
        size = 0
        while isinstance((heard := await hears(worker))[0], OutputPart):
            size += len(heard[1])
        assert isinstance(heard[0], OutputFile)
        assert (heard[0].path, heard[0].size) == ("found.npy", size)
        assert size > 800_000
        assert (await hears(worker))[0] == OutputsSent(request=1, files=1)
        log = worker.log().decode()
        assert "copy 2 of 8 of the bundle" in log
        assert "not there:" in log


async def test_it_is_killed_when_it_is_told_to_and_the_next_one_begins(job: Path) -> None:
    stay = "import time; print('here'); time.sleep(600)"
    async with worker_of(job, stay=stay) as worker:
        await order(worker, BeginCopy(job="j", index=0, copies=1, attempt=0, command=["python", "stay.py"]))
        assert isinstance((await hears(worker))[0], CopyStarted)
        await order(worker, EndCopy(index=0, attempt=0))
        exited, _ = await hears(worker)
        assert isinstance(exited, CopyExited)
        assert (exited.ended, exited.code) == ("order", -9)
        assert (await runs(worker, "-c", "raise SystemExit(4)", attempt=1)).code == 4


async def test_a_shell_and_a_program_that_it_wrote_are_not_to_be_had(job: Path) -> None:
    async with worker_of(job, tool="#!/usr/bin/env python\n") as worker:
        await order(worker, BeginCopy(job="j", index=0, copies=1, attempt=0, command=["./tool.py"]))
        exited, _ = await hears(worker)
        assert isinstance(exited, CopyExited)
        assert exited.ended == "not started"
        assert "a script is started with python" in exited.reason
        written = """
            import os, subprocess
            open("/tmp/out/tool", "w").write("#!" + __import__("sys").executable)
            os.chmod("/tmp/out/tool", 0o755)
            for program in ("/bin/sh", "/tmp/out/tool"):
                try:
                    subprocess.run([program])
                except OSError:
                    continue
                raise SystemExit(program)
        """
        exited = await runs(worker, "-c", textwrap.dedent(written), attempt=1)
        assert exited.code == 0, worker.log().decode()


async def test_a_copy_that_uses_too_much_memory_ends_its_worker_and_the_limit_is_named(job: Path) -> None:
    async with worker_of(job) as worker:
        code = "held = []\nwhile True: held.append(bytearray(b'x' * 2**20))"
        words = ["python", "-c", code]
        await order(worker, BeginCopy(job="j", index=0, copies=1, attempt=0, command=words))
        assert isinstance((await hears(worker))[0], CopyStarted)
        assert (await worker.wait()).limit == "memory"
