"""What we ask of the kernel and of aiohttp, on a real line."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from axonp2p.transport.flow.read_pace import ReadPace
from axonp2p.transport.messages import Carry
from axonp2p.transport.sessions.line_tuning import UNSENT_BYTES, PacedReading, read_tcp_state
from axonp2p.transport.sessions.session import Session


async def test_both_ends_keep_queues_short_and_mask_nothing(hosts) -> None:
    accepted: asyncio.Future[Session] = asyncio.get_running_loop().create_future()

    async def serve(session: Session) -> None:
        accepted.set_result(session)
        await session.ended.wait()

    mine = await (await hosts.start(serve)).dial()
    for session in (mine, await accepted):
        assert session._line._writer is not None
        assert not session._line._writer.use_mask
        assert session._plain is not None
        assert session._plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == UNSENT_BYTES
        assert isinstance(socket_of(session).get_protocol(), PacedReading)
    await mine.close()


def socket_of(session: Session) -> asyncio.Transport:
    writer: Any = session._line._writer
    plain: asyncio.Transport = writer.transport._ssl_protocol._transport
    return plain


async def test_a_paused_line_is_read_again_but_not_while_tls_has_no_room(hosts, monkeypatch) -> None:
    """Whatever pauses there are, all of it arrives, in order; a pause of TLS itself outlasts ours."""
    monkeypatch.setattr(ReadPace, "pause", lambda self, count, now: 0.001)
    accepted: asyncio.Future[Session] = asyncio.get_running_loop().create_future()

    async def serve(session: Session) -> None:
        accepted.set_result(session)
        await session.ended.wait()

    mine = await (await hosts.start(serve)).dial()
    theirs = await accepted
    for number in range(20):
        await mine.send(Carry(), bytes([number]) * 100_000, bulk=True)
    for number in range(20):
        _, payload = await theirs.receive(Carry)
        assert bytes(payload) == bytes([number]) * 100_000
    plain = socket_of(theirs)
    paced: Any = plain.get_protocol()
    plain.pause_reading()
    paced._tls._ssl_reading_paused = True
    paced._read_on()
    assert not plain.is_reading()
    paced._tls._ssl_reading_paused = False
    paced._read_on()
    assert plain.is_reading()
    await mine.close()


async def test_the_kernel_counts_what_both_ends_sent_and_received(hosts) -> None:
    accepted: asyncio.Future[Session] = asyncio.get_running_loop().create_future()

    async def serve(session: Session) -> None:
        accepted.set_result(session)
        for _ in range(3):
            await session.receive(Carry)
        await session.send(Carry())
        await session.ended.wait()

    mine = await (await hosts.start(serve)).dial()
    before = mine.tcp_state()
    for _ in range(3):
        await mine.send(Carry(), bytes(500_000), bulk=True)
    await mine.receive(Carry)
    theirs = (await accepted).tcp_state()
    after = mine.tcp_state()
    assert before
    assert after
    assert theirs
    assert after.acked_bytes - before.acked_bytes >= 1_500_000
    assert theirs.received_bytes >= 1_500_000
    assert after.busy_seconds >= before.busy_seconds  # in jiffies: a fast line may take less than one
    assert 0 < after.rtt_seconds < 10
    await mine.close()
    assert mine.tcp_state() is None


def test_a_closed_socket_has_no_counts() -> None:
    plain = socket.socket()
    plain.close()
    assert read_tcp_state(plain) is None
