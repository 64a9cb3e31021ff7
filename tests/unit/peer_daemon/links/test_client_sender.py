"""What waits for a client that reads nothing: a bounded number of words, and no more bulk than was given credit for."""

from __future__ import annotations

import asyncio

import pytest

from axonp2p.jobs.messages import FromWorker
from axonp2p.wire.frame import FRAME_COST, PAYLOAD_LIMIT
from peer_daemon.links.client_sender import WAITING_BULK, WAITING_WORDS, ByteQueue, ClientSender
from peer_daemon.links.in_turn import InTurn


def test_a_message_without_a_payload_fills_a_queue_as_its_fixed_cost_does():
    queue: ByteQueue[bytes] = ByteQueue(4 * FRAME_COST, len)
    said = 0
    while not queue.full() and said < 9:
        queue.put_nowait(b"")
        said += 1
    assert said == 4
    while not queue.empty():
        queue.get_nowait()
    assert queue.bytes == 0


@pytest.mark.parametrize("payload", [b"", bytes(1000)])
async def test_a_worker_waits_once_its_client_has_enough_words_before_it(payload: bytes):
    words = ClientSender(None, InTurn(0), lambda count: None)  # type: ignore[arg-type]
    fit = -(-WAITING_WORDS // (len(payload) + FRAME_COST))
    for _ in range(fit):
        await words.word(FromWorker(), payload)
    one_more = asyncio.create_task(words.word(FromWorker(), payload))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not one_more.done()
    one_more.cancel()


async def test_bulk_for_which_no_credit_was_given_has_no_room():
    line = ClientSender(None, InTurn(0), lambda count: None)  # type: ignore[arg-type]
    for _ in range(-(-WAITING_BULK // (PAYLOAD_LIMIT + FRAME_COST))):
        line.bulk(memoryview(bytes(PAYLOAD_LIMIT)))
    with pytest.raises(asyncio.QueueFull):
        line.bulk(memoryview(b"x"))
