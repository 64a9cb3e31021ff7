"""One flood at one door, from a process and an IP address of its own: what a stranger could send, as fast as it can.

    python -m tests.laboratory.floods DOOR SECONDS < target.json

Prints how many messages and bytes it sent as one JSON object. `scripts/bench/floods` starts it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import random
import socket
import ssl
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from axonp2p.errors import AxonError
from axonp2p.hosting.messages import AskJobs
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.messages import LeaseTaken, TakeLease
from axonp2p.ledger.receipt import Receipts
from axonp2p.peers.capability import Capability, Need, as_map
from axonp2p.reservation.reserving import RESERVE_PATH, new_uuid, reserve
from axonp2p.reservation.token import ReserveRequest, Token
from axonp2p.table.announce_datagrams import NO_TOKEN, AnnounceQuestion, write_question
from axonp2p.table.records import Query, Row
from axonp2p.table.sync_messages import Push
from axonp2p.table.tracker_client import ANNOUNCE_PATH, QUERY_PATH
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.handshake import SESSION_PATH
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tunnel.messages import RegisterAtRelay
from axonp2p.transport.ways import BareWhereabouts
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.envelope import sign
from axonp2p.wire.frame import pack_frame
from axonp2p.wire.schema import SCHEMAS
from tests.fakes import make_receipt, sign_both

FROM = "127.0.0.66"
LINES = 32
"""Connections on which questions are asked at once."""
SESSIONS = 32
"""Sessions on which messages are sent at once."""
TOGETHER = 200
"""Small messages that are sent in one go."""
HELD = 4000
"""Connections that the flood tries to hold at once."""


@dataclass
class Target:
    """Whom to flood. `tracker` is an address with its fingerprint."""

    tracker: str
    tracker_id: str
    peer: str
    peer_address: str
    peer_certificate: str
    dht: int = 0


@dataclass
class Sent:
    """So far."""

    messages: int = 0
    bytes: int = 0
    lines: list[asyncio.StreamWriter] = field(default_factory=list)

    def count(self, size: int, messages: int = 1) -> None:
        self.messages += messages
        self.bytes += size


Flood = Callable[[Target, Sent], Awaitable[None]]


# --- questions ---


def row_of(key: PrivateKey) -> Row:
    offer = Capability(
        cores=4, memory_mb=4096, disk_mb=4096, gflops=50, slots=1, free=1, python="3.11.7",
        packages={"torch": "2.4.0"}, kinds=["train"],
    )  # fmt: skip
    return Row(
        peer=key.peer_id, name="flood", sequence=int(time.time() * 1000), addresses=["127.0.0.66:7071"],
        certificate=bytes(32), expires=int(time.time()) + 3600, capability=as_map(offer),
    )  # fmt: skip


def announces(target: Target) -> Iterator[tuple[str, Message]]:
    while True:
        key = PrivateKey.generate()
        yield ANNOUNCE_PATH, sign(key, row_of(key))


def queries(target: Target) -> Iterator[tuple[str, Message]]:
    while True:
        yield QUERY_PATH, Query(need=as_map(Need()), count=50)


def pushes(target: Target) -> Iterator[tuple[str, Message]]:
    me = PrivateKey.generate()
    while True:
        keys = [PrivateKey.generate() for _ in range(20)]
        yield "/v1/push", sign(me, Push(to=target.tracker_id, rows=[sign(key, row_of(key)) for key in keys]))


def reservations(target: Target) -> Iterator[tuple[str, Message]]:
    while True:
        wish = ReserveRequest(
            uuid=new_uuid(), peers=[target.peer], kinds=["train"], seconds=3600, time=int(time.time())
        )
        yield RESERVE_PATH, sign(PrivateKey.generate(), wish)


def receipts(target: Target) -> Iterator[tuple[str, Message]]:
    while True:
        client, peer, issuer = PrivateKey.generate(), PrivateKey.generate(), PrivateKey.generate()
        reservation = new_uuid()
        token = Token(
            uuid=reservation, issuer=issuer.peer_id, client=client.peer_id, client_address=FROM, peers=[peer.peer_id],
            kinds=["train"], not_before=int(time.time()) - 10, expires=int(time.time()) + 3600,
        )  # fmt: skip
        made = [sign_both(client, peer, make_receipt(client, peer, reservation, number)) for number in range(1, 9)]
        yield "/v1/receipts", Receipts(receipts=made, tokens=[encode(sign(issuer, token))])


def _tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@asynccontextmanager
async def line_to(host: str, port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(host, port, ssl=_tls(), local_addr=(FROM, 0))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def asks(questions: Callable[[Target], Iterator[tuple[str, Message]]], *, at_peer: bool = False) -> Flood:
    """Questions on `LINES` connections, each as soon as the one before was answered."""

    async def flood(target: Target, sent: Sent) -> None:
        host, port = _peer_place(target) if at_peer else _tracker_place(target)
        stream = questions(target)

        async def one_line() -> None:
            while True:
                with suppress(OSError, asyncio.IncompleteReadError, ValueError, asyncio.LimitOverrunError):
                    async with line_to(host, port) as (reader, writer):
                        while True:
                            path, message = next(stream)
                            body = encode(message)
                            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
                            writer.write(head.encode() + body)
                            await writer.drain()
                            sent.count(len(head) + len(body))
                            answer = await reader.readuntil(b"\r\n\r\n")
                            length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                            await reader.readexactly(length)
                await asyncio.sleep(0.05)

        await asyncio.gather(*(one_line() for _ in range(LINES)))

    return flood


# --- sessions ---


def _tracker_place(target: Target) -> tuple[str, int]:
    address = PinnedAddress.parse(target.tracker)
    return address.host, address.port


def _peer_place(target: Target) -> tuple[str, int]:
    host, _, port = target.peer_address.rpartition(":")
    return host, int(port)


def place_of(target: Target, *, at_peer: bool = False) -> BareWhereabouts:
    if at_peer:
        return BareWhereabouts(target.peer, [target.peer_address], bytes.fromhex(target.peer_certificate))
    address = PinnedAddress.parse(target.tracker)
    assert address.fingerprint is not None
    return BareWhereabouts(target.tracker_id, [address.host_port], address.fingerprint)


Says = Callable[[Session, Sent], Awaitable[None]]


def says(what: Says, first: Message | None = None, *, at_peer: bool = False) -> Flood:
    """The same on `SESSIONS` sessions, opened anew whenever they are ended; answers are never taken."""

    async def flood(target: Target, sent: Sent) -> None:
        async def one() -> None:
            while True:
                session = None
                with suppress(AxonError, OSError, RuntimeError, TimeoutError):
                    session = await dial(
                        PrivateKey.generate(), place_of(target, at_peer=at_peer), called="it", local_address=FROM
                    )
                    if first is not None:
                        await session.send(first)
                    while not session.closed:
                        await what(session, sent)
                        await asyncio.sleep(0)  # nothing of the above waits while the kernel takes what is sent
                if session is not None:
                    await session.close()
                await asyncio.sleep(0.05)

        await asyncio.gather(*(one() for _ in range(SESSIONS)))

    return flood


async def empty_frames(session: Session, sent: Sent) -> None:
    for _ in range(TOGETHER):
        await session._line.send_bytes(b"")
        sent.count(6)


async def tiny_frames(session: Session, sent: Sent) -> None:
    frame = pack_frame(AskJobs())
    for _ in range(TOGETHER):
        await session._line.send_bytes(frame)
        sent.count(6 + len(frame))


async def pings(session: Session, sent: Sent) -> None:
    for _ in range(TOGETHER):
        await session._line.ping(b"x" * 100)
        sent.count(106)


async def half_a_frame(session: Session, sent: Sent) -> None:
    """The head of a message of a mebibyte, its first half, and nothing more."""
    writer = session._line._writer
    assert writer is not None
    data = struct.pack(">BBQ", 0x82, 127, 2**20) + bytes(2**19)
    writer.transport.write(data)
    sent.count(len(data))
    await asyncio.sleep(5)


async def fragments(session: Session, sent: Sent) -> None:
    """The beginning of a message, and continuations without bytes for ever."""
    writer = session._line._writer
    assert writer is not None
    writer.transport.write(b"\x02\x00")
    while not session.closed and not writer.transport.is_closing():
        data = b"\x00\x00" * 50_000
        writer.transport.write(data)
        sent.count(len(data), 50_000)
        await asyncio.sleep(0.01 if writer.transport.get_write_buffer_size() > 2**20 else 0)


async def stays(session: Session, sent: Sent) -> None:
    sent.count(100)
    await session.ended.wait()


# --- what is only held ---


def holds(begin: Callable[[asyncio.StreamWriter], bytes], *, tls: bool, at_peer: bool = False) -> Flood:
    """Connections on which no more than the beginning of something is said."""

    async def flood(target: Target, sent: Sent) -> None:
        host, port = _peer_place(target) if at_peer else _tracker_place(target)
        context = _tls() if tls else None
        room = asyncio.Semaphore(HELD)

        async def one() -> None:
            try:
                reader, writer = await asyncio.open_connection(host, port, ssl=context, local_addr=(FROM, 0))
                said = begin(writer)
                writer.write(said)
                sent.count(len(said) or 1)
                with suppress(OSError):
                    while await reader.read(65536):
                        pass
                writer.transport.abort()
            except OSError:
                await asyncio.sleep(0.1)
            finally:
                room.release()

        tasks: set[asyncio.Task[None]] = set()
        while True:
            await room.acquire()
            task = asyncio.create_task(one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await asyncio.sleep(0.001)

    return flood


def upgrade(_: asyncio.StreamWriter) -> bytes:
    return (
        f"GET {SESSION_PATH} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()


def half_a_head(_: asyncio.StreamWriter) -> bytes:
    return b"GET /v1/ping HTTP/1.1\r\nHost: "


def nothing(_: asyncio.StreamWriter) -> bytes:
    return b""


async def dht_datagrams(target: Target, sent: Sent) -> None:
    """Rubbish at the port of the peer's DHT node."""
    chance = random.Random(1)
    place = _peer_place(target)[0], target.dht
    await _datagrams(place, sent, lambda: chance.randbytes(chance.randrange(1, 1200)))


async def announce_datagrams(target: Target, sent: Sent) -> None:
    """Questions without a token, each with other bytes where a row should be: the tracker answers each of them."""
    address = PinnedAddress.parse(target.tracker)
    chance = random.Random(1)

    def question() -> bytes:
        return write_question(
            AnnounceQuestion(chance.randbytes(16), chance.randbytes(8), NO_TOKEN, chance.randbytes(600))
        )

    await _datagrams((address.host, address.port), sent, question)


async def _datagrams(place: tuple[str, int], sent: Sent, said: Callable[[], bytes]) -> None:
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind((FROM, 0))
    line.setblocking(False)
    for number in itertools.count():
        data = said()
        with suppress(OSError):
            line.sendto(data, place)
            sent.count(len(data))
        if number % 100 == 0:
            await asyncio.sleep(0)


async def leases(target: Target, sent: Sent) -> None:
    """Reserve, take the lease, and do nothing with it."""
    held = []
    while True:
        key = PrivateKey.generate()
        with suppress(AxonError, OSError, TimeoutError):
            async with HttpCaller(PinnedAddress.parse(target.tracker), called="it", local_address=FROM) as line:
                token = await reserve(
                    line, key, [target.peer], uuid=new_uuid(), kinds=["train"], seconds=3600, now=time.time()
                )
            session = await dial(key, place_of(target, at_peer=True), called="it", local_address=FROM)
            held.append(session)
            taking = TakeLease(
                token=encode(token), job="flood", kind="train", cores=1, memory_mb=256, schema=SCHEMAS["train"]
            )
            await session.send(taking)
            sent.count(1000)
            async with asyncio.timeout(5):
                await session.receive(LeaseTaken)
        await asyncio.sleep(0.02)


DOORS: dict[str, Flood] = {
    "announce": asks(announces),
    "query": asks(queries),
    "push": asks(pushes),
    "receipts": asks(receipts),
    "reserve": asks(reservations),
    "reserve-at-peer": asks(reservations, at_peer=True),
    "empty-frames": says(empty_frames, AskJobs()),
    "tiny-frames": says(tiny_frames, AskJobs()),
    "pings": says(pings, AskJobs()),
    "half-a-frame": says(half_a_frame, AskJobs()),
    "fragments": says(fragments, AskJobs()),
    "empty-frames-at-peer": says(empty_frames, at_peer=True),
    "tiny-frames-at-peer": says(tiny_frames, at_peer=True),
    "half-open": holds(upgrade, tls=True),
    "half-open-at-peer": holds(upgrade, tls=True, at_peer=True),
    "silent": holds(nothing, tls=False),
    "silent-tls": holds(nothing, tls=True),
    "half-a-head": holds(half_a_head, tls=True),
    "relay": says(stays, RegisterAtRelay()),
    "datagrams": announce_datagrams,
    "dht": dht_datagrams,
    "leases": leases,
}
"""What is flooded, by the name of the door; those that end in `-at-peer`, `dht` and `leases` are the peer's."""


async def run(door: str, seconds: float, target: Target) -> None:
    sent = Sent()
    flooding = asyncio.ensure_future(DOORS[door](target, sent))
    await asyncio.wait([flooding], timeout=seconds)
    print(json.dumps({"messages": sent.messages, "bytes": sent.bytes}), flush=True)
    os._exit(0)  # thousands of connections need no goodbye


def main() -> None:
    logging.disable(logging.WARNING)  # asyncio tells of each line that was cut
    door, seconds = sys.argv[1], float(sys.argv[2])
    asyncio.run(run(door, seconds, Target(**json.load(sys.stdin))))


if __name__ == "__main__":
    main()
