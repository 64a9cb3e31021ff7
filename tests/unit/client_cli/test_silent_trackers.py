"""A tracker that accepts and never answers, beside a good one: what looks at all of them goes on without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import axonp2p.client.hosted.hosts as hosts
import client_cli.doctor.probe as doctor
from axonp2p.client.hosted.hosts import FoundJobs
from axonp2p.clock import SystemClock
from tests.fakes import key_of
from tests.unit.tracker.conftest import Running, start_tracker

PIN = "a" * 52
LONG_S = 500.0


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """Its address."""

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}#{PIN}"
    server.close()


@pytest.fixture
async def good(tmp_path: Path) -> AsyncIterator[Running]:
    lab = await start_tracker(tmp_path / "tracker", SystemClock())  # type: ignore[arg-type]
    yield lab
    await lab.stop()


@pytest.mark.slow
async def test_the_doctor_names_it_and_does_not_wait_for_it(
    silent: str, good: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "TRACKER_WITHIN_S", LONG_S)
    async with asyncio.timeout(60):
        facts = await doctor.probe(tmp_path, [silent, str(good.address)], SystemClock())
    trouble = {tracker.name: tracker.trouble for tracker in facts.trackers}
    assert trouble[good.address.host_port] == ""
    assert "no answer within" in trouble[silent.partition("#")[0].removeprefix("https://")]


async def test_what_a_tracker_says_of_its_own_trouble_reaches_the_doctor(good: Running, tmp_path: Path) -> None:
    good.tracker._database.trouble = "database or disk is full"
    (tracker,) = (await doctor.probe(tmp_path, [str(good.address)], SystemClock())).trackers
    assert tracker.trouble == ""
    assert tracker.hindered == "it cannot store anything: database or disk is full"


@pytest.mark.slow
@pytest.mark.parametrize("all_of_them", [False, True])
async def test_jobs_at_hosts_are_listed_without_it_and_one_that_is_named_is_looked_for_everywhere(
    all_of_them: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def offer(line: Any) -> Any:
        if line.called == "silent":
            await asyncio.sleep(LONG_S)
        return SimpleNamespace(host=key_of("host").peer_id, free=1)

    async def ask(line: Any, asking: Any) -> Any:
        return await asking(line)

    async def nobody_there(key: Any, host: Any) -> Any:
        raise hosts.TrackerUnreachable("closed just now")

    monkeypatch.setattr(hosts, "WITHIN_S", 5.0 if all_of_them else LONG_S)
    monkeypatch.setattr(hosts, "ask_offer", offer)
    monkeypatch.setattr(hosts.HostLine, "open", nobody_there)
    lines = [SimpleNamespace(called=name, address=name) for name in ("silent", "good")]
    monkeypatch.setattr(hosts, "Host", lambda address, host: SimpleNamespace(called=address))
    trackers = SimpleNamespace(trusted=lambda: lines, ask=ask)
    means: Any = SimpleNamespace(key=None, table=SimpleNamespace(trackers=trackers))
    async with asyncio.timeout(60):
        found: FoundJobs = await hosts.find_jobs(means, all_of_them=all_of_them)
    assert [text.partition(":")[0] for text in found.silent] == ["silent", "good"]
