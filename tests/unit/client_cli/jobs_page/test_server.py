"""The page of all jobs as it is served: whom it answers, what it says, and each job's page below it."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from axonp2p.client.storage.job_store import JobStore
from axonp2p.errors import PortTaken
from client_cli.jobs_page import server
from client_cli.jobs_page.server import JobsPage
from tests.laboratory import paper_home
from tests.laboratory.paper_home import DAMAGED, FAILED, FINISHED, RUNNING
from tests.laboratory.paper_job import PaperJob


def command(*words: str) -> str:
    return " ".join(["axon", *words])


@pytest.fixture
def running(tmp_path: Path) -> PaperJob:
    return paper_home.all_of(tmp_path)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[JobsPage]:
    one = JobsPage(tmp_path, command, 0)
    yield one
    await one.close()


@pytest.fixture
async def address(page: JobsPage) -> str:
    return await page.start()


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def text_of(browser: aiohttp.ClientSession, address: str, status: int = 200) -> str:
    async with browser.get(address) as answer:
        assert answer.status == status
        return await answer.text()


async def test_all_jobs_are_on_it(browser: aiohttp.ClientSession, address: str, running: PaperJob) -> None:
    with running.folder.held():
        async with browser.get(address) as answer:
            heads, text = answer.headers, await answer.text()
    assert answer.content_type == "text/html"
    assert "default-src 'none'" in heads["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in heads["Content-Security-Policy"]
    assert heads["X-Content-Type-Options"] == "nosniff"
    assert heads["Cache-Control"] == "no-store"
    assert "5 jobs: 1 running, 1 finished, 1 failed, 1 interrupted, 1 unreadable" in text
    places = [text.index(f'id="row-{job}"') for job in (RUNNING, DAMAGED, FINISHED, FAILED)]
    assert places == sorted(places)
    assert f'href="job/{FINISHED}/"' in text
    assert f'href="job/{DAMAGED}/"' not in text
    assert "13 / 20 rounds" in text


async def test_what_strangers_said_is_escaped(browser: aiohttp.ClientSession, address: str, running: PaperJob) -> None:
    text = await text_of(browser, address)
    assert "<img" not in text
    assert "&lt;img src=x onerror=" in text


async def test_an_empty_home_says_the_first_command(browser: aiohttp.ClientSession, address: str) -> None:
    assert "axon init my-job" in await text_of(browser, address)


async def test_each_job_has_its_own_page_below(browser: aiohttp.ClientSession, address: str, running: PaperJob) -> None:
    text = await text_of(browser, f"{address}job/{FINISHED}/")
    assert "FINISHED" in text
    assert 'href="../../">All jobs</a>' in text
    assert len((await text_of(browser, f"{address}job/{FINISHED}/rounds.csv")).splitlines()) == 21
    await text_of(browser, f"{address}job/{FINISHED}/passwd.csv", 404)
    async with browser.get(f"{address}job/{FINISHED}") as answer:  # without its last slash
        assert (answer.status, str(answer.url)) == (200, f"{address}job/{FINISHED}/")
    refused = await text_of(browser, f"{address}job/{DAMAGED}/", 500)
    assert "cannot be read" in refused


@pytest.mark.parametrize(
    "job", ["none-0000", "digits", "..", "%2e%2e", "..%2F..", "%2Fetc", ".", "a%00b", "%ff", "x" * 300, "%F0%9F%92%A9"]
)
async def test_what_is_no_job_is_not_found(
    browser: aiohttp.ClientSession, address: str, running: PaperJob, job: str
) -> None:
    for more in ("", "events", "rounds.csv"):
        await text_of_raw(browser, f"{address}job/{job}/{more}", 404)


async def text_of_raw(browser: aiohttp.ClientSession, address: str, status: int) -> None:
    """As it is written: nothing of it is resolved on the way."""
    from yarl import URL

    async with browser.get(URL(address, encoded=True)) as answer:
        assert answer.status == status


@pytest.mark.parametrize("path", ["", "events", f"job/{FINISHED}/", f"x/job/{FINISHED}/"])
async def test_without_the_secret_nothing_is_there(
    browser: aiohttp.ClientSession, address: str, running: PaperJob, path: str
) -> None:
    await text_of(browser, f"{address.rsplit('/', 2)[0]}/{path}", 404)


@pytest.mark.parametrize(
    "heads",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_another_site_gets_nothing(
    browser: aiohttp.ClientSession, address: str, running: PaperJob, heads: dict[str, str]
) -> None:
    for path in ("", "events", f"job/{FINISHED}/", f"job/{FINISHED}/events", f"job/{FINISHED}/rounds.csv"):
        async with browser.get(address + path, headers=heads) as answer:
            assert answer.status == 403
            assert "digits" not in await answer.text()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_it_takes_no_orders(browser: aiohttp.ClientSession, address: str, running: PaperJob, method: str) -> None:
    for path in ("", f"job/{FINISHED}/"):
        async with browser.request(method, address + path) as answer:
            assert answer.status == 405


async def test_a_list_that_is_long_has_pages(
    browser: aiohttp.ClientSession, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("client_cli.jobs_page.listed.ROWS", 2)
    record = paper_home.finished(tmp_path).folder.read()
    for number in range(4):
        JobStore(tmp_path).create(msgspec.structs.replace(record, id=f"old-{number}", created=record.created - number))
    first = await text_of(browser, address)
    assert "page 1 of 3" in first
    assert 'href="?page=2">Older' in first
    assert "Newer" not in first
    last = await text_of(browser, f"{address}?page=3")
    assert ('id="row-old-3"' in last, 'id="row-old-1"' in last) == (True, False)
    assert "Older" not in last
    assert await text_of(browser, f"{address}?page=99") != first


async def test_news_reach_the_list_and_a_job(
    browser: aiohttp.ClientSession, address: str, running: PaperJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in ("", f"job/{RUNNING}/"):
        done = running.journal.record.round
        with running.folder.held():
            async with browser.get(f"{address}{where}events") as line:
                assert await _next_event(line) == "changed"
                running.train(1)
                while f"{done + 1} / 20 rounds" not in await text_of(browser, address + where):
                    assert await _next_event(line) == "changed"
    shutil.rmtree(running.folder.path)
    assert RUNNING not in await text_of(browser, address)
    await text_of(browser, f"{address}job/{RUNNING}/", 404)


async def _next_event(line: aiohttp.ClientResponse) -> str:
    async with asyncio.timeout(10):
        while True:
            text = (await line.content.readline()).decode()
            if text.startswith("event:"):
                return text.partition(":")[2].strip()


async def test_only_so_many_jobs_are_kept_read(
    browser: aiohttp.ClientSession, page: JobsPage, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_JOBS", 2)
    names = [paper_home.copies(tmp_path, f"sums-{number}").path.name for number in range(4)]
    async with browser.get(f"{address}job/{names[0]}/events") as line:  # an open tab keeps its own
        assert await _next_event(line) == "changed"
        for name in names:
            await text_of(browser, f"{address}job/{name}/")
        assert list(page._jobs) == [names[0], names[3]]


async def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = JobsPage(tmp_path, command, taken.getsockname()[1])
        with pytest.raises(PortTaken, match="is taken") as error:
            await page.start()
        assert error.value.fix.startswith("--port 0 ")
