"""The operator's page, the metrics and the landing page of a tracker that runs in this process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from axonp2p.errors import PortTaken, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http import plain_server
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.own_page import LOOK
from axonp2p.transport.tls import client_context, presented_fingerprint
from tests.laboratory.authority import Authority
from tests.unit.tracker.conftest import Running, Start, until
from tracker.page import server
from tracker.page.overview import Overview

ADA = PrivateKey.generate()
HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as one:
        yield one


@pytest.fixture
async def lab(start: Start) -> Running:
    return await start(page_listen="127.0.0.1:0", metrics_listen="127.0.0.1:0")


async def test_the_page_shows_what_runs(lab: Running, browser: aiohttp.ClientSession) -> None:
    await lab.announce(ADA)
    async with browser.get(lab.tracker.own_doors.page) as answer:
        page = await answer.text()
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert answer.headers["Server"] == "axon"
    assert "1 peer announced" in page
    assert str(lab.address) in page
    for file in ("look.css", "page.css", "page.js", "icon.svg"):
        async with browser.get(f"{lab.tracker.own_doors.page}static/{file}") as answer:
            assert answer.status == 200


async def test_many_looks_at_once_cost_as_much_as_one(
    lab: Running, browser: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FRESH_S", 3600.0)
    made: list[Overview] = []

    def render(overview: Overview) -> str:
        made.append(overview)
        return "<p>it"

    monkeypatch.setattr(server, "_render", render)

    async def look() -> str:
        async with browser.get(lab.tracker.own_doors.page) as answer:
            return await answer.text()

    assert set(await asyncio.gather(*(look() for _ in range(20)))) == {"<p>it"}
    assert len(made) == 1


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_other_sites_do_not_read_it(
    lab: Running, browser: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    async with browser.get(lab.tracker.own_doors.page, headers=headers) as answer:
        assert answer.status == 403


async def test_metrics_have_a_listener_of_their_own(lab: Running, browser: aiohttp.ClientSession) -> None:
    async with browser.get(lab.tracker.own_doors.metrics) as answer:
        page = await answer.text()
        assert answer.headers["Server"] == "axon"
    assert 'axon_build_info{protocol="2",version=' in page
    assert "axon_trackers 0.0" in page


async def test_plain_listeners_are_bounded(
    lab: Running, browser: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_server, "MOST_CONNECTIONS", 0)
    with pytest.raises(aiohttp.ClientError):
        await browser.get(lab.tracker.own_doors.metrics)


async def test_who_connects_and_says_nothing_keeps_nobody_out(
    start: Start, browser: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_server, "KEEP_ALIVE_S", 0.05)
    monkeypatch.setattr(plain_server, "MOST_CONNECTIONS", 2)
    lab = await start(metrics_listen="127.0.0.1:0")
    metrics = lab.tracker.own_doors.metrics
    host, port = metrics.split("/")[2].split(":")
    lines = [await asyncio.open_connection(host, int(port)) for _ in range(2)]
    lines[0][1].write(b"GET /metrics HTT")
    for reader, writer in lines:
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
    async with browser.get(metrics) as answer:
        assert answer.status == 200


async def test_a_port_that_was_asked_for_is_not_replaced(lab: Running, start: Start, tmp_path: Path) -> None:
    taken = lab.tracker.own_doors.metrics.split("/")[2]
    with pytest.raises(PortTaken, match="no listener for metrics") as raised:
        await start(tmp_path / "other", metrics_listen=taken)
    assert "--metrics-listen" in raised.value.fix


async def test_a_page_that_others_could_reach_is_refused(start: Start) -> None:
    with pytest.raises(SettingsError, match="where others can reach it"):
        await start(page_listen="0.0.0.0:0")


async def test_a_browser_finds_words_at_the_public_port_and_programs_messages(
    lab: Running, browser: aiohttp.ClientSession
) -> None:
    async with browser.get(lab.address.url, headers=HTML, ssl=False) as answer:
        page = await answer.text()
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert answer.headers["Server"] == "axon"
    assert str(lab.address) in page
    async with browser.get(f"{lab.address.url}/look.css", ssl=False) as answer:
        assert answer.content_type == "text/css"
    async with browser.get(f"{lab.address.url}/v1/announce", headers=HTML, ssl=False) as answer:
        assert (answer.status, answer.content_type) == (405, "text/plain")
        assert (await answer.text()).startswith("AX-400")
    async with browser.get(lab.address.url, ssl=False) as answer:
        assert (answer.status, answer.content_type) == (404, "application/msgpack")


async def test_the_sheet_of_the_landing_page_comes_through_a_trusted_proxy_too(start: Start) -> None:
    lab = await start(trusted_proxies=["127.0.0.1"])
    at = socket.create_connection((lab.address.host, lab.address.port))
    at.setblocking(False)
    await asyncio.get_running_loop().sock_sendall(at, b"PROXY TCP4 203.0.113.9 127.0.0.1 55000 7070\r\n")
    reader, writer = await asyncio.open_connection(sock=at, ssl=client_context(verified=False), server_hostname="it")
    writer.write(b"GET /look.css HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    head, _, sheet = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"text/css" in head
    assert sheet == LOOK.read_bytes()


async def test_an_authoritys_certificate_is_served_renewed_and_not_pinned(start: Start, authority: Authority) -> None:
    signed = authority.sign("127.0.0.1")
    lab = await start(certificate=str(signed.certificate), certificate_key=str(signed.key))
    assert lab.address.fingerprint is None
    assert "#" not in str(lab.address)
    await lab.announce(ADA)
    before = await presented_fingerprint(lab.address.host, lab.address.port, 5)
    fresh = authority.sign("127.0.0.1")
    signed.key.write_bytes(fresh.key.read_bytes())
    await lab.tracker.renew_certificate()  # half of it has come: the old one stays in use
    assert await presented_fingerprint(lab.address.host, lab.address.port, 5) == before
    signed.certificate.write_bytes(fresh.certificate.read_bytes())
    await lab.tracker.renew_certificate()
    assert await presented_fingerprint(lab.address.host, lab.address.port, 5) != before
    async with HttpCaller(lab.address, called="it") as caller:
        await caller.round_trip()


async def test_trackers_share_their_table_by_an_authoritys_word(
    start: Start, authority: Authority, tmp_path: Path
) -> None:
    signed = authority.sign("127.0.0.1")
    first = await start(certificate=str(signed.certificate), certificate_key=str(signed.key))
    await first.announce(ADA)
    second = await start(tmp_path / "second", trackers=[str(first.address)])
    await until(lambda: second.tracker.table.index.knows(ADA.peer_id))


async def test_a_certificate_wants_its_key(start: Start, authority: Authority) -> None:
    with pytest.raises(SettingsError, match="go together"):
        await start(certificate=str(authority.sign("127.0.0.1").certificate))


async def test_a_fingerprint_still_pins_a_tracker_without_one(lab: Running) -> None:
    wrong = PinnedAddress(lab.address.host, lab.address.port, bytes(32))
    async with HttpCaller(wrong, called="it") as caller:
        with pytest.raises(Exception, match="another certificate"):
            await caller.round_trip()
