"""SIGKILL of a peer's daemon at twenty moments: no worker lives on, no lease is lost or doubled, the disk is clean."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable

import psutil
import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.messages import BlobManifest, BlobPiece
from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import AxonError, Busy
from axonp2p.jobs.messages import FetchLog
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import encode
from tests.system.one_peer import Swarm
from tests.system.processes import Processes

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

MOMENTS = 20
LATEST_S = 2.5
"""Into a lease: from before the worker is there to when it has loaded torch."""
PATIENCE_S = 60.0


async def work(swarm: Swarm) -> None:
    """What a client does all day: take the lease, send some of a bundle, ask for the log."""
    session: Session | None = None
    with contextlib.suppress(AxonError):
        session = await swarm.take(encode(swarm.token))
        content = bytes(300_000)
        blob = Blob(Manifest(files=[BlobFile(path="task.py", size=300_000, blake3=book_of(content).hashes)]))
        await session.send(BlobManifest(blob=blob.name), blob.encoded)
        await session.send(BlobPiece(blob=blob.name, number=0), content[:PIECE_BYTES])
        while True:
            await session.send(FetchLog())
            await asyncio.sleep(0.05)
    if session is not None:
        await session.close()


async def until(what: Callable[[], bool], why: str) -> None:
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < PATIENCE_S, why
        await asyncio.sleep(0.05)


def test_at_twenty_moments(tmp_path):
    chance = random.Random(4)
    with Processes(tmp_path) as processes:
        processes.start_peers("otter")
        swarm = Swarm(processes, tmp_path / "otter")
        for _ in range(MOMENTS):
            asyncio.run(one_kill(swarm, chance.uniform(0, LATEST_S)))
        assert "Traceback" not in processes.output("otter")


async def one_kill(swarm: Swarm, after_s: float) -> None:
    working = asyncio.create_task(work(swarm))
    await asyncio.sleep(after_s)
    children = psutil.Process(swarm.pid).children(recursive=True)
    await asyncio.to_thread(swarm.processes.kill, "otter")
    await working
    await until(lambda: not any(child.is_running() for child in children), "a worker outlived its daemon")
    await asyncio.to_thread(swarm.processes.start_peers, "otter")
    assert list((swarm.home / "jobs").iterdir()) == []
    swarm.row = await swarm.find()
    assert await swarm.a_good_lease_works()


def test_after_a_crash_the_slot_is_its_clients(tmp_path):
    async def conversation(swarm: Swarm) -> None:
        other = await swarm.reserve()
        await swarm.take(encode(swarm.token))
        await asyncio.to_thread(swarm.processes.kill, "otter")
        await asyncio.to_thread(swarm.processes.start_peers, "otter")
        assert list((swarm.home / "jobs").iterdir()) == []
        swarm.row = await swarm.find()
        with pytest.raises(Busy):
            await swarm.take(encode(other))
        session = await swarm.take(encode(swarm.token))
        with pytest.raises(Busy):
            await swarm.take(encode(swarm.token))
        await session.close()

    with Processes(tmp_path) as processes:
        processes.start_peers("otter")
        asyncio.run(conversation(Swarm(processes, tmp_path / "otter")))
