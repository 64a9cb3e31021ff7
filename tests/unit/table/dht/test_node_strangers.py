"""What a node does with strangers that keep no rule, on a real socket."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest

from axonp2p.clock import SystemClock
from axonp2p.identity.peer_id import public_key_of
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.records.compact import sign_compact
from axonp2p.table.dht.routing.keys import node_id, row_key
from axonp2p.table.dht.rpc.datagrams import decode_answer, decode_call, encode_answer, encode_call
from axonp2p.table.dht.rpc.rpc import (
    HI_PURPOSE,
    LARGEST_DATAGRAM,
    Answer,
    Call,
    Find,
    FindAnswer,
    Hi,
    HiAnswer,
    Put,
    PutAnswer,
    Question,
    hi_payload,
)
from tests.fakes import key_of
from tests.unit.table.dht.dht_nodes import HERE, Network, compact_row, network

PLACE = b"p" * 8
OWN = node_id(public_key_of(key_of("stranger").peer_id))
Reply = Callable[[Call], Answer | bytes | None]


class Stranger(asyncio.DatagramProtocol):
    """A socket of its own: asks what it likes, and answers as `reply` says."""

    def __init__(self) -> None:
        self.reply: Reply = lambda call: None
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()
        self.transport: asyncio.DatagramTransport
        self.target: tuple[str, int] = (HERE, 0)

    @property
    def address(self) -> str:
        return f"{HERE}:{self.transport.get_extra_info('sockname')[1]}"

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if data[:1] == b"\1":
            self.heard.put_nowait(data)
            return
        call = decode_call(data)
        answer = self.reply(call)
        if answer is not None:
            said = answer if isinstance(answer, bytes) else encode_answer(call.number, answer)
            self.transport.sendto(said, addr)

    async def ask(self, question: Question, size: int = 0, serves: bool = False) -> tuple[Answer, int, int]:
        """The answer, and how large the question and the answer were."""
        datagram = encode_call(Call(random.randbytes(20), OWN, serves, question), size)
        self.transport.sendto(datagram, self.target)
        async with asyncio.timeout(20):
            answer = await self.heard.get()
        return decode_answer(answer, question), len(datagram), len(answer)


class Meeting:
    """A small network, a stranger, and what the event loop had to complain of."""

    def __init__(self, made: Network, stranger: Stranger, complaints: list[dict[str, Any]]) -> None:
        self.nodes = made.nodes
        self.ports = made.ports
        self.stranger = stranger
        self.complaints = complaints


@pytest.fixture
async def meeting() -> Any:
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))
    async with network(4) as made:
        transport, stranger = await loop.create_datagram_endpoint(Stranger, local_addr=(HERE, 0))
        stranger.target = (HERE, made.ports[0])
        yield Meeting(made, stranger, complaints)
        transport.close()
    assert complaints == []


def proof(call: Call, meeting: Meeting, **changes: Any) -> HiAnswer:
    """What a sound node answers to `hi`."""
    assert isinstance(call.question, Hi)
    key = key_of("stranger")
    seen = bytes((127, 0, 0, 1)) + meeting.ports[0].to_bytes(2)
    signature = key.sign(HI_PURPOSE, hi_payload(call.question.nonce, seen, b""))
    usual = {"key": public_key_of(key.peer_id), "signature": signature, "token": b"t" * 8, "seen": seen}
    return HiAnswer(**(usual | {"coordinate": b"", "serves": True} | changes))


def garbage() -> Iterator[bytes]:
    frame = b"n" * 20
    for kind in (b"\0", b"\1", b"\2", b""):
        yield kind
        yield kind + frame
        yield kind + frame + b"\xc1"
        for body in ({}, 7, None, "x", [1], [[[]]], ["find", []], ["find", {}], ["hi", None], ["_send", [b"x", 1]]):
            yield kind + frame + msgpack.packb(body)
    yield b"\0" + frame + b"\x91" * 1000
    yield b"\0" * 60000


async def test_garbage_neither_stops_a_node_nor_fills_it(meeting: Meeting) -> None:
    for data in garbage():
        meeting.stranger.transport.sendto(data, meeting.stranger.target)
    assert isinstance((await meeting.stranger.ask(Hi(b"?" * 16)))[0], HiAnswer)
    assert meeting.nodes[0].row_count == 0
    assert meeting.nodes[0].traffic.refusals["malformed"] > 20


async def test_an_answer_is_at_most_three_times_the_question_until_the_address_is_proven(meeting: Meeting) -> None:
    rows = [(name, compact_row(name)) for name in ("anna", "bert", "cleo", "dora", "emil", "fred")]
    for name, row in rows:
        await meeting.nodes[1].publish(sign_compact(key_of(name), row))
    key = row_key(rows[0][1].public_key)
    for question, size in ((Hi(b"?" * 16), 0), (Find(key, b"", PLACE), 0), (Find(key, b"f" * 8, PLACE), 200)):
        _, asked, answered = await meeting.stranger.ask(question, size)
        assert answered <= 3 * asked
    answer, _, _ = await meeting.stranger.ask(Find(key, b"", PLACE), 300)
    assert isinstance(answer, FindAnswer)
    proven, asked, answered = await meeting.stranger.ask(Find(key, answer.token, PLACE))
    assert isinstance(proven, FindAnswer)
    assert proven.records
    assert 3 * asked < answered <= LARGEST_DATAGRAM


async def test_nothing_is_stored_without_a_token_or_signature_or_in_a_wrong_place(meeting: Meeting) -> None:
    row = compact_row("anna")
    good = sign_compact(key_of("anna"), row)
    key = row_key(row.public_key)
    found, _, _ = await meeting.stranger.ask(Find(key, b"", b""), 300)
    assert isinstance(found, FindAnswer)
    forged = bytes(64) + good[64:]
    old = sign_compact(key_of("anna"), compact_row("anna", expires=int(SystemClock().now()) - 100))
    for question in (
        Put(key, 0, b"", good),
        Put(key, 0, b"t" * 8, good),
        Put(b"k" * 20, 0, found.token, good),
        Put(key, 1, found.token, good),
        Put(key, 0, found.token, forged),
        Put(key, 0, found.token, old),
        Put(key, 0, found.token, good[:80]),
    ):
        assert (await meeting.stranger.ask(question))[0] == PutAnswer("refused")
    assert meeting.nodes[0].row_count == 0
    assert (await meeting.stranger.ask(Put(key, 0, found.token, good)))[0] == PutAnswer("stored")


async def test_who_proves_himself_is_a_contact(meeting: Meeting) -> None:
    node = meeting.nodes[0]
    meeting.stranger.reply = lambda call: proof(call, meeting) if isinstance(call.question, Hi) else None
    await meeting.stranger.ask(Hi(b"?" * 16), serves=True)
    async with asyncio.timeout(20):
        while meeting.stranger.address not in node.contacts(50):  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "changes",
    [
        {"signature": bytes(64)},
        {"key": public_key_of(key_of("somebody").peer_id)},
        {"seen": bytes((127, 0, 0, 1, 0, 9))},
        {"seen": b"seven.."},
        {"coordinate": b"elsewhere"},
        {"serves": False},
    ],
)
async def test_who_proves_nothing_is_no_contact(meeting: Meeting, changes: dict[str, Any]) -> None:
    answered = asyncio.Event()

    def reply(call: Call) -> Answer | None:
        if not isinstance(call.question, Hi):
            return None
        answered.set()
        return proof(call, meeting, **changes)

    meeting.stranger.reply = reply
    await meeting.stranger.ask(Hi(b"?" * 16), serves=True)
    async with asyncio.timeout(20):
        await answered.wait()
    # One more question and its answer: by then the node has read the proof.
    await meeting.stranger.ask(Hi(b"!" * 16))
    assert meeting.stranger.address not in meeting.nodes[0].contacts(50)


@pytest.mark.slow
async def test_an_answer_counts_from_the_address_that_was_asked_only(meeting: Meeting) -> None:
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    node = DhtNode(key_of("newcomer"), SystemClock(), random.Random(5), serves=False)
    port = await node.listen(HERE, 0)

    def reply(call: Call) -> Answer | None:
        if isinstance(call.question, Hi):
            other.sendto(encode_answer(call.number, proof(call, meeting)), (HERE, port))
        return None

    with other:
        meeting.stranger.reply = reply
        assert await node.bootstrap([meeting.stranger.address]) == 0
        assert node.traffic.refusals["answer"] >= 1
    await node.stop()


@pytest.mark.parametrize(
    "contacts",
    [
        [b"i" * 20 + bytes((127, 0, 0, 1)) + b"\0\0"],
        [b"i" * 20 + bytes((255, 255, 255, 255)) + b"\1\1", b"i" * 20 + bytes((224, 0, 0, 1)) + b"\1\1"],
        [b"short", b"", b"x" * 37],
        [b"i" * 20 + bytes(15) + b"\1" + b"\1\1"],
    ],
)
async def test_contacts_that_are_nowhere_harm_nobody(meeting: Meeting, contacts: list[bytes]) -> None:
    def reply(call: Call) -> Answer | bytes | None:
        if isinstance(call.question, Hi):
            return proof(call, meeting)
        said = msgpack.packb([contacts, b"t" * 8, [], 0, False])
        return b"\1" + call.number + said

    meeting.stranger.reply = reply
    node = DhtNode(key_of("newcomer"), SystemClock(), random.Random(5), serves=False)
    await node.listen(HERE, 0)
    assert await node.bootstrap([meeting.stranger.address, f"{HERE}:{meeting.ports[0]}"]) >= 1
    row = compact_row("anna")
    assert await node.publish(sign_compact(key_of("anna"), row)) >= 3
    assert await node.find_peer(row.peer) == row
    await node.stop()
