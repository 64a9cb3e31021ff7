"""Writing behind the caller's back: in its order, and no further once the disk has refused something."""

from __future__ import annotations

import asyncio
import errno
import threading

import pytest

from axonp2p.client.storage.disk_work import DiskWork


@pytest.fixture
async def disk():
    disk = DiskWork()
    yield disk
    await disk.close()


async def test_work_is_done_in_its_order_while_the_loop_goes_on(disk: DiskWork) -> None:
    done, slow = list[int](), threading.Event()
    disk.do(lambda: slow.wait(60) and None)
    for number in range(100):
        disk.do(lambda number=number: done.append(number))
    await asyncio.sleep(0)  # it is not waited for
    assert done == []
    slow.set()
    await disk.finished()
    assert done == list(range(100))


async def test_nothing_is_done_after_something_that_failed_and_everybody_hears_of_it(disk: DiskWork) -> None:
    done = list[str]()

    def refuse() -> None:
        raise OSError(errno.ENOSPC, "disk full")

    slow = threading.Event()
    disk.do(lambda: slow.wait(60) and None)
    disk.do(refuse)
    disk.do(lambda: done.append("after it"))
    slow.set()
    for _ in range(2):
        with pytest.raises(OSError, match="disk full"):
            await disk.finished()
        with pytest.raises(OSError, match="disk full"):
            disk.do(lambda: done.append("later"))
    with pytest.raises(OSError, match="disk full"):
        disk.finish()
    disk.try_again()
    disk.do(lambda: done.append("again"))
    disk.finish()
    assert done == ["again"]


async def test_closing_does_what_was_asked_for_first() -> None:
    disk, done = DiskWork(), list[int]()
    disk.do(lambda: done.append(1))
    await disk.close()
    await disk.close()
    assert done == [1]


async def test_who_gives_up_waiting_stops_no_work(disk: DiskWork) -> None:
    done, slow = list[int](), threading.Event()
    disk.do(lambda: slow.wait(60) and None)
    disk.do(lambda: done.append(1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await disk.finished()
    slow.set()
    await disk.finished()
    assert done == [1]
