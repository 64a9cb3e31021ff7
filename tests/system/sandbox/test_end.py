"""When a job ends, or its daemon does, nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import psutil
import pytest

from axonp2p.errors import MessageTooLarge, Unreachable


async def test_children_that_stay_behind_end_with_it_and_keep_nobody_waiting(sandboxed: Any) -> None:
    task = """
        import os, signal, time
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
        os._exit(3)
    """
    async with sandboxed.worker(task) as worker:
        began = time.monotonic()
        end = await worker.wait()
        assert time.monotonic() - began < 60  # they sleep for ten times as long
    assert end.reason == "ended with exit code 3"


async def test_a_mistake_is_in_the_log(sandboxed: Any) -> None:
    end = await sandboxed.end("raise ValueError('so it goes')")
    assert end.reason == "ended with exit code 1"
    assert "ValueError: so it goes" in end.log_tail


async def test_killing_leaves_nothing_behind(sandboxed: Any, alive: Any) -> None:
    task = """
        import os, time
        for _ in range(3):
            os.fork()
        time.sleep(600)
    """
    async with sandboxed.worker(task) as worker:
        first = psutil.Process(worker.pid)
        while len(family := [first, *first.children(recursive=True)]) < 9:  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0.02)
        descriptors = len(os.listdir("/proc/self/fd"))
        end = await worker.kill()
        assert end.reason == "was ended by this peer"
        assert not [process for process in family if alive(process.pid)]
        with pytest.raises(Unreachable):
            await worker.channel.receive()
        assert await worker.kill() == end
    await asyncio.sleep(0)
    # The channel, the log, the first process and its /tmp.
    assert len(os.listdir("/proc/self/fd")) <= descriptors - 3


async def test_a_worker_that_breaks_the_protocol_takes_no_memory(sandboxed: Any) -> None:
    task = """
        import os, sys, time
        os.write(int(sys.argv[1]), b"\\xff" * 65536)
        time.sleep(60)
    """
    async with sandboxed.worker(task) as worker:
        with pytest.raises(MessageTooLarge):
            await worker.channel.receive()


@pytest.mark.parametrize("worker_is", ["just started", "working"])
def test_it_dies_with_the_daemon(start_daemon: Any, alive: Any, worker_is: str) -> None:
    daemon, first = start_daemon(worker_is)
    family = [first, *(child.pid for child in psutil.Process(first).children(recursive=True))]
    assert all(map(alive, family))
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    until = time.monotonic() + 60  # an idle one ends when it is its turn
    while any(map(alive, family)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(alive, family))
