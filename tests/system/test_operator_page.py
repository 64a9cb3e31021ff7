"""The operator's page and the landing page of a tracker in a real browser: states on paper and of real trackers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("playwright", reason="no playwright here: pip install 'axonp2p[browser]'")

from playwright.async_api import Browser, Page, expect

from axonp2p.errors import AxonError
from axonp2p.ledger.receipt import open_doubly_signed
from axonp2p.table.tracker_client import announce
from axonp2p.transport.tls import client_context
from axonp2p.wire.envelope import sign
from tests.fakes import make_row
from tests.laboratory.authority import Authority
from tests.laboratory.browsers import CHROMIUM, NO_CHROMIUM
from tests.laboratory.paper_overview import ATTIC, BUSY, EMPTY, OVERVIEWS, PaperRecorder
from tests.unit.tracker.conftest import Running, start_tracker, until
from tests.unit.tracker.logs import ADA, BEN, convicted, paid
from tracker.api.status import ask_status
from tracker.page.server import OperatorPage
from tracker.storage.disk import Disk

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
]

WIDE, PHONE = {"width": 1080, "height": 800}, {"width": 390, "height": 844}
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "phone": ("light", PHONE), "phone-dark": ("dark", PHONE)}
GROUND = {"light": "rgb(238, 241, 244)", "dark": "rgb(13, 17, 23)"}
GROUND_SEEN = "getComputedStyle(document.body).backgroundColor"
WAIT_MS = 20_000
"""The page asks again every five seconds."""


@dataclass
class Visit:
    """An open tab, what the browser complained of, and what it asked for."""

    tab: Page
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def fact(self, name: str) -> str:
        """The number beside that name."""
        row = self.tab.locator("dl > div").filter(has=self.tab.get_by_text(name, exact=True))
        return (await row.locator("dd").text_content() or "").strip()

    async def is_as_wide_as_the_screen(self, width: int) -> None:
        """Nothing has to be pushed aside, and nothing is cut off."""
        wide = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        scrolled, seen = await self.tab.evaluate(wide)
        assert scrolled <= seen == width
        beyond = f"""[...document.querySelectorAll('main *')]
            .filter((e) => e.getBoundingClientRect().right > {width + 1}
                || e.matches('.scrolls') && e.scrollWidth > e.clientWidth)
            .map((e) => e.outerHTML.slice(0, 80))"""
        assert await self.tab.evaluate(beyond) == []


@asynccontextmanager
async def visiting(browser: Browser, address: str, look: str = "light") -> AsyncIterator[Visit]:
    scheme, size = LOOKS[look]
    own = await browser.new_context(
        timezone_id="UTC", viewport=size, color_scheme=scheme, has_touch="phone" in look, ignore_https_errors=True
    )
    tab = await own.new_page()
    one = Visit(tab)
    tab.on("console", lambda said: one.complaints.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: one.complaints.append(str(error)))
    tab.on("request", lambda request: one.asked.append(request.url))
    try:
        await tab.goto(address)
        yield one
        assert await tab.evaluate(GROUND_SEEN) == GROUND[scheme]
    finally:
        await own.close()
    assert one.complaints == []


# --- on paper -----------------------------------------------------------------------------------------


@asynccontextmanager
async def served(recorder: PaperRecorder, port: int = 0) -> AsyncIterator[str]:
    page = OperatorPage(recorder, f"127.0.0.1:{port}")
    try:
        yield await page.start()
    finally:
        await page.stop()


@pytest.mark.parametrize("look", ["light", "phone"])
@pytest.mark.parametrize("state", OVERVIEWS)
async def test_every_state_fits_every_screen_and_says_its_numbers(browser: Browser, state: str, look: str) -> None:
    told = OVERVIEWS[state]
    async with served(PaperRecorder(told)) as address, visiting(browser, address, look) as one:
        await expect(one.tab).to_have_title(re.compile(f"^{told.word} - tracker lab"))
        await expect(one.tab.get_by_role("heading", level=1)).to_contain_text(told.word)
        for heading in ("Last 24 hours", "Peers", "Ledger and disk", "Relay", "Other trackers"):
            await expect(one.tab.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        assert await one.fact("Ready: a slot is free") == f"{told.peers.ready:,}"
        assert await one.fact("Busy: no slot is free") == f"{told.peers.busy:,}"
        assert await one.fact("Announced, but unreachable") == f"{told.peers.unreachable:,}"
        assert await one.fact("Receipts that count") == f"{told.receipts:,}"
        assert await one.fact("Convictions") == f"{told.convictions:,}"
        for path, count in told.traffic.by_path.items():
            assert await one.fact(path) == f"{count:,}"
        for code, count in told.traffic.refusals.items():
            await expect(one.tab.locator("#refused tr").filter(has_text=code)).to_contain_text(str(count))
        banners = ["Its disk is almost full"] * told.disk_is_low
        banners += [f"The log of tracker {other.tracker[:8]} is false" for other in told.false_logs]
        banners += ["It shares its table with no other tracker"] * (not told.trackers)
        await expect(one.tab.locator("section.banner h2")).to_contain_text(banners)
        await one.is_as_wide_as_the_screen(LOOKS[look][1]["width"])
        await one.tab.emulate_media(color_scheme="dark")
        assert await one.tab.evaluate(GROUND_SEEN) == GROUND["dark"]
        await one.is_as_wide_as_the_screen(LOOKS[look][1]["width"])
        await one.tab.emulate_media(color_scheme="light")
        assert all(url.startswith(address) for url in one.asked)


async def test_an_open_page_follows_what_changes(browser: Browser) -> None:
    recorder = PaperRecorder(EMPTY)
    async with served(recorder) as address, visiting(browser, address) as one:
        await expect(one.tab.locator("#alone")).to_be_visible()
        recorder.sheet = replace(BUSY, trackers=[ATTIC], disk=Disk(212_000_000, 100_000_000))
        await expect(one.tab.locator("#disk")).to_be_visible(timeout=WAIT_MS)
        await expect(one.tab.locator("#alone")).to_have_count(0)
        await expect(one.tab.locator(".why")).to_have_text("202 peers announced, 1 of 1 other tracker answer.")
        recorder.sheet = replace(BUSY, trouble="it cannot store anything: disk I/O error")
        await expect(one.tab).to_have_title(re.compile("^TROUBLE"), timeout=WAIT_MS)
        await expect(one.tab.locator("#disk")).to_have_count(0)


async def test_a_tracker_that_went_away_is_missed_and_found_again(browser: Browser) -> None:
    recorder = PaperRecorder(BUSY)
    async with served(recorder) as address:
        port = int(address.rstrip("/").rpartition(":")[2])
        holder = visiting(browser, address)
        one = await holder.__aenter__()
    alert = one.tab.get_by_role("alert")
    await expect(alert).to_contain_text("No answer from the tracker", timeout=WAIT_MS)
    await expect(one.tab).to_have_title(re.compile(r"^\?"))
    async with served(recorder, port):
        await expect(alert).to_be_hidden(timeout=WAIT_MS)
        await expect(one.tab).to_have_title(re.compile("^SERVES"))
        assert one.complaints  # browsers write every lost connection down
        assert all("ERR_" in said for said in one.complaints)
        one.complaints.clear()
        await holder.__aexit__(None, None, None)


# --- real trackers ------------------------------------------------------------------------------------


@pytest_asyncio.fixture(loop_scope="module")
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts trackers with a page; those that are still up afterwards are stopped."""
    started: list[Running] = []

    async def begin(name: str, **settings: Any) -> Running:
        started.append(await start_tracker(tmp_path / name, page_listen="127.0.0.1:0", **settings))
        return started[-1]

    yield begin
    for running in started:
        await running.stop()


@pytest.mark.parametrize("look", ["light", "phone-dark"])
async def test_a_fresh_tracker_says_that_it_is_alone(browser: Browser, start: Callable[..., Any], look: str) -> None:
    lab = await start("lab")
    async with visiting(browser, lab.tracker.own_doors.page, look) as one:
        await expect(one.tab.locator(".why")).to_have_text("0 peers announced.")
        await expect(one.tab.locator("#alone")).to_be_visible()
        await expect(one.tab.locator("#refused")).to_contain_text("Nobody was refused.")
        await expect(one.tab.locator("code").first).to_have_text(str(lab.address))
        await one.is_as_wide_as_the_screen(LOOKS[look][1]["width"])


@pytest.mark.parametrize("look", LOOKS)
async def test_peers_receipts_a_conviction_and_refusals_are_counted_as_the_api_counts_them(
    browser: Browser, start: Callable[..., Any], look: str
) -> None:
    lab = await start("lab")
    receipts = await paid(lab, ADA, BEN, rounds=3)
    await convicted(lab, of=ADA, reservation=open_doubly_signed(receipts[0]).reservation)
    for _ in range(2):
        with pytest.raises(AxonError):
            await announce(lab.caller, sign(BEN, make_row(ADA, now=lab.clock.now())))
    status = await ask_status(lab.address)
    async with visiting(browser, lab.tracker.own_doors.page, look) as one:
        known = [await one.fact(name) for name in ("Ready: a slot is free", "Busy: no slot is free")]
        unreachable = await one.fact("Announced, but unreachable")
        assert sum(map(int, [*known, unreachable])) == status.alive
        assert await one.fact("Receipts that count") == str(lab.tracker.ledger.receipts) == "3"  # the other 3 are void
        assert await one.fact("Convictions") == "1"
        asked = lab.tracker.metrics.by_path()
        for path in ("/v1/announce", "/v1/receipts", "/v1/voidings"):
            assert await one.fact(path) == f"{asked[path]:,}"
        ((code, times),) = lab.tracker.metrics.refused.items()
        assert times == 2
        await expect(one.tab.locator("#refused tr").filter(has_text=code)).to_contain_text("2")
        await one.is_as_wide_as_the_screen(LOOKS[look][1]["width"])


async def test_another_tracker_is_seen_with_its_lag_and_missed_when_it_is_gone(
    browser: Browser, start: Callable[..., Any]
) -> None:
    attic = await start("attic")
    lab = await start("lab", trackers=[str(attic.address)])
    async with visiting(browser, lab.tracker.own_doors.page, "phone") as one:
        row = one.tab.locator("#others tbody tr").first
        await expect(row).to_contain_text("answers", timeout=WAIT_MS)
        await until(lambda: attic.tracker._joined().book.living_one(lab.tracker.key.peer_id))  # else it takes no push
        await lab.announce(ADA)
        await expect(row).to_contain_text(re.compile(r"\d\.\d s"), timeout=WAIT_MS)
        (other,) = (await ask_status(lab.address)).trackers
        await expect(row).to_contain_text(other.tracker[:8])
        await attic.stop()
        await lab.announce(BEN)  # which cannot be passed on
        await expect(one.tab).to_have_title(re.compile("^ALONE"), timeout=3 * WAIT_MS)
        await expect(row).to_contain_text("silent for")
        await one.is_as_wide_as_the_screen(PHONE["width"])


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """One that callers trust. Browsers do not speak TLS with the tracker's own certificate: docs/operate.md."""
    one = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(one.root))
    client_context.cache_clear()
    yield one
    client_context.cache_clear()


@pytest.mark.parametrize("look", LOOKS)
async def test_the_public_port_tells_a_browser_the_address_and_no_more_than_everybody_may_know(
    browser: Browser, start: Callable[..., Any], authority: Authority, look: str
) -> None:
    signed = authority.sign("127.0.0.1")
    lab = await start("lab", certificate=str(signed.certificate), certificate_key=str(signed.key))
    await lab.announce(ADA)
    async with visiting(browser, lab.address.url, look) as one:
        await expect(one.tab.get_by_role("heading", level=1)).to_have_text(lab.tracker.key.peer_id[:8])
        await expect(one.tab.locator(".why")).to_have_text("It is well and knows 1 peer.")
        await expect(one.tab.locator("code").first).to_have_text(str(lab.address))
        await expect(one.tab.locator("code").last).to_have_text(f"axon submit JOB --tracker {lab.address}")
        await one.is_as_wide_as_the_screen(LOOKS[look][1]["width"])
        assert all(url.startswith(lab.address.url) for url in one.asked)
