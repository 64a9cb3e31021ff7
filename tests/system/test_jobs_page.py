"""The page of all jobs in a real browser: a running, a finished, a failed and a damaged job, in each look."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="no playwright here: pip install 'axonp2p[browser]'")

from playwright.async_api import Browser, Page, expect

from client_cli.jobs_page.server import JobsPage
from tests.laboratory import paper_home
from tests.laboratory.browsers import CHROMIUM, NO_CHROMIUM
from tests.laboratory.fork_server import ReadProgram
from tests.laboratory.paper_home import FAILED, FINISHED, RUNNING
from tests.laboratory.paper_job import HOSTILE
from tests.system.person import Person

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
]

WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
WAIT_MS = 30_000


@dataclass
class Visit:
    """An open tab, the server behind it, and what the browser complained of."""

    tab: Page
    served: JobsPage
    address: str
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    server_ends: bool = False
    """The program behind the page ends while it is open. The browser may say so."""


Open = Callable[..., Any]


def command(*words: str) -> str:
    return " ".join(["axon", *words])


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Open:
    """`async with visit(...)`: the page of the home `tmp_path`; no complaint of the browser's may be left."""

    @asynccontextmanager
    async def open_it(**context: Any) -> AsyncIterator[Visit]:
        served = JobsPage(tmp_path, command, 0)
        address = await served.start()
        own = await browser.new_context(timezone_id="UTC", **context)
        tab = await own.new_page()
        one = Visit(tab, served, address)
        tab.on("console", lambda said: one.complaints.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: one.complaints.append(str(error)))
        tab.on("dialog", lambda dialog: one.complaints.append(dialog.message))
        tab.on("request", lambda request: one.asked.append(request.url))
        try:
            await tab.goto(address)
            yield one
        finally:
            await own.close()
            await served.close()
        assert [said for said in one.complaints if not (one.server_ends and "ERR_" in said)] == []
        assert all(url.startswith((address, "data:")) for url in one.asked)

    return open_it


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
async def test_every_job_is_seen_in_each_look_and_nothing_is_wider_than_the_screen(
    visit: Open, tmp_path: Path, size: dict[str, int], scheme: str
) -> None:
    job = paper_home.all_of(tmp_path)
    with job.folder.held():
        async with visit(viewport=size, color_scheme=scheme) as one:
            await expect(one.tab).to_have_title("1 AT WORK - axon jobs")
            await expect(one.tab.locator("#word")).to_have_text("1 AT WORK")
            rows = one.tab.locator("#rows").get_by_role("row")
            await expect(rows.locator(".word")).to_have_text(
                ["RUNNING", "UNREADABLE", "FINISHED", "FAILED", "INTERRUPTED"]
            )
            for name, value in (("13 of 20 rounds are done", 1), ("20 of 20 rounds are done", 1)):
                await expect(one.tab.get_by_role("img", name=name)).to_have_count(value)
            await expect(one.tab.get_by_role("rowheader")).to_have_count(5)
            await expect(rows.nth(2).locator("code")).to_have_text(f"axon fetch {FINISHED} -o OUT")
            await expect(rows.nth(3)).to_contain_text(HOSTILE)
            await expect(rows.nth(1).get_by_role("link")).to_have_count(0)
            assert await one.tab.locator("img").count() == 0
            wide = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            scrolled, seen = await one.tab.evaluate(wide)
            assert scrolled <= seen == size["width"]
            beyond = """(most) => [...document.querySelectorAll('main *')]
                .filter((e) => !e.closest('thead') && e.getBoundingClientRect().right > most + 1)
                .map((e) => e.outerHTML.slice(0, 80))"""
            assert await one.tab.evaluate(beyond, size["width"]) == []
            ground = await one.tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == {"light": "rgb(238, 241, 244)", "dark": "rgb(13, 17, 23)"}[scheme]


async def test_the_first_look_needs_no_script(visit: Open, tmp_path: Path) -> None:
    paper_home.all_of(tmp_path)
    async with visit(java_script_enabled=False) as one:
        await expect(one.tab.locator("#rows .word")).to_have_count(5)
        await expect(one.tab.locator("#foot")).to_contain_text("load it again to see what changed")
        await one.tab.get_by_role("link", name=FINISHED).click()
        await expect(one.tab.locator("#word")).to_have_text("FINISHED")
        await one.tab.get_by_role("link", name="All jobs").click()
        await expect(one.tab.locator("#rows .word")).to_have_count(5)


async def test_an_open_page_follows_jobs_that_come_run_and_go(visit: Open, tmp_path: Path) -> None:
    async with visit() as one:
        await expect(one.tab.locator("#none")).to_contain_text("No job yet. axon init my-job writes a first one")
        await expect(one.tab.get_by_role("table")).to_be_hidden()
        finished = paper_home.finished(tmp_path)
        await expect(one.tab.locator("#rows .word")).to_have_text(["FINISHED"], timeout=WAIT_MS)
        await expect(one.tab.locator("#none")).to_be_hidden()
        await one.tab.get_by_role("link", name=FINISHED).focus()
        await one.tab.evaluate("document.getElementById('row-digits-7f3a').kept = true")
        job = paper_home.running(tmp_path)
        with job.folder.held():
            job.train(1)
            await expect(one.tab.locator("#rows .word")).to_have_text(["RUNNING", "FINISHED"], timeout=WAIT_MS)
            await expect(one.tab.locator("#said")).to_contain_text("1 AT WORK: 2 jobs: 1 running, 1 finished")
            job.train(2)
            await expect(one.tab.locator(f"#row-{RUNNING}")).to_contain_text("16 / 20 rounds", timeout=WAIT_MS)
            # What did not change was not touched: it keeps what is selected in it, and the keyboard.
            assert await one.tab.evaluate("document.getElementById('row-digits-7f3a').kept")
            await expect(one.tab.locator(":focus")).to_have_text(FINISHED)
            await one.tab.get_by_role("link", name=RUNNING).focus()
            job.train(1)
            await expect(one.tab.locator(f"#row-{RUNNING}")).to_contain_text("17 / 20 rounds", timeout=WAIT_MS)
            await expect(one.tab.locator(":focus")).to_have_text(RUNNING)
            job.train(3)
            job.finish()
        await expect(one.tab.locator("#word")).to_have_text("NONE AT WORK", timeout=WAIT_MS)
        shutil.rmtree(finished.folder.path)
        await expect(one.tab.locator("#rows th a")).to_have_text([RUNNING], timeout=WAIT_MS)
        paper_home.damaged(tmp_path, RUNNING[:-1])
        await expect(one.tab.locator("#rows .word")).to_have_text(["UNREADABLE", "FINISHED"], timeout=WAIT_MS)


async def test_a_job_is_followed_on_its_own_page_and_the_way_leads_back(visit: Open, tmp_path: Path) -> None:
    job = paper_home.all_of(tmp_path)
    with job.folder.held():
        async with visit() as one:
            await one.tab.get_by_role("link", name=RUNNING).click()
            await expect(one.tab.locator("#word")).to_have_text("RUNNING")
            assert one.tab.url == f"{one.address}job/{RUNNING}/"
            job.train(1)
            await expect(one.tab.locator(".progress span")).to_have_text("14 / 20 rounds", timeout=WAIT_MS)
            await expect(one.tab.locator("#rounds-rows tbody tr")).to_have_count(14)
            await one.tab.get_by_role("link", name="All jobs").click()
            await expect(one.tab.locator(f"#row-{RUNNING}")).to_contain_text("14 / 20 rounds")
            await one.tab.get_by_role("link", name=FAILED).click()
            await expect(one.tab.locator("section.banner h2").first).to_contain_text("AX-102: only 1 of at least 2")


async def test_more_tabs_than_a_browser_has_lines_for_are_all_served(visit: Open, tmp_path: Path) -> None:
    job = paper_home.running(tmp_path)
    with job.folder.held():
        async with visit() as one:
            # Headless Chromium hides no tab by itself; the page is told that it is hidden.
            hide = """Object.defineProperty(document, 'hidden', { get: () => true });
                document.dispatchEvent(new Event('visibilitychange'))"""
            for _ in range(8):
                tab = await one.tab.context.new_page()
                await tab.goto(f"{one.address}job/{RUNNING}/")
                await expect(tab.locator("#word")).to_have_text("RUNNING")
                await tab.evaluate(hide)
            job.train(1)
            await expect(tab.locator(".progress span")).to_have_text("14 / 20 rounds", timeout=WAIT_MS)
            await expect(one.tab.locator("#rows")).to_contain_text("14 / 20 rounds", timeout=WAIT_MS)


async def test_a_long_list_is_paged_and_its_second_page_is_live_too(
    visit: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("client_cli.jobs_page.listed.ROWS", 2)
    for number in range(5):
        paper_home.copies(tmp_path, f"sums-{number}", began=paper_home.NOON - number)
    async with visit() as one:
        await one.tab.get_by_role("link", name="Older").click()
        await expect(one.tab.locator("#rows th a")).to_have_text(["sums-2", "sums-3"])
        paper_home.finished(tmp_path)
        await expect(one.tab.locator("#rows th a")).to_have_text(["sums-1", "sums-2"], timeout=WAIT_MS)
        await one.tab.get_by_role("link", name="Newer").click()
        await expect(one.tab.locator("#rows th a")).to_have_text([FINISHED, "sums-0"])


async def test_a_server_that_is_gone_is_told_with_the_command_for_it(visit: Open, tmp_path: Path) -> None:
    paper_home.finished(tmp_path)
    async with visit() as one:
        await expect(one.tab.locator("#rows .word")).to_have_text(["FINISHED"])
        one.server_ends = True
        await one.served.close()
        alert = one.tab.get_by_role("alert")
        await expect(alert).to_contain_text(re.compile("No news since .*axon page$"), timeout=WAIT_MS)


async def test_the_program_serves_it_until_ctrl_c(browser: Browser, tmp_path: Path) -> None:
    person = Person(tmp_path)
    paper_home.all_of(person.home)
    process = person.begin("page")
    try:
        assert process.stdout
        address = (await asyncio.to_thread(process.stdout.readline)).split()[-1]
        tab = await browser.new_page()
        await tab.goto(address)
        await expect(tab.locator("#rows .word")).to_have_count(5)
        await tab.close()
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 60) == 0
        assert "Traceback" not in process.stdout.read()
    finally:
        _kill(process)


def _kill(process: ReadProgram) -> None:
    process.kill()
    process.wait()
