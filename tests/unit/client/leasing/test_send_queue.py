"""What waits for one peer."""

from __future__ import annotations

import asyncio

import pytest

from axonp2p.client.leasing.send_queue import ROOM, SendQueue
from axonp2p.errors import AxonError, Unreachable
from axonp2p.jobs.messages import EndLease, FetchLog, ToWorker
from axonp2p.wire.codec import Message


class Line:
    """A session's sending side: may be held up, or cut."""

    def __init__(self) -> None:
        self.sent: list[tuple[Message, bytes]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.cut = False
        self.failures: list[AxonError] = []

    async def send(self, message: Message, payload: bytes) -> None:
        await self.open.wait()
        if self.cut:
            raise Unreachable("the line was cut")
        self.sent.append((message, payload))


async def test_everything_arrives_in_the_order_of_posting() -> None:
    line = Line()
    send_queue = SendQueue(line.send, line.failures.append, "otter")
    send_queue.post(ToWorker(), b"1")
    send_queue.post(FetchLog())
    await send_queue.send(ToWorker(), b"2")
    assert line.sent == [(ToWorker(), b"1"), (FetchLog(), b""), (ToWorker(), b"2")]
    await send_queue.stop()


async def test_a_peer_that_takes_nothing_counts_as_gone() -> None:
    line = Line()
    line.open.clear()
    send_queue = SendQueue(line.send, line.failures.append, "otter")
    sending = asyncio.create_task(send_queue.send(EndLease()))
    await asyncio.sleep(0)
    for _ in range(ROOM + 2):
        send_queue.post(ToWorker())
    assert [error.message for error in line.failures] == [f"peer otter took none of {ROOM} messages"]
    with pytest.raises(Unreachable):
        await send_queue.send(EndLease())
    await send_queue.stop()
    sending.cancel()


async def test_a_cut_line_is_told_to_everyone_who_waits() -> None:
    line = Line()
    line.open.clear()
    send_queue = SendQueue(line.send, line.failures.append, "otter")
    waiting = [asyncio.create_task(send_queue.send(EndLease())) for _ in range(3)]
    await asyncio.sleep(0)
    line.cut = True
    line.open.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(answer, Unreachable) for answer in answers)
    assert len(line.failures) == 1
    send_queue.post(ToWorker())  # harmless
    await send_queue.stop()


async def test_stopping_is_not_a_failure() -> None:
    line = Line()
    send_queue = SendQueue(line.send, line.failures.append, "otter")
    await send_queue.stop()
    assert line.failures == []
    with pytest.raises(Unreachable, match="was closed"):
        await send_queue.send(EndLease())
