"""Both ends of the channel, talking to each other over a real pair of sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from axonp2p.errors import MalformedMessage, MessageTooLarge, Unreachable
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import BundleReady, Control, FromMember, Started, ToMember
from axonp2p.wire.codec import encode
from axonp2p.wire.frame import FRAME_LIMIT, PAYLOAD_LIMIT, pack_frame

BIG = bytes(range(256)) * (PAYLOAD_LIMIT // 256)


class Pair:
    """The daemon's end, and the worker's as the worker has it and as bare bytes."""

    def __init__(self, outside: WorkerChannel, bare: socket.socket) -> None:
        self.outside = outside
        self.bare = bare
        self.inside = Inside(bare.dup().detach())


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    ours, theirs = socket.socketpair()
    pair = Pair(WorkerChannel(ours), theirs)
    yield pair
    pair.outside.close()
    pair.inside.close()
    pair.bare.close()


async def test_messages_and_payloads_arrive_in_order_both_ways(pair: Pair) -> None:
    await pair.outside.send(BundleReady())
    sending = asyncio.create_task(pair.outside.send(FromMember(rank=3), BIG))
    assert await asyncio.to_thread(pair.inside.receive) == (BundleReady(), b"")
    assert await asyncio.to_thread(pair.inside.receive) == (FromMember(rank=3), BIG)
    await sending
    replying = asyncio.create_task(asyncio.to_thread(pair.inside.send, ToMember(rank=1), memoryview(BIG)))
    assert await pair.outside.receive() == (ToMember(rank=1), BIG)
    await replying
    pair.inside.send(Started())
    assert await pair.outside.receive() == (Started(), b"")


async def test_frames_of_many_senders_do_not_mix(pair: Pair) -> None:
    payloads = [bytes([number]) * 200_000 for number in range(12)]
    threads = [asyncio.to_thread(pair.inside.send, Control(), payload) for payload in payloads]
    sending = asyncio.gather(*threads)
    assert sorted([bytes((await pair.outside.receive())[1]) for _ in payloads]) == payloads
    await sending
    tasks = asyncio.gather(*(pair.outside.send(Control(), payload) for payload in payloads))
    assert sorted([bytes((await asyncio.to_thread(pair.inside.receive))[1]) for _ in payloads]) == payloads
    await tasks


async def test_a_worker_that_does_not_read_stops_the_sender(pair: Pair) -> None:
    async def send_many() -> None:
        for _ in range(64):
            await pair.outside.send(Control(), BIG)

    sending = asyncio.create_task(send_many())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(sending), 0.1)
    for _ in range(64):
        await asyncio.to_thread(pair.inside.receive)
    await sending


async def test_a_daemon_that_does_not_read_stops_the_worker(pair: Pair) -> None:
    many = 32

    def send_many() -> None:
        for number in range(many):
            pair.inside.send(ToMember(rank=number % 64), BIG)

    sending = asyncio.create_task(asyncio.to_thread(send_many))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(sending), 0.1)
    assert [(await pair.outside.receive())[0] for _ in range(many)] == [ToMember(rank=n % 64) for n in range(many)]
    await sending


async def test_a_receive_that_was_cancelled_loses_nothing(pair: Pair) -> None:
    frame = pack_frame(Control(), b"abc")
    data = struct.pack(">I", len(frame)) + frame
    pair.bare.sendall(data[:7])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pair.outside.receive(), 0.02)
    pair.bare.sendall(data[7:])
    assert await pair.outside.receive() == (Control(), b"abc")


async def test_a_send_that_was_cancelled_sent_nothing(pair: Pair) -> None:
    waiting = [asyncio.create_task(pair.outside.send(Control(), bytes([n]) * PAYLOAD_LIMIT)) for n in range(8)]
    await asyncio.wait(waiting, timeout=0.05)
    stuck = [number for number, task in enumerate(waiting) if not task.done()]
    waiting[stuck[0]].cancel()
    heard = [bytes((await asyncio.to_thread(pair.inside.receive))[1][:1])[0] for _ in range(7)]
    assert heard == [number for number in range(8) if number != stuck[0]]


async def test_a_frame_over_the_limit_is_refused_before_memory_is_taken(pair: Pair) -> None:
    pair.bare.sendall(struct.pack(">I", FRAME_LIMIT + 1))
    with pytest.raises(MessageTooLarge):
        await pair.outside.receive()
    with pytest.raises(MessageTooLarge):
        await pair.outside.receive()
    with pytest.raises(Unreachable):
        await pair.outside.send(BundleReady())


@pytest.mark.parametrize("frame", [b"\0", b"\0\0\0\1\xc1", b"\0\0\0\x09abc", b"\0\0\0\0", pack_frame(BundleReady())])
async def test_rubbish_is_named_as_such(pair: Pair, frame: bytes) -> None:
    pair.bare.sendall(struct.pack(">I", len(frame)) + frame)
    with pytest.raises(MalformedMessage):
        await pair.outside.receive()


async def test_the_worker_refuses_rubbish_too() -> None:
    ours, theirs = socket.socketpair()
    inside = Inside(theirs.detach())
    header = encode(Started())  # not for the worker
    ours.sendall(struct.pack(">II", 4 + len(header), len(header)) + header)
    with pytest.raises(MalformedMessage):
        inside.receive()
    ours.sendall(struct.pack(">I", FRAME_LIMIT + 1))
    with pytest.raises(MessageTooLarge):
        inside.receive()
    inside.close()
    ours.close()


async def test_both_ends_notice_the_other_end_gone() -> None:
    ours, theirs = socket.socketpair()
    outside, inside = WorkerChannel(ours), Inside(theirs.detach())
    inside.send(Started())
    inside.close()
    await outside.send(BundleReady())  # finds the end, but its last words can still be had
    assert await outside.receive() == (Started(), b"")
    with pytest.raises(Unreachable):
        await outside.receive()
    with pytest.raises(Unreachable):
        await outside.send(BundleReady())

    ours, theirs = socket.socketpair()
    outside, inside = WorkerChannel(ours), Inside(theirs.detach())
    outside.close()
    with pytest.raises(Unreachable):
        await asyncio.to_thread(inside.receive)
    with pytest.raises(Unreachable):
        await asyncio.to_thread(inside.send, Started())
    inside.close()


async def test_who_waits_to_send_hears_that_the_worker_is_gone(pair: Pair) -> None:
    async def send_many() -> None:
        for _ in range(64):
            await pair.outside.send(Control(), BIG)

    sending = asyncio.create_task(send_many())
    await asyncio.wait({sending}, timeout=0.05)
    pair.bare.shutdown(socket.SHUT_RDWR)
    with pytest.raises(Unreachable):
        await sending


async def test_closing_wakes_a_waiting_receiver(pair: Pair) -> None:
    receiving = asyncio.create_task(pair.outside.receive())
    await asyncio.sleep(0)
    pair.outside.close()
    with pytest.raises(Unreachable):
        await receiving
