"""Listening: ports that are free, taken or impossible; what is no session; TLS 1.3 alone."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from aiohttp import web

from axonp2p.errors import MalformedMessage, PortTaken, SettingsError
from axonp2p.transport.handshake import SESSION_PATH
from axonp2p.transport.http_caller import HttpCaller
from axonp2p.transport.messages import Refusal


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
