"""Listening: ports that are free, taken or impossible; what is no session; TLS 1.3 alone."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from asyncio import selector_events
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from axonp2p.errors import MalformedMessage, PortTaken, SettingsError, Unreachable
from axonp2p.transport.handshake import SESSION_PATH
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.messages import Refusal
from axonp2p.transport.sessions import connections, listener
from axonp2p.transport.tls import client_context


async def test_port_zero_takes_a_free_one(hosts) -> None:
    host = hosts.make()
    port = await host.listener.start("127.0.0.1", 0)
    assert port == host.listener.port > 0


async def test_a_taken_port_and_a_foreign_address_are_the_owners_to_mend(hosts) -> None:
    first, second, third = await hosts.start(), hosts.make(), hosts.make()
    with pytest.raises(PortTaken, match=f"127.0.0.1:{first.listener.port}") as caught:
        await second.listener.start("127.0.0.1", first.listener.port)
    assert "--listen" in caught.value.fix
    with pytest.raises(SettingsError, match=r"cannot listen at 192\.0\.2\.1:0") as caught:
        await third.listener.start("192.0.2.1", 0)
    assert not isinstance(caught.value, PortTaken)


async def test_a_plain_question_cannot_become_a_session(hosts) -> None:
    host = await hosts.start()
    async with HttpCaller(host.address, called="peer otter") as caller:
        with pytest.raises(MalformedMessage, match="only a WebSocket"):
            await caller.call(SESSION_PATH, None, Refusal, 1000)


async def test_a_handler_that_raises_an_error_of_ours_does_not_stop_the_listener(hosts) -> None:
    async def stumble(request: web.Request) -> web.Response:
        raise RuntimeError

    host = await hosts.start(prepare=lambda app: app.router.add_get("/stumble", stumble))
    async with HttpCaller(host.address, called="peer otter") as caller:
        assert await caller.round_trip() > 0


async def test_older_tls_is_not_spoken(hosts) -> None:
    host = await hosts.start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", host.listener.port, ssl=context)


def reads_though_paused(self: Any, fd: int, callback: Callable[..., object], *args: object) -> None:
    """How Python 3.11.2, Debian's, begins to read a new connection: also when its protocol has just said not to."""
    if not self._closing:
        self._loop._add_reader(fd, callback, *args)


async def test_a_busy_listener_answers_tls_that_began_before_it_looked(hosts, monkeypatch) -> None:
    monkeypatch.setattr(selector_events._SelectorTransport, "_add_reader", reads_though_paused)
    host = await hosts.start()
    outgoing = ssl.MemoryBIO()
    hello = client_context(verified=False).wrap_bio(ssl.MemoryBIO(), outgoing)
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    with socket.create_connection(("127.0.0.1", host.listener.port)) as caller:  # the kernel takes it; no loop has run
        caller.sendall(outgoing.read())
        caller.setblocking(False)
        async with asyncio.timeout(5):
            assert await asyncio.get_running_loop().sock_recv(caller, 1)


async def test_silent_connections_of_one_household_give_way_to_newcomers(hosts, monkeypatch) -> None:
    """They are counted before TLS; one that is answered just now keeps its place."""
    monkeypatch.setattr(connections, "MOST_OF_ONE", 3)
    monkeypatch.setattr(connections, "LEAST_AGE_S", 0.0)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        asked.set()
        await answer.wait()
        return web.Response(text="at last")

    host = await hosts.start(prepare=lambda app: app.router.add_get("/slow", slow))
    async with aiohttp.ClientSession() as client:
        context = client_context(verified=False)
        waiting = asyncio.create_task(client.get(f"{host.address.url}/slow", ssl=context))
        await asked.wait()
        silent = [await asyncio.open_connection("127.0.0.1", host.listener.port) for _ in range(6)]
        gone = [asyncio.create_task(reader.read()) for reader, _ in silent]
        await asyncio.wait(gone, return_when=asyncio.FIRST_COMPLETED, timeout=5)
        async with HttpCaller(host.address, called="peer otter") as caller:
            assert await caller.round_trip() > 0
        answer.set()
        assert await (await waiting).text() == "at last"
    await asyncio.wait(gone, timeout=0.2)
    assert sum(task.done() for task in gone) >= 3
    for _, writer in silent:
        writer.close()


async def test_a_head_that_never_ends_and_one_that_never_begins_are_let_go(hosts, monkeypatch) -> None:
    monkeypatch.setattr(connections, "TLS_S", 0.2)
    monkeypatch.setattr(connections, "LOOK_S", 0.05)
    host = await hosts.start()
    context = client_context(verified=False)
    _, nothing = await asyncio.open_connection("127.0.0.1", host.listener.port)
    reader, trickle = await asyncio.open_connection("127.0.0.1", host.listener.port, ssl=context)
    trickle.write(b"GET /v1/ping HTTP/1.1\r\nHost: ")
    with suppress(OSError):
        assert await asyncio.wait_for(reader.read(), 5) == b""
    async with asyncio.timeout(5):
        while len(host.listener._connections):  # noqa: ASYNC110  # nobody tells of it
            await asyncio.sleep(0.01)
    for writer in (nothing, trickle):
        writer.close()


def test_connections_leave_descriptors_for_everything_else() -> None:
    bounds = connections.connection_bounds(1024)
    assert (bounds.in_all, bounds.of_source) == (768, 256)
    assert connections.connection_bounds(10**6).in_all == connections.MOST_CONNECTIONS


async def test_many_new_connections_of_one_household_are_refused_before_tls(hosts, monkeypatch) -> None:
    monkeypatch.setattr(connections, "OPENED_AT_ONCE", 2.0)
    monkeypatch.setattr(connections, "OPENED_A_SECOND", 1e-3)  # none comes back while a busy machine takes its time
    host = await hosts.start()
    for _ in range(2):
        async with HttpCaller(host.address, called="peer otter") as caller:
            await caller.round_trip()
    async with HttpCaller(host.address, called="peer otter") as caller:
        with pytest.raises(Unreachable):
            await caller.round_trip()
    async with HttpCaller(host.address, called="peer otter", local_address="127.0.0.2") as caller:
        await caller.round_trip()


async def test_all_households_together_have_no_more_connections_than_descriptors_allow(hosts, monkeypatch) -> None:
    monkeypatch.setattr(connections, "LEAST_AGE_S", 1e9)
    usual, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        assert hosts.make().listener._connections._held.bounds == connections.connection_bounds(400)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, hard))
    monkeypatch.setattr(connections, "_descriptors", lambda: 4)
    host = await hosts.start()
    callers = [HttpCaller(host.address, called="otter", local_address=f"127.0.0.{number}") for number in range(1, 5)]
    async with callers[0] as one, callers[1] as two, callers[2] as three, callers[3] as four:
        for caller in (one, two, three):
            await caller.round_trip()
        with pytest.raises(Unreachable):
            await four.round_trip()


@pytest.mark.parametrize(("bound", "most"), [("MOST_OF_ONE", 2), ("OPENED_AT_ONCE", 2.0)])
async def test_a_household_has_one_share_of_the_connections_and_their_pace_whatever_its_addresses(
    hosts, one_house, monkeypatch, bound, most
) -> None:
    monkeypatch.setattr(connections, bound, most)
    monkeypatch.setattr(connections, "OPENED_A_SECOND", 1e-3)
    monkeypatch.setattr(connections, "LEAST_AGE_S", 1e9)
    host = await hosts.start()
    callers = [HttpCaller(host.address, called="otter", local_address=f"127.0.0.{number}") for number in (1, 2, 3)]
    async with callers[0] as one, callers[1] as other, callers[2] as third:
        await one.round_trip()
        await other.round_trip()
        with pytest.raises(Unreachable):
            await third.round_trip()


def test_a_household_that_opens_as_many_connections_as_it_may_fills_not_even_its_own_handshakes() -> None:
    assert connections.OPENED_A_SECOND * listener.PROOF_S <= listener.MOST_HANDSHAKES_OF_ONE


async def test_half_a_second_question_is_let_go_like_an_answer_that_is_not_taken(hosts, monkeypatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_TAKEN_S", 0.2)
    monkeypatch.setattr(connections, "LOOK_S", 0.05)
    host = await hosts.start()
    context = client_context(verified=False)
    reader, writer = await asyncio.open_connection("127.0.0.1", host.listener.port, ssl=context)
    writer.write(b"GET /v1/ping HTTP/1.1\r\nHost: otter\r\n\r\n")
    assert b"204" in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"GET /v1/ping HTTP/1.1\r\nHost: ")
    with suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), 5)
    writer.close()
