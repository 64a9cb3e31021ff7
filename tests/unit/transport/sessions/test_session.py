"""Sessions over real sockets: keys proved, order kept, slow ends waited for, dead lines noticed, rubbish refused."""

from __future__ import annotations

import asyncio
import gc
import struct
import weakref
from contextlib import AsyncExitStack, suppress

import aiohttp
import msgspec
import pytest
from aiohttp import web

from axonp2p.errors import (
    BadSignature,
    Busy,
    MalformedMessage,
    MessageTooLarge,
    PeerMisbehaved,
    Refused,
    TokenRefused,
    Unreachable,
    VersionMismatch,
)
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport import handshake
from axonp2p.transport.flow.window import STRANGERS_UNFINISHED, WINDOW_BYTES
from axonp2p.transport.messages import Hello, Refusal
from axonp2p.transport.sessions import dialer, listener, session
from axonp2p.transport.sessions.listener import UNTAKEN_OF_ONE
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tls import client_context
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import encode_signed
from axonp2p.wire.frame import PAYLOAD_LIMIT, pack_frame


class Word(Message, tag=True, frozen=True):
    text: str


class Bulk(Message, tag=True, frozen=True):
    number: int


async def echo(other: Session) -> None:
    while True:
        message, payload = await other.receive(Word | Bulk)
        await other.send(message, payload)


# --- the handshake ---


async def test_each_side_knows_the_key_and_address_of_the_other(hosts) -> None:
    seen: asyncio.Future[Session] = asyncio.get_running_loop().create_future()

    async def serve(other: Session) -> None:
        seen.set_result(other)
        await echo(other)

    host, me = await hosts.start(serve), PrivateKey.generate()
    mine = await host.dial(me, local_address="127.0.0.2")
    theirs = await seen
    assert (mine.peer, mine.address) == (host.key.peer_id, "127.0.0.1")
    assert (theirs.peer, theirs.address) == (me.peer_id, "127.0.0.2")
    await mine.send(Word(text="hello"), b"payload")
    message, payload = await mine.receive(Word)
    assert (message, bytes(payload)) == (Word(text="hello"), b"payload")
    assert mine.sent_bytes == mine.received_bytes == theirs.sent_bytes > 0
    await mine.close()
    await theirs.ended.wait()
    assert mine.closed


async def test_somebody_else_at_the_address_is_not_taken_for_the_peer(hosts) -> None:
    host, other = await hosts.start(), await hosts.start()
    with pytest.raises(BadSignature, match="another certificate answers"):
        await host.dial(addresses=[other.host_port])
    with pytest.raises(BadSignature, match="calls itself"):
        await host.dial(peer=other.key.peer_id)


async def test_addresses_are_tried_in_order_and_failures_named(hosts) -> None:
    host, other, gone = await hosts.start(), await hosts.start(), await hosts.start()
    await gone.listener.stop()
    line = await host.dial(addresses=[gone.host_port, "host:99999", other.host_port, host.host_port])
    assert line.peer == host.key.peer_id
    await line.close()
    with pytest.raises(Unreachable, match="peer otter cannot be reached") as caught:
        await host.dial(addresses=[gone.host_port, gone.host_port])
    assert caught.value.cause == "; ".join([f"{gone.host_port}: connection refused"] * 2)
    with pytest.raises(Unreachable) as caught:
        await host.dial(addresses=[])
    assert caught.value.cause == "it names no address that may be dialled from here"


async def test_a_listener_without_sessions_refuses_them(hosts) -> None:
    host = hosts.make()
    await host.listener.start("127.0.0.1", 0)
    with pytest.raises(Refused, match="peer otter opens no session") as caught:
        await host.dial()
    assert caught.value.cause == "HTTP status 404"


async def test_a_stranger_with_another_version_or_a_forged_proof_is_told_why(hosts, monkeypatch) -> None:
    host = await hosts.start()
    monkeypatch.setattr(handshake, "_check_version", lambda theirs, who: None)
    me = PrivateKey.generate()

    def forge(**changes: object):
        def answer(data: bytes, key: PrivateKey, **_: object) -> bytes:
            challenge = msgspec.msgpack.decode(data)
            honest = Hello(
                protocol=1,
                nonce=challenge["nonce"],
                listener=host.key.peer_id,
                certificate=host.certificate.fingerprint,
            )
            return encode_signed(key, msgspec.structs.replace(honest, **changes))

        return answer

    monkeypatch.setattr(dialer, "answer_challenge", forge(nonce=bytes(32)))
    with pytest.raises(BadSignature, match="another challenge"):
        await host.dial(me)
    monkeypatch.setattr(dialer, "answer_challenge", lambda *_, **__: bytes(2000))
    with pytest.raises(MessageTooLarge):
        await host.dial(me)
    monkeypatch.undo()
    monkeypatch.setattr(dialer, "answer_challenge", forge(protocol=3))
    with pytest.raises(VersionMismatch, match="the caller speaks protocol 3, this side speaks 2"):
        await host.dial(me)


async def test_half_open_handshakes_are_bounded_in_time_and_number(hosts, monkeypatch) -> None:
    monkeypatch.setattr("axonp2p.transport.sessions.listener.MOST_HANDSHAKES_OF_ONE", 2)
    monkeypatch.setattr("axonp2p.transport.sessions.listener.PROOF_S", 0.2)
    host = await hosts.start(echo)
    url, context = host.address.url + handshake.SESSION_PATH, client_context(verified=False)
    async with asyncio.timeout(10), aiohttp.ClientSession() as client:
        silent = [await client.ws_connect(url, ssl=context) for _ in range(2)]
        with pytest.raises(Busy, match="opens no session"):
            await host.dial()
        for line in silent:
            assert (await line.receive()).type is aiohttp.WSMsgType.BINARY
            assert (await line.receive()).type is aiohttp.WSMsgType.CLOSE
    line = await host.dial()
    await line.close()


async def test_where_handshakes_are_full_the_oldest_half_open_one_gives_way(hosts, monkeypatch) -> None:
    monkeypatch.setattr(listener, "MOST_HANDSHAKES_OF_ONE", 2)
    monkeypatch.setattr(listener, "HANDSHAKE_LEAST_S", 0.0)
    monkeypatch.setattr(listener, "PROOF_S", 60.0)
    host = await hosts.start(echo)
    url, context = host.address.url + handshake.SESSION_PATH, client_context(verified=False)
    async with asyncio.timeout(10), aiohttp.ClientSession() as client:
        silent = [await client.ws_connect(url, ssl=context) for _ in range(2)]
        line = await host.dial()
        assert (await silent[0].receive()).type is aiohttp.WSMsgType.BINARY
        assert (await silent[0].receive()).type is aiohttp.WSMsgType.CLOSED
        await line.close()


async def test_where_all_handshakes_are_full_one_of_whoever_has_most_gives_way(hosts, monkeypatch) -> None:
    monkeypatch.setattr(listener, "MOST_HANDSHAKES", 3)
    monkeypatch.setattr(listener, "HANDSHAKE_LEAST_S", 0.0)
    monkeypatch.setattr(listener, "PROOF_S", 60.0)
    host = await hosts.start(echo)
    url, context = host.address.url + handshake.SESSION_PATH, client_context(verified=False)
    async with asyncio.timeout(10), AsyncExitStack() as open_ones:
        half_open = []
        for household in ("127.0.0.3", "127.0.0.2", "127.0.0.2"):
            connector = aiohttp.TCPConnector(local_addr=(household, 0))
            client = await open_ones.enter_async_context(aiohttp.ClientSession(connector=connector))
            half_open.append(await client.ws_connect(url, ssl=context))
        line = await host.dial()
        assert [(await one.receive()).type for one in half_open] == [aiohttp.WSMsgType.BINARY] * 3
        assert (await half_open[1].receive()).type is aiohttp.WSMsgType.CLOSED
        await line.close()


async def test_a_household_has_one_share_of_handshakes_and_of_sessions_whatever_its_addresses(
    hosts, one_house, monkeypatch
) -> None:
    monkeypatch.setattr(listener, "MOST_HANDSHAKES_OF_ONE", 1)
    monkeypatch.setattr(listener, "HANDSHAKE_LEAST_S", 1e9)
    host = await hosts.start(echo)
    url, context = host.address.url + handshake.SESSION_PATH, client_context(verified=False)
    async with aiohttp.ClientSession() as client:
        half_open = await client.ws_connect(url, ssl=context)
        with pytest.raises(Busy, match="opens no session"):
            await host.dial(local_address="127.0.0.2")
        await half_open.close()
    monkeypatch.setattr(listener, "MOST_SESSIONS_OF_ONE", 1)
    host = await hosts.start(echo)
    first = await host.dial()
    with pytest.raises(Busy):
        await host.dial(local_address="127.0.0.2")
    await first.close()


async def test_sessions_are_bounded_in_number(hosts, monkeypatch) -> None:
    monkeypatch.setattr("axonp2p.transport.sessions.listener.MOST_SESSIONS_OF_ONE", 1)
    host = await hosts.start(echo)
    first = await host.dial()
    with pytest.raises(Busy):
        await host.dial()
    second = await host.dial(local_address="127.0.0.2")
    await asyncio.gather(first.close(), second.close())


# --- messages ---


async def test_many_senders_at_once_keep_their_own_order(hosts) -> None:
    host = await hosts.start(echo)
    line = await host.dial()

    async def send(sender: int) -> None:
        for number in range(20):
            await line.send(Bulk(number=100 * sender + number), bytes(200_000))

    async def receive() -> list[int]:
        return [(await line.receive(Bulk))[0].number for _ in range(100)]

    *_, numbers = await asyncio.gather(*(send(sender) for sender in range(5)), receive())
    for sender in range(5):
        assert [n for n in numbers if n // 100 == sender] == list(range(100 * sender, 100 * sender + 20))
    await line.close()


@pytest.mark.slow
async def test_a_slow_reader_stops_the_sender_and_does_not_look_dead(hosts, monkeypatch) -> None:
    monkeypatch.setattr(session, "TICK_S", 0.02)
    monkeypatch.setattr(session, "LOOK_S", 0.03)
    read_on = asyncio.Event()

    async def serve(other: Session) -> None:
        await read_on.wait()
        await echo(other)

    host = await hosts.start(serve)
    line = await host.dial()

    async def flood() -> None:
        for number in range(16):
            await line.send(Bulk(number=number), bytes(PAYLOAD_LIMIT))

    flooding = asyncio.create_task(flood())
    with pytest.raises(TimeoutError):  # it is looked for signs of life many times
        await asyncio.wait_for(asyncio.shield(flooding), 0.5)
    assert 3 * PAYLOAD_LIMIT <= line.sent_bytes <= WINDOW_BYTES
    assert not line.closed
    read_on.set()
    assert [(await line.receive(Bulk))[0].number for _ in range(16)] == list(range(16))
    await flooding
    await line.close()


async def test_words_go_before_bulk_that_waits_and_each_keeps_its_order(hosts) -> None:
    read_on = asyncio.Event()

    async def serve(other: Session) -> None:
        await read_on.wait()
        await echo(other)

    host = await hosts.start(serve)
    line = await host.dial()
    bulk = [asyncio.create_task(line.send(Bulk(number=n), bytes(PAYLOAD_LIMIT), bulk=True)) for n in range(6)]
    done, _ = await asyncio.wait(bulk, timeout=0.2)
    for text in ("first", "second"):
        await line.send(Word(text=text))
    read_on.set()
    heard = [(await line.receive(Word | Bulk))[0] for _ in range(8)]
    assert [m.number for m in heard if isinstance(m, Bulk)] == list(range(6))
    assert [m.text for m in heard if isinstance(m, Word)] == ["first", "second"]
    assert isinstance(heard[len(done)], Word)
    await line.close()


async def test_who_is_slowed_down_sends_only_a_window_ahead_and_words_all_the_same(hosts) -> None:
    slowed = asyncio.Event()

    async def serve(other: Session) -> None:
        other.slow_down(lambda count: 3600.0)
        slowed.set()
        while True:
            await other.receive(Word | Bulk)

    host = await hosts.start(serve)
    line = await host.dial()
    await slowed.wait()
    bulk = [asyncio.create_task(line.send(Bulk(number=n), bytes(PAYLOAD_LIMIT), bulk=True)) for n in range(8)]
    done, waiting = await asyncio.wait(bulk, timeout=0.2)
    assert len(done) == 3
    for _ in range(100):
        await line.send(Word(text="small"), bytes(10_000))
    for task in waiting:
        task.cancel()
    await line.close()


@pytest.mark.slow
async def test_a_cancelled_sender_harms_nobody_else(hosts) -> None:
    read_on = asyncio.Event()

    async def serve(other: Session) -> None:
        await read_on.wait()
        await echo(other)

    host = await hosts.start(serve)
    line = await host.dial()
    senders = [asyncio.create_task(line.send(Bulk(number=n), bytes(PAYLOAD_LIMIT))) for n in range(10)]
    done, _ = await asyncio.wait(senders, timeout=0.2)
    assert len(done) == 3
    senders[3].cancel()
    senders[6].cancel()
    read_on.set()
    numbers = [(await line.receive(Bulk))[0].number for _ in range(8)]
    assert numbers == [0, 1, 2, 4, 5, 7, 8, 9]
    await asyncio.gather(*senders, return_exceptions=True)
    await line.close()


async def test_what_was_sent_before_the_end_still_arrives(hosts) -> None:
    async def serve(other: Session) -> None:
        for number in range(3):
            await other.send(Bulk(number=number), bytes(PAYLOAD_LIMIT))

    host = await hosts.start(serve)
    line = await host.dial()
    await line.ended.wait()
    assert [(await line.receive(Bulk))[0].number for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(Unreachable, match="was lost"):
            await line.receive(Bulk)
    with pytest.raises(Unreachable):
        await line.send(Word(text="too late"))
    await line.close()


async def test_a_refusal_arrives_with_its_class_and_reason(hosts) -> None:
    async def serve(other: Session) -> None:
        await other.receive(Word)
        raise TokenRefused("the token is for another peer", fix="ask again")

    host = await hosts.start(serve)
    line = await host.dial()
    await line.send(Word(text="a token"))
    with pytest.raises(TokenRefused, match="peer otter: the token is for another peer") as caught:
        await line.receive(Word)
    assert caught.value.fix == "ask again"
    assert line.closed
    line = await host.dial()
    await line.send(Word(text="a token"))
    refusal, _ = await line.receive(Word | Refusal)
    assert refusal.code == TokenRefused.code
    await line.close()


@pytest.mark.parametrize(
    ("rubbish", "seen"),
    [
        (b"", MalformedMessage),
        (b"\0\0\0\5ab", MalformedMessage),
        (b"\xff\xff\xff\xff", MessageTooLarge),
        (pack_frame(Bulk(number=1)), MalformedMessage),
        ("text", MalformedMessage),
        (struct.pack(">I", 3) + b"\x81\x01\x02", MalformedMessage),
    ],
)
async def test_rubbish_ends_the_session_and_both_sides_know(hosts, rubbish, seen) -> None:
    noticed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def serve(other: Session) -> None:
        try:
            await other.receive(Word)
        except PeerMisbehaved as error:
            noticed.set_result(error)

    host = await hosts.start(serve)
    line = await host.dial()
    # A hand of ours inside the session: no honest sender can say these things.
    await (line._line.send_str(rubbish) if isinstance(rubbish, str) else line._line.send_bytes(rubbish))
    assert isinstance(await noticed, seen)
    with pytest.raises((PeerMisbehaved, Unreachable)):
        await line.receive(Word)
    await line.close()


@pytest.mark.parametrize("words", [b"", struct.pack(">QQ", 2**40, 2**40)])
async def test_lies_about_what_was_taken_end_the_session(hosts, words) -> None:
    host = await hosts.start(echo)
    line = await host.dial()
    await line._line.pong(words)
    with pytest.raises((PeerMisbehaved, Unreachable)):
        await line.receive(Word)
    await line.close()


async def test_who_ignores_the_window_is_cut_off(hosts) -> None:
    host = await hosts.start()
    line = await host.dial()
    frame = pack_frame(Bulk(number=1), bytes(PAYLOAD_LIMIT))

    async def flood() -> None:
        while True:
            await line._line.send_bytes(frame)

    with pytest.raises((aiohttp.ClientError, OSError)):
        await flood()
    await line.close()


async def test_frames_over_the_limits_are_refused_before_they_are_sent(hosts) -> None:
    host = await hosts.start(echo)
    line = await host.dial()
    with pytest.raises(MessageTooLarge):
        await line.send(Word(text="x"), bytes(PAYLOAD_LIMIT + 1))
    await line.send(Bulk(number=1), bytes(PAYLOAD_LIMIT))
    assert len((await line.receive(Bulk))[1]) == PAYLOAD_LIMIT
    await line.close()


# --- ends ---


async def test_a_listener_that_stops_ends_its_sessions(hosts) -> None:
    host = await hosts.start(echo)
    lines = [await host.dial() for _ in range(3)]
    await host.listener.stop()
    for line in lines:
        with pytest.raises(Unreachable, match="was lost"):
            await line.receive(Word)
        await line.close()


async def test_a_line_on_which_nothing_arrives_is_dead(hosts, monkeypatch) -> None:
    monkeypatch.setattr(session, "LOOK_S", 0.03)
    line = await (await dumb(hosts)).dial()
    with pytest.raises(Unreachable) as caught:
        await line.receive(Word)
    assert caught.value.cause == "no sign of life for ten seconds"
    await line.close()


async def test_looks_are_counted_from_the_last_bytes_on(hosts, monkeypatch) -> None:
    monkeypatch.setattr(session, "LOOK_S", 3600)
    line = await (await hosts.start(echo)).dial()
    for _ in range(3):
        await line.send(Word(text="hello"))
        await line.receive(Word)
        for _ in range(session.SILENT_LOOKS):  # the first of them finds the word
            line._look()
        await asyncio.sleep(0)
        assert not line.closed
    line._look()
    await line.ended.wait()
    assert line.failure.cause == "no sign of life for ten seconds"
    await line.close()


async def dumb(hosts):
    """A listener whose sessions never give a sign of life."""
    host = hosts.make()

    async def freeze(request: web.Request) -> web.StreamResponse:
        line = web.WebSocketResponse(autoping=False)
        await line.prepare(request)
        other = await host.listener._prove(line, "", "", "")
        other._ticker.cancel()
        await other.ended.wait()
        return line

    host.app.router.add_get(handshake.SESSION_PATH, freeze)
    await host.listener.start("127.0.0.1", 0)
    return host


async def test_closing_twice_and_from_two_sides_is_harmless(hosts) -> None:
    host = await hosts.start()
    line = await host.dial()
    await asyncio.gather(line.close(), line.close(), host.listener.stop())
    await line.close()
    with pytest.raises(Unreachable):
        await line.receive(Word)


# --- floods ---


@pytest.mark.parametrize("flood", ["empty", "half", "pings", "pongs"])
async def test_a_flood_of_what_makes_no_message_ends_the_session(hosts, flood) -> None:
    """The application is not in `receive` all the while."""
    theirs: asyncio.Future[Session] = asyncio.get_running_loop().create_future()

    async def serve(other: Session) -> None:
        theirs.set_result(other)
        await other.ended.wait()

    host = await hosts.start(serve)
    mine = await host.dial()
    other = await theirs
    line = mine._line
    assert isinstance(line, aiohttp.ClientWebSocketResponse)
    assert line._writer is not None
    if flood == "empty":
        await line.send_bytes(b"")
    elif flood == "half":
        # Of somebody whom nobody has taken in: less than the window of a session that was.
        line._writer.transport.write(b"\x02\x00" + b"\x00\x00" * (STRANGERS_UNFINISHED // 2))
    else:
        for _ in range(300):
            await (line.ping() if flood == "pings" else line.pong(struct.pack(">QQ", 0, 0)))
    await asyncio.wait_for(other.ended.wait(), 5)
    assert isinstance(other.failure, PeerMisbehaved | Busy)
    await mine.close()


async def test_words_of_who_broke_the_protocol_are_kept_for_nobody(hosts) -> None:
    looked = asyncio.Event()
    theirs: asyncio.Future[Session] = asyncio.get_running_loop().create_future()

    async def serve(other: Session) -> None:
        theirs.set_result(other)
        await looked.wait()

    mine = await (await hosts.start(serve)).dial()
    other = await theirs
    for _ in range(200):
        await mine.send(Word(text="x"))
    await mine._line.send_bytes(b"")
    await asyncio.wait_for(other.ended.wait(), 5)
    assert other._queue.qsize() == 1  # the end
    looked.set()
    await mine.close()


async def test_a_line_that_takes_no_bytes_ends_its_session_though_the_window_has_room(hosts, monkeypatch) -> None:
    monkeypatch.setattr(session, "UNTAKEN_S", 0.05)

    async def stuck(data: bytes) -> None:
        await asyncio.Event().wait()

    host = await hosts.start()
    mine = await host.dial()
    monkeypatch.setattr(mine._line, "send_bytes", stuck)
    with pytest.raises(Unreachable, match="read nothing"):
        await asyncio.wait_for(mine.send(Word(text="x")), 5)
    await mine.close()


async def test_who_takes_nothing_while_something_waits_for_it_is_ended(hosts, monkeypatch) -> None:
    monkeypatch.setattr(session, "UNTAKEN_S", 0.2)
    ended: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def serve(other: Session) -> None:
        try:
            while True:
                await other.send(Bulk(number=1), bytes(PAYLOAD_LIMIT))
        except Unreachable as error:
            ended.set_result(error)

    host = await hosts.start(serve)
    mine = await host.dial()
    error = await asyncio.wait_for(ended, 5)
    assert "took nothing" in str(error) or "read nothing" in str(error)
    await mine.close()


async def test_all_sessions_of_one_household_together_hold_a_bounded_number_of_bytes(hosts) -> None:
    held: list[Session] = []

    async def serve(other: Session) -> None:
        held.append(other)
        await other.ended.wait()

    host = await hosts.start(serve)
    lines = [await host.dial() for _ in range(4)]
    for line in lines:
        with suppress(Unreachable, Busy):
            for number in range(3):
                await line.send(Bulk(number=number), bytes(PAYLOAD_LIMIT))
    await asyncio.wait_for(
        asyncio.wait([asyncio.create_task(one.ended.wait()) for one in held], return_when="FIRST_COMPLETED"), 5
    )
    assert sum(one._arrivals.waiting for one in held if not one.closed) <= UNTAKEN_OF_ONE
    await asyncio.gather(*(line.close() for line in lines))


async def test_a_session_that_is_over_leaves_nothing_behind(hosts) -> None:
    served: list[weakref.ref[Session]] = []

    async def refuse(other: Session) -> None:
        served.append(weakref.ref(other))
        await other.receive(Word)
        await other.refuse(Busy("not now"))  # its caller's goodbye comes after that

    host = await hosts.start(refuse)
    for _ in range(3):
        line = await host.dial()
        await line.send(Word(text="a"))
        with pytest.raises(Busy):
            await line.receive(Word)
    async with asyncio.timeout(10):
        while len(served) < 3 or any(one() is not None for one in served):
            await asyncio.sleep(0.02)
            gc.collect()
