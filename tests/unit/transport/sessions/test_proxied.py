"""A listener behind a TCP proxy that speaks the PROXY protocol, with TLS and its pin whole from end to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from axonp2p.errors import Unreachable
from axonp2p.identity.certificate import Certificate, make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.sessions import before_tls, connections
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.proxy_header import Networks, parse_networks
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.ways import BareWhereabouts

CALLER = b"PROXY TCP4 203.0.113.9 192.0.2.1 55000 7070\r\n"


class TcpProxy:
    """Passes bytes on, after a header that says who called."""

    def __init__(self, port: int, header: bytes) -> None:
        self._port, self.header = port, header
        self._lines: list[asyncio.StreamWriter] = []

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()
        for line in self._lines:
            line.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._lines += [writer, back]
        for part in (self.header[:9], self.header[9:]):  # proxies may be cut in two, too
            back.write(part)
            await back.drain()
            await asyncio.sleep(0)
        await asyncio.gather(_carry(reader, back), _carry(there, writer), return_exceptions=True)


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()
    sink.close()


class Behind:
    """A listener that believes proxies of loopback, and what it saw of its callers."""

    def __init__(self, folder: Path, proxies: Networks) -> None:
        self.key = PrivateKey.generate()
        self.certificate: Certificate = make_certificate(self.key, folder / "certificate.pem")
        self.seen: list[str] = []
        app = web.Application()
        add_ping(app)
        app.router.add_get("/seen", self._seen)
        self.listener = Listener(self.key, self.certificate, app, proxies)
        self.listener.serve_sessions(app, self._serve)

    async def _seen(self, request: web.Request) -> web.Response:
        self.seen.append(request.remote or "")
        return web.Response()

    async def _serve(self, session: Session) -> None:
        self.seen += [session.address, session.source]


@pytest.fixture
async def behind(tmp_path: Path) -> AsyncIterator[Behind]:
    one = Behind(tmp_path, parse_networks(["127.0.0.0/8"]))
    await one.listener.start("127.0.0.1", 0)
    yield one
    await one.listener.stop()


@pytest.fixture
async def proxy(behind: Behind) -> AsyncIterator[TcpProxy]:
    one = TcpProxy(behind.listener.port, CALLER)
    yield one
    await one.stop()


async def test_callers_are_known_by_the_address_that_the_proxy_names(behind: Behind, proxy: TcpProxy) -> None:
    port = await proxy.start()
    address = PinnedAddress("127.0.0.1", port, behind.certificate.fingerprint)
    async with HttpCaller(address, called="it") as caller:
        await caller.fetch("/seen", 100)
        await caller.fetch("/seen", 100)
    place = BareWhereabouts(behind.key.peer_id, [address.host_port], behind.certificate.fingerprint)
    session = await dial(PrivateKey.generate(), place, called="it")
    await session.ended.wait()
    await session.close()
    assert behind.seen == ["203.0.113.9"] * 4


@pytest.mark.slow
async def test_limits_count_by_the_address_that_the_proxy_names(
    behind: Behind, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = await proxy.start()
    address = PinnedAddress("127.0.0.1", port, behind.certificate.fingerprint)
    async with HttpCaller(address, called="it") as caller:
        await caller.round_trip()
        behind.listener._connections._pace.debit("203.0.113.9", asyncio.get_running_loop().time(), 10_000)
        proxy.header = CALLER.replace(b"203.0.113.9", b"203.0.113.8")
        async with HttpCaller(address, called="it") as other:
            await other.round_trip()  # another caller of the same proxy is served
        proxy.header = CALLER
        async with HttpCaller(address, called="it") as again:
            with pytest.raises(Unreachable):
                await again.round_trip()


async def test_a_proxy_that_says_nothing_is_not_served(behind: Behind, caplog: pytest.LogCaptureFixture) -> None:
    address = PinnedAddress("127.0.0.1", behind.listener.port, behind.certificate.fingerprint)
    async with HttpCaller(address, called="it") as caller:
        with pytest.raises(Unreachable):
            await caller.round_trip()
    assert "a proxy is not understood" in caplog.text


async def test_a_health_check_of_the_proxy_counts_for_the_proxy(behind: Behind, proxy: TcpProxy) -> None:
    proxy.header = b"PROXY UNKNOWN\r\n"
    address = PinnedAddress("127.0.0.1", await proxy.start(), behind.certificate.fingerprint)
    async with HttpCaller(address, called="it") as caller:
        await caller.fetch("/seen", 100)
    assert behind.seen == ["127.0.0.1"]


async def test_proxies_that_wait_are_bounded(behind: Behind, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_UNNAMED", 0)
    address = PinnedAddress("127.0.0.1", await proxy.start(), behind.certificate.fingerprint)
    async with HttpCaller(address, called="it") as caller:
        with pytest.raises(Unreachable):
            await caller.round_trip()


@pytest.mark.parametrize("half", [b"", b"PROXY TCP4 203.0", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb"])
async def test_half_a_header_is_cut_off_and_its_place_is_free_again(
    behind: Behind, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch, half: bytes
) -> None:
    monkeypatch.setattr(before_tls, "WITHIN_S", 0.05)
    monkeypatch.setattr(connections, "MOST_UNNAMED", 1)
    reader, writer = await asyncio.open_connection("127.0.0.1", behind.listener.port)
    writer.write(half)
    assert await asyncio.wait_for(_rest(reader), 10) == b""
    writer.close()
    monkeypatch.undo()
    address = PinnedAddress("127.0.0.1", await proxy.start(), behind.certificate.fingerprint)
    async with HttpCaller(address, called="it") as caller:
        await caller.round_trip()
    assert behind.listener._connections._unnamed == 0


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def test_nobody_else_is_believed(tmp_path: Path) -> None:
    plain = Behind(tmp_path, parse_networks(["192.0.2.0/24"]))
    await plain.listener.start("127.0.0.1", 0)
    forged = TcpProxy(plain.listener.port, CALLER)
    try:
        address = PinnedAddress("127.0.0.1", await forged.start(), plain.certificate.fingerprint)
        async with HttpCaller(address, called="it") as caller:
            with pytest.raises(Unreachable):
                await caller.fetch("/seen", 100)
    finally:
        await forged.stop()
        await plain.listener.stop()
    assert plain.seen == []
