"""The page as it is served: whom it answers, what it says, that it hears of news, and what stands beside a job."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from axonp2p.client.events.events import PeerResumed
from axonp2p.client.storage.event_feed import EventTail
from axonp2p.errors import JobFailed, PortTaken, SettingsError
from axonp2p.loggers.values import LoggerChoice
from client_cli.report import live
from client_cli.report.beside import PageWishes, beside
from client_cli.report.document import Made
from client_cli.report.folder_view import FolderView
from client_cli.report.server import JobPage
from tests.laboratory.paper_job import STATES, PaperJob


def command(*words: str) -> str:
    return " ".join(["axon", *words])


@pytest.fixture
def job(tmp_path: Path) -> PaperJob:
    return STATES["running"](tmp_path)


@pytest.fixture
async def address(job: PaperJob) -> AsyncIterator[str]:
    page = JobPage(FolderView(job.folder, ours=True), command, "127.0.0.1:0")
    yield await page.start()
    await page.close()


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_who_knows_the_address_sees_the_page(browser: aiohttp.ClientSession, address: str) -> None:
    async with browser.get(address) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/html"
        assert "trains round 14 of 20 on 4 peers" in await answer.text()
        heads = answer.headers
    assert "default-src 'none'" in heads["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in heads["Content-Security-Policy"]
    assert heads["X-Content-Type-Options"] == "nosniff"
    assert heads["Cache-Control"] == "no-store"
    assert heads["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["", "events", "index.html", "x" * 16 + "/", "x" * 16 + "/events"])
async def test_without_the_secret_nothing_is_there(browser: aiohttp.ClientSession, address: str, path: str) -> None:
    root = address.rsplit("/", 2)[0]
    async with browser.get(f"{root}/{path}") as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    "heads",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_another_site_gets_nothing(browser: aiohttp.ClientSession, address: str, heads: dict[str, str]) -> None:
    for path in ("", "events", "rounds.csv"):
        async with browser.get(address + path, headers=heads) as answer:
            assert answer.status == 403
            assert "digits" not in await answer.text()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_it_takes_no_orders(browser: aiohttp.ClientSession, address: str, method: str) -> None:
    async with browser.request(method, address) as answer:
        assert answer.status == 405


async def test_the_numbers_can_be_kept(browser: aiohttp.ClientSession, address: str) -> None:
    async with browser.get(f"{address}rounds.csv") as answer:
        assert answer.content_type == "text/csv"
        assert len((await answer.text()).splitlines()) == 14
    async with browser.get(f"{address}passwd.csv") as answer:
        assert answer.status == 404


async def test_news_reach_an_open_page(browser: aiohttp.ClientSession, address: str, job: PaperJob) -> None:
    async with browser.get(f"{address}events") as line:
        first = await _next_event(line)
        assert first == "changed"
        job.train(1)
        while "trains round 15 of 20" not in await (await browser.get(address)).text():
            assert await _next_event(line) == "changed"


async def _next_event(line: aiohttp.ClientResponse) -> str:
    async with asyncio.timeout(10):
        while True:
            text = (await line.content.readline()).decode()
            if text.startswith("event:"):
                return text.partition(":")[2].strip()


async def test_an_open_page_sees_the_end_before_the_server_goes(
    browser: aiohttp.ClientSession, job: PaperJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LAST_LOOK_S", 30.0)
    page = JobPage(FolderView(job.folder, ours=True), command, "127.0.0.1:0")
    address = await page.start()
    async with browser.get(f"{address}events") as line:
        assert await _next_event(line) == "changed"
        job.train(7)
        job.finish()
        closing = asyncio.create_task(page.close())
        while await _next_event(line) != "over":
            pass
        assert "FINISHED" in await (await browser.get(address)).text()
        await closing
    with pytest.raises(aiohttp.ClientError):
        await browser.get(address)


async def test_a_look_that_began_before_the_end_is_not_taken_for_the_last_one(
    browser: aiohttp.ClientSession, job: PaperJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = JobPage(FolderView(job.folder, ours=True), command, "127.0.0.1:0")
    address = await page.start()
    monkeypatch.setattr(live, "LAST_LOOK_S", 30.0)
    making, made, make = asyncio.Event(), asyncio.Event(), page.job.make

    async def make_slowly() -> Made:
        found = await make()
        making.set()
        await made.wait()
        return found

    async with browser.get(f"{address}events") as line:
        assert await _next_event(line) == "changed"
        monkeypatch.setattr(page.job, "make", make_slowly)
        early = asyncio.create_task(browser.get(address))
        await making.wait()
        monkeypatch.setattr(page.job, "make", make)
        job.finish()
        closing = asyncio.create_task(page.close())
        while await _next_event(line) != "over":
            pass
        made.set()
        assert "FINISHED" not in await (await early).text()
        assert not closing.done()
        assert "FINISHED" in await (await browser.get(address)).text()
        await closing


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.org:80"])
def test_only_this_computer_may_look(job: PaperJob, listen: str) -> None:
    with pytest.raises(SettingsError, match="others can reach it"):
        JobPage(FolderView(job.folder, ours=True), command, listen)


async def test_a_taken_port_is_told(job: PaperJob) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = JobPage(FolderView(job.folder, ours=True), command, f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(PortTaken, match="is taken"):
            await page.start()


def test_a_line_that_is_not_whole_yet_waits(job: PaperJob) -> None:
    tail = EventTail(job.folder)
    assert len(list(tail.fresh())) == len(job.folder.read_events())
    with job.folder.events.open("ab") as file:
        file.write(b'{"event":"peer_resumed","peer":"ot')
        file.flush()
        assert list(tail.fresh()) == []
        file.write(b'ter","at":5}\n{"event":"unheard of"}\n')
        file.flush()
        assert list(tail.fresh()) == [PeerResumed(peer="otter", at=5)]
        assert list(tail.fresh()) == []


def test_whether_somebody_works_on_it_is_asked_of_the_lock(job: PaperJob) -> None:
    view = FolderView(job.folder, ours=False)
    with job.folder.held():
        assert view.look().at_work
    assert view.look().at_work  # as it was a moment ago
    view.ask_again()
    assert not view.look().at_work
    assert not FolderView(job.folder, ours=False).look().at_work
    assert FolderView(job.folder, ours=True).look().at_work


def test_however_a_job_ends_there_is_a_report(job: PaperJob, tmp_path: Path) -> None:
    said: list[str] = []
    wishes = PageWishes("127.0.0.1:0", (LoggerChoice("tensorboard", tmp_path / "runs"),))
    with pytest.raises(JobFailed), beside(job.folder, wishes, command, said.append) as hear:  # noqa: PT012
        for event in job.folder.read_events():
            hear(event)
        job.fail("AX-102", "no peer is left", "all were killed", "axon resume digits-7f3a")
        raise JobFailed("no peer is left")  # as `follow` does
    assert [line.split()[0] for line in said] == ["page", "TensorBoard", "report"]
    report = job.folder.report.read_text()
    assert "FAILED" in report
    assert "all were killed" in report
    assert list((tmp_path / "runs" / "digits-7f3a").iterdir())


def test_a_mistake_of_ours_does_not_hide_how_the_job_ended(job: PaperJob) -> None:
    job.folder.events.unlink()
    job.folder.events.mkdir()
    said: list[str] = []
    with pytest.raises(JobFailed), beside(job.folder, PageWishes(), command, said.append):
        raise JobFailed("no peer is left")
    assert said[0].startswith("warning: no report: a mistake in axon itself: IsADirectoryError")


def test_what_cannot_be_had_beside_a_job_does_not_harm_it(job: PaperJob, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    job.folder.report.mkdir()
    said: list[str] = []
    with beside(
        job.folder, PageWishes("0.0.0.0:80", (LoggerChoice("tensorboard", tmp_path / "runs"),)), command, said.append
    ) as hear:
        for event in job.folder.read_events():
            hear(event)
    assert [line.partition(":")[0] for line in said if line[:11] != "TensorBoard"] == ["warning"] * 3
