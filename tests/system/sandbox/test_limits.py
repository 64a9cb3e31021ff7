"""A job uses no more than it may, and the limit that it passed is named."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from types import SimpleNamespace
from typing import Any

import pytest

from axonp2p.sandbox import child
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.watch import verdict
from axonp2p.sandbox.watch import watcher as watch
from axonp2p.sandbox.watch.worker_group import own_territory


async def test_memory_of_one_process_ends_in_a_memory_error_at_the_latest(sandboxed: Any) -> None:
    task = """
        try:
            held = bytearray(2**30)
        except MemoryError:
            answer("MemoryError")
    """
    assert await sandboxed.answer(task) == "MemoryError"


@pytest.mark.parametrize(
    "task",
    [
        "held = []\nwhile True: held.append(bytearray(2**20))",
        """
        import os, time
        for _ in range(10):
            if os.fork() == 0:
                held = os.urandom(40 * 2**20)
                time.sleep(60)
        time.sleep(60)
        """,
    ],
    ids=["one", "many children"],
)
async def test_too_much_memory_ends_the_worker_and_is_named(sandboxed: Any, task: str) -> None:
    # A process may reserve some more than it may use: the sum over all is what counts.
    end = await sandboxed.end(task)
    if "bytearray" in task and "MemoryError" in end.log_tail:
        return  # it was so slow that its own limit came first
    assert end.limit == "memory"
    assert "where 200 MiB are allowed" in end.reason


async def test_children_that_share_memory_are_not_counted_twice(sandboxed: Any) -> None:
    task = """
        import os, time
        held = os.urandom(80 * 2**20)
        for _ in range(4):
            if os.fork() == 0:
                time.sleep(60)
        time.sleep(1)
        answer("alive")
    """
    assert await sandboxed.answer(task) == "alive"


async def test_a_fork_bomb_is_contained(sandboxed: Any) -> None:
    task = """
        import os
        answer("lit")
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """
    async with asyncio.timeout(60), sandboxed.worker(task) as worker:
        await worker.channel.receive()
        assert (await worker.wait()).limit == "processes"


async def test_processor_time_is_limited(sandboxed: Any) -> None:
    limits = Limits(cores=1, memory_mb=200, scratch_mb=16, cpu_seconds=1)
    end = await sandboxed.end("while True: pass", limits)
    assert end.limit == "cpu"


BUSY = """
    import os, time
    for _ in range(3):
        if os.fork() == 0:
            while True:
                pass
    answer(len(os.sched_getaffinity(0)))
    try:
        os.sched_setaffinity(0, range(os.cpu_count()))
    except OSError as error:
        answer(error.errno)
    while True:
        pass
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is all there is")
@pytest.mark.parametrize("held_by", ["control group", "affinity"])
async def test_a_job_has_no_more_than_its_cores_from_its_first_step(
    sandboxed: Any, monkeypatch: pytest.MonkeyPatch, held_by: str
) -> None:
    territory = own_territory()
    group = territory.group(Limits(cores=1, memory_mb=200, scratch_mb=16)) if territory else None
    if held_by == "affinity":
        monkeypatch.setattr(child, "own_territory", lambda: None)
    elif group is None or not group.holds_cores:
        pytest.skip("no control group for cores can be had here")
    if group is not None:
        group.remove()
    async with asyncio.timeout(60), sandboxed.worker(BUSY) as worker:
        _, width = await worker.channel.receive()
        assert held_by == "control group" or json.loads(bytes(width)) == 1
        began, used = time.monotonic(), worker.usage().cpu_seconds
        _, refused = await worker.channel.receive()
        assert json.loads(bytes(refused)) == errno.EPERM
        await asyncio.sleep(2.5)
        # A look is a tenth of a second old at most.
        assert worker.usage().cpu_seconds - used <= 1.1 * (time.monotonic() - began + 0.1)


async def test_cores_are_limited(sandboxed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "SPARE_CORE_SECONDS", 0.2)
    # A busy machine may give four processes less than one core together: let time seem to pass at an eighth.
    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: time.monotonic() / 8))
    end = await sandboxed.end(
        """
        import os
        os.fork()
        os.fork()
        while True: pass
        """,
        Limits(cores=1, memory_mb=200, scratch_mb=16),
    )
    assert end.limit == "cores"


async def test_limits_cannot_be_raised_again(sandboxed: Any) -> None:
    task = """
        import resource
        raised = []
        for what in (resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
            soft, hard = resource.getrlimit(what)
            try:
                resource.setrlimit(what, (hard + 1, hard + 1))
                raised.append(what)
            except (ValueError, OSError):
                pass
        answer(raised)
    """
    assert await sandboxed.answer(task) == []


async def test_what_is_printed_is_kept_head_and_tail(sandboxed: Any) -> None:
    task = """
        import sys
        print("the beginning")
        for _ in range(400):
            print("x" * 1000)
        print("\\x1b[31mthe end", file=sys.stderr)
    """
    limits = Limits(cores=1, memory_mb=200, scratch_mb=16, log_bytes=10_000)
    async with sandboxed.worker(task, limits) as worker:
        end = await worker.wait()
        log = worker.log().decode()
    assert end.reason == "ended with exit code 0"
    assert end.limit == ""
    assert end.log_tail.endswith("�[31mthe end\n")
    assert log.startswith("the beginning\n")
    assert "bytes left out" in log
    assert len(log) < 10_100


async def test_a_flood_of_output_is_ended(sandboxed: Any) -> None:
    limits = Limits(cores=1, memory_mb=200, scratch_mb=16, log_bytes=4096)
    end = await sandboxed.end("while True: print('x' * 10_000)", limits)
    assert end.limit == "output"
    assert len(end.log_tail) <= 4000


async def test_time_is_limited(sandboxed: Any) -> None:
    limits = Limits(cores=1, memory_mb=200, scratch_mb=16, wall_seconds=1)
    end = await sandboxed.end("import time\ntime.sleep(60)", limits)
    assert end.limit == "time"


@pytest.mark.parametrize(
    ("task", "limit"),
    [
        ("open('/tmp/full', 'wb').write(bytes(15 * 2**20)); open('/tmp/more', 'wb').write(bytes(15 * 2**20))", "disk"),
        ("open('/tmp/full', 'wb').write(bytes(17 * 2**20))", "disk"),
        ("held = [open('/dev/null') for _ in range(300)]", "files"),
        ("held = bytearray(2**30)", "memory"),
    ],
    ids=["a full /tmp", "too large a file", "open files", "memory at once"],
)
async def test_what_the_kernel_refuses_is_named_too(sandboxed: Any, task: str, limit: str) -> None:
    end = await sandboxed.end(task)
    assert (end.limit, end.reason) == (limit, f"ended with exit code 1 at its limit of {limit}")


async def test_messages_that_wait_in_sockets_are_limited(sandboxed: Any) -> None:
    task = """
        import socket, time
        held = [socket.socketpair() for _ in range(80)]
        time.sleep(60)
    """
    assert (await sandboxed.end(task)).limit == "files"


async def test_children_that_nobody_waits_for_are_limited_too(sandboxed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "own_territory", lambda: None)  # a control group would count them anyway
    task = """
        import os, signal, time
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            if os.fork() == 0:
                until = time.process_time() + 0.5
                while time.process_time() < until: pass
                os._exit(0)
            time.sleep(1)
    """
    limits = Limits(cores=1, memory_mb=200, scratch_mb=16, cpu_seconds=2)
    assert (await sandboxed.end(task, limits)).limit == "cpu"
