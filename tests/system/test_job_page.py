"""A job's page and its report in a real browser: every state opened from the disk, and a real job while it runs."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("playwright", reason="no playwright here: pip install 'axonp2p[browser]'")

from playwright.async_api import Browser, Page, expect

from axonp2p.client.storage.job_store import JobStore
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.sandbox.child import why_no_sandbox
from client_cli.report.files import write_report
from tests.laboratory.browsers import CHROMIUM, NO_CHROMIUM
from tests.laboratory.fork_server import ReadProgram
from tests.laboratory.paper_calls import CALL_STATES, PaperCalls
from tests.laboratory.paper_job import HOSTILE, STATES, PaperJob
from tests.system.person import Person
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
]

PHONE = {"width": 390, "height": 844}
GROUNDS: dict[Literal["light", "dark"], str] = {"light": "rgb(238, 241, 244)", "dark": "rgb(13, 17, 23)"}
WAIT_MS = 60_000
no_sandbox = why_no_sandbox()


@dataclass
class Visit:
    """An open tab, what the browser complained of, and what it asked for."""

    tab: Page
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    server_ends: bool = False
    """The program behind the page ends while it is open. The browser may say so."""


@asynccontextmanager
async def visiting(browser: Browser, address: str, **context: Any) -> AsyncIterator[Visit]:
    own = await browser.new_context(timezone_id="UTC", **context)
    tab = await own.new_page()
    one = Visit(tab)
    tab.on("console", lambda said: one.complaints.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: one.complaints.append(str(error)))
    tab.on("request", lambda request: one.asked.append(request.url))
    tab.on("dialog", lambda dialog: one.complaints.append(dialog.message))
    try:
        await tab.goto(address)
        yield one
    finally:
        await own.close()
    assert [said for said in one.complaints if not (one.server_ends and "ERR_" in said)] == []


def command(*words: str) -> str:
    return " ".join(["axon", *words])


def report_of(job: PaperJob | PaperCalls, *, at_work: bool) -> str:
    """Written to the disk as `axon report` writes it; its address there."""
    return write_report(job.folder, command, ours=at_work).as_uri()


@pytest.mark.parametrize(
    ("state", "word", "banner"),
    [
        ("running", "RUNNING", []),
        ("lost", "RUNNING", ["wren is gone"]),
        ("waiting", "WAITING", ["The job waits for heron"]),
        ("resumed", "RUNNING", []),
        ("finished", "FINISHED", ["The weights are here"]),
        ("failed", "FAILED", ["AX-102: only 2 of at least 3 peers are left"]),
        ("paused", "PAUSED", ["The job is paused"]),
    ],
)
async def test_each_state_is_one_file_that_opens_without_a_network(
    browser: Browser, tmp_path: Path, state: str, word: str, banner: list[str]
) -> None:
    address = report_of(STATES[state](tmp_path), at_work=state not in ("finished", "failed", "paused"))
    async with visiting(browser, address, offline=True) as one:
        await expect(one.tab.get_by_role("heading", name=word, exact=True)).to_be_visible()
        await expect(one.tab.locator("section.banner h2")).to_have_text(banner)
        for picture in ("Training loss", "Held-out accuracy", "otter: train", "A message to otter", "Credits: otter"):
            await expect(one.tab.get_by_role("img", name=re.compile(picture)).first).to_be_visible()
        await expect(one.tab.locator("#lanes .strip")).not_to_have_count(0)
        assert one.asked == [address]


async def test_before_the_first_round_there_are_words_in_place_of_curves(browser: Browser, tmp_path: Path) -> None:
    address = report_of(STATES["starting"](tmp_path), at_work=True)
    async with visiting(browser, address, offline=True) as one:
        await expect(one.tab.locator("#word")).to_be_visible()
        await expect(one.tab.get_by_role("img", name=re.compile("Training loss"))).to_have_count(0)
        await expect(one.tab.locator("#loss")).to_contain_text("No round is accepted yet.")


@pytest.mark.parametrize("state", [*STATES.values(), *CALL_STATES.values()], ids=lambda state: state.__qualname__)
async def test_on_a_phone_nothing_is_wider_than_the_screen(
    browser: Browser, tmp_path: Path, state: Callable[[Path], PaperJob | PaperCalls]
) -> None:
    address = report_of(state(tmp_path), at_work=False)
    async with visiting(browser, address, viewport=PHONE, has_touch=True) as one:
        for summary in await one.tab.locator("summary").all():
            await summary.tap()
        wide = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        beyond = """[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scrolls')
            && e.getBoundingClientRect().right > 391).map((e) => e.outerHTML.slice(0, 80))"""
        for scheme, ground in GROUNDS.items():
            await one.tab.emulate_media(color_scheme=scheme)
            scrolled, seen = await one.tab.evaluate(wide)
            assert scrolled <= seen == PHONE["width"]
            assert await one.tab.evaluate(beyond) == []
            assert await one.tab.evaluate("getComputedStyle(document.body).backgroundColor") == ground


@pytest.mark.parametrize(
    ("state", "word", "said", "looks"),
    [
        ("starting", "RUNNING", "0 of 400 calls have a result.", set()),
        ("running", "RUNNING", "1 chunk that took too long", {"ran", "failed", "copy", "stuck", "paused"}),
        ("resumed", "RUNNING", "261 of 400 calls have a result.", {"ran"}),
        ("failed", "FAILED", "120 of 400 calls have a result.", {"ran"}),
        ("finished", "FINISHED", "400 of 400 calls have a result; 3 failed", {"ran", "failed", "copy", "stuck"}),
        ("compared", "RUNNING", "heron gets no more calls: its results differ from those of 2 others.", {"ran"}),
    ],
)
async def test_calls_by_peer_over_time_and_their_results(
    browser: Browser, tmp_path: Path, state: str, word: str, said: str, looks: set[str]
) -> None:
    job = CALL_STATES[state](tmp_path)
    address = report_of(job, at_work=word == "RUNNING")
    async with visiting(browser, address, offline=True) as one:
        await expect(one.tab.get_by_role("heading", name=word, exact=True)).to_be_visible()
        await expect(one.tab.locator("#calls")).to_contain_text(said)
        shown = await one.tab.locator("#lanes .strip .look").evaluate_all("all => all.map((e) => e.classList[1])")
        assert set(shown) == looks
        await expect(one.tab.locator("#failures tbody tr")).to_have_count(job.failed)
        rows = one.tab.locator("#results-rows tbody tr")
        await expect(rows).to_have_count(min(100, job.done) or 1)
        await expect(rows.first).to_contain_text("{'inside': 785000}" if job.done else "Nothing yet.")
        opinions = one.tab.locator("section", has=one.tab.get_by_role("heading", name="Second opinions"))
        await expect(opinions.locator("tbody tr")).to_have_count(4 if state == "compared" else 0)
        assert one.asked == [address]


async def test_charts_are_read_by_keyboard_and_by_touch(browser: Browser, tmp_path: Path) -> None:
    address = report_of(STATES["finished"](tmp_path), at_work=False)
    async with visiting(browser, address) as one:
        reader = one.tab.get_by_role("slider", name="Read round by round").first
        read = one.tab.locator("[data-table=rounds] .read")
        await reader.focus()
        await one.tab.keyboard.press("Home")
        await expect(read).to_contain_text("Round 1, loss 2.0")
        await one.tab.keyboard.press("ArrowRight")
        await expect(read).to_contain_text("Round 2, loss")
        await expect(reader).to_have_attribute("aria-valuenow", "2")
        await expect(reader).to_have_attribute("aria-valuetext", re.compile("Round 2, loss"))
        await one.tab.keyboard.press("End")
        await expect(read).to_contain_text("Round 20, loss")
        box = await reader.bounding_box()
        assert box
        await one.tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
        await expect(read).to_contain_text("Round 10, loss")


async def test_every_part_is_reached_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    address = report_of(STATES["finished"](tmp_path), at_work=False)
    async with visiting(browser, address) as one:
        await one.tab.keyboard.press("Tab")
        await expect(one.tab.locator(":focus")).to_have_text("To the content")
        reached = set()
        for _ in range(40):
            await one.tab.keyboard.press("Tab")
            reached.add(await one.tab.evaluate("document.activeElement.textContent.trim().slice(0, 30)"))
        assert {"The rounds as a table", "What each peer did as a table", "The bytes as a table"} <= reached
        assert {"The round trips as a table", "All about the peers as a table", "Download CSV"} <= reached
        await one.tab.get_by_text("The rounds as a table").focus()
        await one.tab.keyboard.press("Enter")
        await expect(one.tab.locator("#rounds-rows tbody tr")).to_have_count(20)


async def test_numbers_are_kept_from_the_file_itself(browser: Browser, tmp_path: Path) -> None:
    job = STATES["finished"](tmp_path)
    async with visiting(browser, report_of(job, at_work=False), offline=True) as one:
        async with one.tab.expect_download() as coming:
            await one.tab.locator("#csv-rounds").click()
        download = await coming.value
        assert download.suggested_filename == "rounds.csv"
        rows = list(csv.DictReader(io.StringIO(await asyncio.to_thread(Path(await download.path()).read_text))))
        assert [row["loss"] for row in rows] == [row["loss"] for row in MetricsFile(job.folder.metrics).rows()]


async def test_without_a_script_it_is_whole(browser: Browser, tmp_path: Path) -> None:
    address = report_of(STATES["finished"](tmp_path), at_work=False)
    async with visiting(browser, address, java_script_enabled=False) as one:
        await expect(one.tab.locator(".chart").first).to_be_visible()
        await one.tab.get_by_text("The rounds as a table").click()
        await expect(one.tab.locator("#rounds-rows tbody tr")).to_have_count(20)


async def test_what_strangers_write_stays_words(browser: Browser, tmp_path: Path) -> None:
    job = PaperJob(tmp_path)
    job.begin(["otter", HOSTILE])
    job.train(2)
    job.lose(HOSTILE, HOSTILE)
    job.fail("AX-102", HOSTILE, HOSTILE, HOSTILE)
    async with visiting(browser, report_of(job, at_work=False)) as one:
        await expect(one.tab.locator("#lanes .who").nth(1)).to_have_text(HOSTILE)
        await expect(one.tab.locator("section.banner h2")).to_contain_text(HOSTILE)
        assert await one.tab.locator("img").count() == 0


async def test_the_policy_lets_nothing_else_run(browser: Browser, tmp_path: Path) -> None:
    address = report_of(STATES["paused"](tmp_path), at_work=False)
    async with visiting(browser, address) as one:
        tried = """() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'hijacked'";
            document.body.append(script);
            return fetch("http://127.0.0.1:9/").then(() => "went out", () => "kept in");
        }"""
        assert await one.tab.evaluate(tried) == "kept in"
        assert "hijacked" not in await one.tab.title()
        assert all("Content Security Policy" in said for said in one.complaints)
        assert len(one.complaints) >= 2
        one.complaints.clear()


# --- a real job ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with Processes(tmp_path_factory.mktemp("processes")) as running:
        running.start_peers("otter", "heron", "lynx")
        yield running


class Submitted:
    """`axon submit`, whose lines are read as they come."""

    def __init__(self, person: Person, *words: str) -> None:
        self._process = person.begin("submit", *words)
        self.lines: list[str] = []

    async def line(self, begins: str) -> str:
        """The rest of the first line that begins so."""
        return await asyncio.to_thread(self._until, lambda text: text.startswith(begins))

    async def end(self) -> int:
        await asyncio.to_thread(self._until, lambda text: False)
        return self._process.wait(60)

    def _until(self, wanted: Callable[[str], bool]) -> str:
        assert self._process.stdout
        for text in self._process.stdout:
            self.lines.append(text.rstrip())
            if wanted(text):
                return text.rstrip()
        return ""

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.sandbox
@pytest.mark.timeout(400)
@pytest.mark.skipif(bool(no_sandbox), reason=no_sandbox or "a sandbox can be had")
async def test_a_real_job_is_seen_while_it_runs_and_afterwards(
    browser: Browser, processes: Processes, tmp_path: Path
) -> None:
    person = Person(tmp_path)
    write_job(tmp_path / "line", peers=3, rounds=14, pause=0.15)
    submitted = Submitted(person, "line", "--tracker", processes.tracker, "--tensorboard", "runs")
    try:
        address = (await submitted.line("page ")).split()[-1]
        async with visiting(browser, address) as one:
            one.server_ends = True
            word = one.tab.locator("#word")
            rows = one.tab.locator("#rounds-rows tbody tr[data-x]")
            await expect(word).to_have_text("RUNNING", timeout=WAIT_MS)
            await expect(rows).not_to_have_count(0, timeout=WAIT_MS)
            await expect(one.tab.locator("#lanes .strip")).to_have_count(3)
            processes.kill("lynx")
            await expect(one.tab.get_by_role("heading", name="lynx is gone")).to_be_visible(timeout=WAIT_MS)
            await expect(word).to_have_text("FINISHED", timeout=3 * WAIT_MS)  # all rounds that are left
            assert await submitted.end() == 0
            await expect(one.tab.get_by_role("alert")).to_be_hidden()
            live = await rows.all_text_contents()
            assert len(live) == 14
            root = address.rsplit("/", 2)[0]
            assert all(url.startswith((root, "data:")) for url in one.asked)
    finally:
        submitted.kill()

    folder = JobStore(person.home).records()[0]
    report = person.home / "jobs" / folder.id / "report.html"
    assert f"report   {report}" in submitted.lines
    async with visiting(browser, report.as_uri(), offline=True) as one:
        await expect(one.tab.locator("#word")).to_have_text("FINISHED")
        assert await one.tab.locator("#rounds-rows tbody tr[data-x]").all_text_contents() == live
        assert await one.tab.locator("#lanes .look.train").count() > 14
        assert await one.tab.locator("#lanes .look.lost").count() > 0
        await expect(one.tab.locator("#map .spot")).to_have_count(2)

    assert list((tmp_path / "runs" / folder.id).glob("events.out.tfevents.*"))
    told = person.run("watch", folder.id).stdout
    assert "round=14/14 loss=" in told
    assert f"{folder.id} FINISHED" in told
    answer = person.ask("report", folder.id, "--out", "again.html")
    assert "FINISHED" in (tmp_path / answer["report"]).read_text()


@pytest.mark.sandbox
@pytest.mark.skipif(bool(no_sandbox), reason=no_sandbox or "a sandbox can be had")
async def test_a_job_whose_program_is_killed_is_seen_from_another_terminal(
    browser: Browser, processes: Processes, tmp_path: Path
) -> None:
    person = Person(tmp_path)
    write_job(tmp_path / "line", peers=2, rounds=200, pause=0.1)
    submitted = Submitted(person, "line", "--tracker", processes.tracker, "--page", "")
    watching: ReadProgram | None = None
    try:
        await submitted.line("round=2/200")
        assert not any(line.startswith("page") for line in submitted.lines)
        watching = person.begin("watch", "line")
        assert watching.stdout
        address = (await asyncio.to_thread(watching.stdout.readline)).split()[-1]
        async with visiting(browser, address) as one:
            one.server_ends = True
            await expect(one.tab.locator("#word")).to_have_text("RUNNING", timeout=WAIT_MS)
            submitted.kill()
            await expect(one.tab.locator("#word")).to_have_text("INTERRUPTED", timeout=WAIT_MS)
            await expect(one.tab.locator("section.banner code")).to_contain_text("axon resume line-")
        rest = await asyncio.to_thread(watching.stdout.read)
        assert "INTERRUPTED" in rest
    finally:
        submitted.kill()
        if watching:
            watching.kill()
            watching.wait()
