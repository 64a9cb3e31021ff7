"""Files that a job is brought while it runs, as its worker sees them: whole, to read and to map, and no others."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from axonp2p.blobs.pieces import PIECE_BYTES
from axonp2p.jobs.bundle import Bundle, alone
from axonp2p.sandbox.child import SandboxedWorker, start_worker
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.messages import BundleReady, Control, Started
from peer_daemon.bundles.bundle_writer import BundleWriter
from peer_daemon.wheels.wheel_cache import WheelCache
from tests.system.sandbox.conftest import PROBE

LIMITS = Limits(cores=1, memory_mb=200, scratch_mb=16, processes=20)


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)  # pytest's is for its owner alone; a worker of root's is another user
    return tmp_path


def lease(jobs: Path, name: str) -> BundleWriter:
    """The folder of one lease, as the daemon makes it."""
    writer = BundleWriter(jobs / name, 2**30, cast(WheelCache, None))
    writer.make()
    return writer


def array(folder: Path, sign: bytes) -> Bundle:
    (folder / "array").write_bytes(sign * (2 * PIECE_BYTES + 5))
    return alone(folder / "array")


def bring(writer: BundleWriter, content: Bundle, *, whole: bool = True) -> None:
    blob = writer.further(content.blob)
    for number in range(content.blob.count if whole else content.blob.count - 1):
        blob.write(number, content.piece(number))
    if whole:
        blob.show()


@asynccontextmanager
async def worker_of(writer: BundleWriter, task: str) -> AsyncIterator[SandboxedWorker]:
    (writer.bundle / "probe.py").write_text(PROBE)
    worker = await start_worker(
        writer.bundle, LIMITS, program="probe", python_path=("/job",), data={}, blobs=writer.blobs
    )
    try:
        await worker.channel.send(LIMITS.start())
        assert await worker.channel.receive() == (Started(), b""), worker.log().decode()
        (writer.bundle / "task.py").write_text(textwrap.dedent(task))
        yield worker
    finally:
        await worker.kill()


async def answer(worker: SandboxedWorker) -> Any:
    async with asyncio.timeout(60):
        await worker.channel.send(BundleReady())
        message, payload = await worker.channel.receive()
    assert message == Control()
    return json.loads(bytes(payload))


async def test_a_worker_reads_and_maps_what_it_was_brought_and_cannot_change_it(jobs: Path) -> None:
    writer, content = lease(jobs, "one"), array(jobs, b"a")
    other = lease(jobs, "two")
    bring(other, array(jobs, b"b"))
    content = array(jobs, b"a")
    name = content.blob.name.hex()
    task = f"""
        import mmap, os
        path = "/blobs/{name}"
        def tried(what):
            try:
                what()
            except OSError as error:
                return type(error).__name__
            return "done"
        file = open(path, "rb")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        answer({{
            "size": len(file.read()),
            "mapped": [mapped[0], mapped[-1], len(mapped)],
            "write": tried(lambda: open(path, "r+b")),
            "map to write": tried(lambda: mmap.mmap(os.open(path, os.O_RDWR), 0)),
            "new": tried(lambda: open("/blobs/new", "wb")),
            "remove": tried(lambda: os.unlink(path)),
            "rename": tried(lambda: os.rename(path, path + "x")),
            "mode": tried(lambda: os.chmod(path, 0o777)),
            "seen": os.listdir("/blobs"),
            "others": [place for place in {[str(jobs), str(jobs / "two")]!r} if os.path.exists(place)],
        }})
    """
    async with worker_of(writer, task) as worker:
        bring(writer, content)
        bring(writer, array(jobs, b"c"), whole=False)
        told = await answer(worker)
    refused = {told.pop(what) for what in ("write", "map to write", "new", "remove", "rename", "mode")}
    assert refused <= {"OSError", "PermissionError"}
    size = 2 * PIECE_BYTES + 5
    assert told == {"size": size, "mapped": [97, 97, size], "seen": [name], "others": []}


async def test_the_folder_is_there_before_anything_comes_and_where_nothing_ever_does(jobs: Path) -> None:
    task = "import os; answer([os.listdir('/blobs'), os.access('/blobs', os.W_OK)])"
    writer = lease(jobs, "one")
    async with worker_of(writer, task) as worker:
        assert await answer(worker) == [[], False]
    (jobs / "job").mkdir(mode=0o755)
    for name, text in (("probe.py", PROBE), ("task.py", task)):
        (jobs / "job" / name).write_text(text)
    worker = await start_worker(jobs / "job", LIMITS, program="probe", python_path=("/job",))
    try:
        await worker.channel.send(LIMITS.start())
        await worker.channel.receive()
        assert await answer(worker) == [[], False]
    finally:
        await worker.kill()


async def test_one_that_is_dropped_is_gone_but_for_those_that_have_it_open(jobs: Path) -> None:
    writer, content = lease(jobs, "one"), array(jobs, b"a")
    blob = writer.further(content.blob)
    for number in range(content.blob.count):
        blob.write(number, content.piece(number))
    blob.show()
    task = """
        import os
        (name,) = os.listdir("/blobs")
        file = open("/blobs/" + name, "rb")
        answer("open")
        channel.receive()
        answer([os.listdir("/blobs"), len(file.read())])
    """
    async with worker_of(writer, task) as worker:
        assert await answer(worker) == "open"
        blob.remove()
        assert await answer(worker) == [[], content.size]
