"""The status page in a real browser: each state as its owner sees it, orders by mouse and keyboard, refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="no playwright here: pip install 'axonp2p[browser]'")

from playwright.async_api import Browser, Page, expect

from peer_daemon.page.app import StatusPage
from peer_daemon.page.token import TOKEN_FILE, page_address
from tests.laboratory.browsers import CHROMIUM, NO_CHROMIUM
from tests.laboratory.paper_steering import NOON, STATES, PaperSteering

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
]

PHONE = {"width": 390, "height": 844}


@dataclass
class Visit:
    """An open tab, the daemon behind it, and what the browser complained of."""

    tab: Page
    steering: PaperSteering
    served: StatusPage
    address: str
    token_file: Path
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def focused(self) -> str:
        """The id of what the keyboard speaks to."""
        found: str = await self.tab.evaluate("document.activeElement.id")
        return found

    async def tab_to(self, wanted: Callable[[str], bool]) -> None:
        """Press Tab until there."""
        for _ in range(40):
            await self.tab.keyboard.press("Tab")
            if wanted(await self.focused()):
                return
        raise AssertionError("Tab does not lead there")


Open = Callable[..., Any]


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Open:
    """`async with visit(state, ...)`: the page of a daemon in that state; no complaint of the browser's may be left."""

    @asynccontextmanager
    async def open_it(state: str, *, token: bool = True, **context: Any) -> AsyncIterator[Visit]:
        steering = PaperSteering(STATES[state])
        served = StatusPage(steering, "127.0.0.1:0", tmp_path / TOKEN_FILE)
        await served.start()
        address = page_address(tmp_path)
        own = await browser.new_context(timezone_id="UTC", **context)
        tab = await own.new_page()
        one = Visit(tab, steering, served, address, tmp_path / TOKEN_FILE)
        tab.on("console", lambda said: one.complaints.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: one.complaints.append(str(error)))
        tab.on("request", lambda request: one.asked.append(request.url))
        try:
            await tab.goto(address if token else address.partition("#")[0])
            yield one
        finally:
            await own.close()
            await one.served.stop()
        assert one.complaints == []

    return open_it


def sentence(state: str) -> str:
    return STATES[state].sentence.partition("; to fix it: ")[0]


@pytest.mark.parametrize(
    ("state", "word", "banner"),
    [
        ("training", "TRAINING", None),
        ("waiting", "WAITING", None),
        ("paused", "PAUSED", None),
        ("battery", "WAITING", None),
        ("refused", "CANNOT WORK", "No sandbox: this computer cannot run jobs"),
        ("unreachable", "READY", "Unreachable: others cannot call this computer"),
        ("ready", "READY", None),
        ("finishing", "FINISHING", None),
    ],
)
async def test_a_glance_tells_each_state(visit: Open, state: str, word: str, banner: str | None) -> None:
    async with visit(state) as one:
        await expect(one.tab).to_have_title(f"{word} - otter")
        await expect(one.tab.get_by_role("heading", name=word, exact=True)).to_be_visible()
        await expect(one.tab.locator(".why")).to_have_text(sentence(state))
        await expect(one.tab.locator("#chart canvas")).to_be_visible()
        await expect(one.tab.get_by_role("alert")).to_be_hidden()
        found = one.tab.locator("section.banner h2")
        await expect(found).to_have_text([banner] if banner else [])


async def test_what_nobody_can_find_says_so_before_all_else(visit: Open) -> None:
    async with visit("not findable") as one:
        await expect(one.tab.get_by_role("heading", name="NOT FINDABLE", exact=True)).to_be_visible()
        await expect(one.tab.locator(".why")).to_contain_text("nobody can send it work")
        await expect(one.tab.locator("section.banner h2")).to_have_count(1)


@pytest.mark.parametrize("state", STATES)
async def test_on_a_phone_nothing_is_wider_than_the_screen(visit: Open, state: str) -> None:
    async with visit(state, viewport=PHONE, has_touch=True, color_scheme="light") as one:
        await expect(one.tab.locator("#chart canvas")).to_be_visible()
        for table in ("#days-table", "#day-table"):
            await one.tab.locator(f"{table} summary").tap()
        wide = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        beyond = "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > 391).length"

        async def fits() -> None:
            await expect(one.tab.locator("#chart canvas")).to_be_visible()
            scrolled, seen = await one.tab.evaluate(wide)
            assert scrolled <= seen == PHONE["width"]
            assert await one.tab.evaluate(beyond) == 0
            await one.tab.locator(".stretch.paused").first.tap()
            await expect(one.tab.locator("#read")).to_contain_text("paused by you until 19:54")

        await fits()
        await one.tab.emulate_media(color_scheme="dark")
        await fits()


async def test_who_wants_it_dark_gets_it_dark_and_who_wants_it_still_gets_it_still(visit: Open) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    moves = "getComputedStyle(document.querySelector('#word .sign')).animationName"
    async with visit("training", color_scheme="light") as one:
        assert await one.tab.evaluate(ground) == "rgb(238, 241, 244)"
        assert await one.tab.evaluate(moves) == "breathe"
        await one.tab.emulate_media(color_scheme="dark", reduced_motion="reduce")
        assert await one.tab.evaluate(ground) == "rgb(13, 17, 23)"
        assert await one.tab.evaluate(moves) == "none"


async def test_a_pause_is_one_click_and_the_page_follows(visit: Open) -> None:
    async with visit("training") as one:
        await one.tab.get_by_role("button", name="Pause for 1 h").click()
        await expect(one.tab).to_have_title("PAUSED - otter")
        await expect(one.tab.locator(".since")).to_contain_text("until 13:00")
        await expect(one.tab.get_by_role("button", name="Finish")).to_have_count(0)
        assert one.steering.ordered == ["pause 3600.0"]
        await one.tab.get_by_role("button", name="Resume", exact=True).click()
        await expect(one.tab).to_have_title("READY - otter")
        await one.tab.get_by_role("button", name="Stop").click()
        await expect(one.tab).to_have_title("PAUSED - otter")
        assert one.steering.ordered[1:] == ["resume", "pause None"]


async def test_what_happens_elsewhere_is_seen_without_asking(visit: Open) -> None:
    async with visit("training") as one:
        await one.steering.turn("elsewhere", state="waiting", why="battery", sentence="on battery (41 %)", since=NOON)
        await expect(one.tab).to_have_title("WAITING - otter")
        await expect(one.tab.locator(".why")).to_have_text("on battery (41 %)")
        await expect(one.tab.locator("#said")).to_have_text("WAITING: on battery (41 %)")
        assert (await one.tab.locator("#icon").get_attribute("href")) == "/icon/waiting.svg"


async def test_everything_goes_by_keyboard_and_the_focus_is_never_lost(visit: Open) -> None:
    async with visit("training") as one:
        press = one.tab.keyboard.press
        await press("Tab")
        await expect(one.tab.locator(":focus")).to_have_text("To the content")
        await one.tab_to(lambda at: at == "finish")
        await press("Enter")
        await expect(one.tab).to_have_title("FINISHING - otter")
        await expect(one.tab.locator(":focus")).to_have_id("resume")
        await press("Space")
        await expect(one.tab).to_have_title("READY - otter")
        await expect(one.tab.locator(":focus")).to_have_id("pause-900")
        await one.tab_to(lambda at: at.startswith("stretch-"))
        last = await one.tab.locator("#read").text_content()
        await press("ArrowLeft")
        await expect(one.tab.locator("#read")).to_contain_text("no job wants this machine now")
        assert await one.tab.locator("#read").text_content() != last
        await press("Home")
        await expect(one.tab.locator("#read")).to_contain_text("12:00 to 13:24")
        await one.tab_to(lambda at: at == "others_cpu")
        await one.tab.keyboard.insert_text("40")
        await press("Enter")
        await expect(one.tab.locator("#saved")).to_have_text("Saved.")
        assert one.steering.ordered == ["finish", "resume", "limits {'others_cpu': 40}"]


async def test_limits_that_cannot_be_are_explained_and_stay_in_the_field(visit: Open) -> None:
    async with visit("ready") as one:
        cores = one.tab.get_by_label("Cores for each job", exact=True)
        await cores.evaluate("field => field.max = 99")
        await cores.fill("9")
        await one.steering.turn("elsewhere", sentence="something else")
        await expect(one.tab.locator(".why")).to_have_text("something else")
        await one.tab.get_by_role("button", name="Save limits").click()
        await expect(one.tab.locator("#saved")).to_have_text("cores: this machine has 4. Mend it: cores = 4")
        await expect(cores).to_have_value("9")
        await cores.fill("3")
        await one.tab.get_by_role("textbox", name="Hours").fill("Mon-Fri 18:00-08:00\nSat,Sun\n")
        await one.tab.get_by_label("Work on battery").check()
        await one.tab.get_by_role("button", name="Save limits").click()
        await expect(one.tab.locator("#saved")).to_have_text("Saved.")
        assert one.steering.sheet.limits.cores == 3
        assert one.steering.sheet.limits.hours == ["Mon-Fri 18:00-08:00", "Sat,Sun"]
        assert one.steering.sheet.limits.on_battery
        # The daemon's own complaint about the first try; browsers write every refusal down.
        assert len(one.complaints) == 1
        one.complaints.clear()


async def test_without_the_token_it_only_shows(visit: Open) -> None:
    async with visit("training", token=False) as one:
        await expect(one.tab.get_by_text("This page only shows.")).to_be_visible()
        for button in await one.tab.get_by_role("button").all():
            await expect(button).to_be_disabled()
        await expect(one.tab.get_by_label("Cores for each job", exact=True)).to_be_disabled()


async def test_a_wrong_token_is_refused_and_forgotten(visit: Open) -> None:
    async with visit("training", token=False) as one:
        await one.tab.goto(f"{one.address.partition('#')[0]}#token={'0' * 64}")
        await expect(one.tab).to_have_url(one.address.partition("#")[0])
        await one.tab.get_by_role("button", name="Pause for 15 min").click()
        await expect(one.tab.locator("#answer")).to_contain_text("only who holds the token may change something")
        await expect(one.tab.get_by_role("button", name="Pause for 15 min")).to_be_disabled()
        assert one.steering.ordered == []
        assert all("403" in said for said in one.complaints)
        one.complaints.clear()


async def test_another_sites_page_orders_and_reads_nothing(visit: Open, browser: Browser) -> None:
    async with visit("training") as one:
        own, token = one.address.split("#token=")
        await one.tab.goto("about:blank")
        asked = """async ([url, token]) => {
            const plain = { method: "POST", body: "{}" };
            const tries = [
                fetch(url + "api/pause", { ...plain, mode: "no-cors" }),
                fetch(url + "api/pause", { ...plain, headers: { "X-Axon-Token": token } }),
                fetch(url + "api/status"),
            ];
            return (await Promise.allSettled(tries)).map((one) => one.value ? one.value.type : "refused");
        }"""
        assert await one.tab.evaluate(asked, [own, token]) == ["refused", "refused", "refused"]
        assert one.steering.ordered == []
        one.complaints.clear()


async def test_without_a_script_it_is_a_whole_picture_of_the_moment(visit: Open) -> None:
    async with visit("training", java_script_enabled=False) as one:
        await expect(one.tab.locator(".why")).to_have_text(sentence("training"))
        await expect(one.tab.get_by_text("this page is a snapshot")).to_be_visible()
        await expect(one.tab.locator(".stretch")).to_have_count(14)
        await expect(one.tab.get_by_role("button", name="Stop")).to_be_disabled()
        await one.tab.locator("#days-table summary").click()
        await expect(one.tab.locator("#days tbody tr")).to_have_count(30)


async def test_it_is_light_and_asks_nobody_else(visit: Open) -> None:
    async with visit("training") as one:
        await expect(one.tab.locator("#chart canvas")).to_be_visible()
        own = one.address.partition("#")[0]
        assert all(url.startswith(own) for url in one.asked)
        first = [url.removeprefix(own) for url in dict.fromkeys(one.asked)]
        assert len(first) <= 8, first
        sizes = [
            len(await (await one.tab.request.get(url)).body())
            for url in dict.fromkeys(one.asked)
            if "events" not in url
        ]
        assert sum(sizes) <= 120_000, sizes


async def test_a_daemon_that_went_away_is_missed_and_found_again(visit: Open) -> None:
    async with visit("training") as one:
        await expect(one.tab.locator("#chart canvas")).to_be_visible()
        port = one.address.partition("#")[0].rpartition(":")[2].strip("/")
        await one.served.stop()
        await expect(one.tab.get_by_role("alert")).to_contain_text("No answer from the peer", timeout=20_000)
        await expect(one.tab).to_have_title("? - otter")
        await expect(one.tab.get_by_role("button", name="Stop")).to_be_disabled()
        one.served = StatusPage(one.steering, f"127.0.0.1:{port}", one.token_file)
        await one.served.start()
        await expect(one.tab.get_by_role("alert")).to_be_hidden(timeout=20_000)
        await expect(one.tab.get_by_role("button", name="Stop")).to_be_enabled()
        await one.served.stop()
        one.complaints.clear()
