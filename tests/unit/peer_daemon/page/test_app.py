"""The page over real HTTP: who gets what, with which headers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from axonp2p.errors import PortTaken, SettingsError
from peer_daemon.page.app import StatusPage
from peer_daemon.page.token import TOKEN_FILE, page_address
from tests.laboratory.paper_steering import STATES, TRAINING, PaperSteering


@pytest.fixture
async def steering() -> PaperSteering:
    return PaperSteering(TRAINING)


@pytest.fixture
async def session(steering: PaperSteering, tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """A caller who knows where the page is."""
    served = StatusPage(steering, "127.0.0.1:0", tmp_path / TOKEN_FILE)
    async with aiohttp.ClientSession(await served.start()) as caller:
        yield caller
    await served.stop()


def token(home: Path) -> dict[str, str]:
    return {"X-Axon-Token": urlsplit(page_address(home)).fragment.removeprefix("token=")}


@pytest.mark.parametrize(
    "path", ["/", "/api/status", "/api/history", "/static/page.css", "/icon/paused.svg", "/nowhere"]
)
async def test_every_answer_is_well_wrapped(session: aiohttp.ClientSession, path: str) -> None:
    async with session.get(path) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        private = not path.startswith(("/static", "/icon"))
        assert ("no-store" in answer.headers["Cache-Control"]) == private


async def test_the_stream_of_events_is_wrapped_too_and_tells_of_changes(
    session: aiohttp.ClientSession, steering: PaperSteering
) -> None:
    async with session.get("/api/events") as answer:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        await steering.finish()
        async for line in answer.content:
            if b'"state":"finishing"' in line:
                break


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/vendored/VENDORED.md", "/static/", "/icon/other.svg"])
async def test_only_what_is_named_is_served(session: aiohttp.ClientSession, path: str) -> None:
    async with session.get(path) as answer:
        assert answer.status == 404


async def test_a_name_that_was_bent_to_this_computer_sees_nothing(session: aiohttp.ClientSession) -> None:
    async with session.get("/", headers={"Host": "evil.example"}) as answer:
        assert answer.status == 403
        assert "otter" not in await answer.text()


async def test_an_order_needs_the_token(
    session: aiohttp.ClientSession, steering: PaperSteering, tmp_path: Path
) -> None:
    async with session.post("/api/pause", json={"seconds": 900}) as answer:
        assert answer.status == 403
        assert (await answer.json())["error"]["fix"] == "axon-peer page"
    assert steering.ordered == []
    async with session.post("/api/pause", json={"seconds": 900}, headers=token(tmp_path)) as answer:
        assert answer.status == 200
    assert steering.ordered == ["pause 900.0"]


async def test_a_form_of_another_site_orders_nothing(
    session: aiohttp.ClientSession, steering: PaperSteering, tmp_path: Path
) -> None:
    headers = {**token(tmp_path), "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    async with session.post("/api/finish", headers=headers) as answer:
        assert answer.status == 403
    assert steering.ordered == []


async def test_the_token_stands_in_nothing_that_is_served(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    secret = token(tmp_path)["X-Axon-Token"]
    for path in ("/", "/api/status", "/static/page.js"):
        async with session.get(path) as answer:
            assert secret not in await answer.text()


async def test_two_pages_cannot_have_one_port(tmp_path: Path) -> None:
    first = StatusPage(PaperSteering(TRAINING), "127.0.0.1:0", tmp_path / TOKEN_FILE)
    port = urlsplit(await first.start()).port
    with pytest.raises(PortTaken):
        await StatusPage(PaperSteering(TRAINING), f"127.0.0.1:{port}", tmp_path / "other.token").start()
    assert not (tmp_path / "other.token").exists()
    await first.stop()


async def test_a_page_at_an_ipv6_address_has_brackets_in_its_own(tmp_path: Path) -> None:
    page = StatusPage(PaperSteering(TRAINING), "[::1]:0", tmp_path / TOKEN_FILE)
    address = await page.start()
    assert address.startswith("http://[::1]:")
    assert page_address(tmp_path).startswith(address)
    await page.stop()


def test_others_cannot_be_let_in(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        StatusPage(PaperSteering(STATES["ready"]), "0.0.0.0:7072", tmp_path / TOKEN_FILE)


def test_while_nobody_looks_the_templates_cost_nothing() -> None:
    code = "import sys, peer_daemon.page.app; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
