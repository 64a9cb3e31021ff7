"""A tracker as a host of jobs: it says what it offers, answers on sessions, and may be told to host none."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.hosted.hosted_mark import read_mark
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.clock import SystemClock
from axonp2p.errors import JobFileWrong, NobodyFits, SettingsError
from axonp2p.hosting.caller import HostLine, ask_offer
from axonp2p.hosting.host import Host
from axonp2p.jobs.lifecycle import JobState
from axonp2p.settings import TrackerSettings
from axonp2p.transport.http.http_caller import HttpCaller
from tests.fakes import ManualClock, key_of
from tests.unit.tracker.conftest import Running, Start, until
from tracker.app import Tracker


async def test_it_hosts_beside_its_other_work(lab: Running) -> None:
    offer = await ask_offer(lab.caller)
    assert (offer.host, offer.jobs, offer.free) == (lab.tracker.key.peer_id, 4, 4)
    async with await HostLine.open(key_of("ada"), Host(lab.address, offer.host)) as line:
        assert await line.jobs() == []
        assert await line.jobs() == []  # a session is for many questions
    assert "axon_hosted_jobs 0.0" in lab.tracker.metrics.page()[0].decode()


async def test_its_operator_may_forbid_it(tmp_path: Path) -> None:
    settings = TrackerSettings(listen="127.0.0.1:0", hosted_jobs=0)
    tracker = Tracker(tmp_path, settings, ManualClock(), random.Random(1))
    address = await tracker.start()
    try:
        async with HttpCaller(address, called="tracker lab") as caller:
            offer = await ask_offer(caller)
            assert (offer.jobs, offer.free) == (0, 0)
    finally:
        await tracker.stop()


def test_limits_that_cannot_be_meant_are_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="hosted-days 0"):
        Tracker(tmp_path, TrackerSettings(hosted_days=0), ManualClock(), random.Random(1))


@pytest.mark.slow
async def test_a_job_that_nobody_fits_fails_there_and_is_told_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is real but the peers, of which there are none."""
    monkeypatch.setenv("AXON_CLIENT_LAN", "false")
    monkeypatch.setenv("AXON_CLIENT_DHT", "false")
    source = tmp_path / "line"
    source.mkdir()
    (source / "task.py").write_text("class Task: pass\n")
    (source / "job.toml").write_text('name = "line"\n[need]\npeers = 2\nwait = 0\n')
    home = tmp_path / "tracker"
    home.mkdir()
    tracker = Tracker(home, TrackerSettings(listen="127.0.0.1:0"), SystemClock(), random.Random(1))
    address = await tracker.start()
    try:
        await asyncio.to_thread(_hand_over_and_follow, source, str(address), tmp_path / "home")
        assert tracker.hosting.running == 0
    finally:
        await tracker.stop()


async def test_a_job_whose_own_function_compares_results_is_not_handed_over(lab: Running, tmp_path: Path) -> None:
    source = tmp_path / "bag"
    source.mkdir()
    for name in ("work.py", "compare.py"):
        (source / name).write_text("def work(item): return item\n")
    lines = ['name = "bag"', 'kind = "map"', "[map]", 'fn = "work.py:work"', "items = 3", 'agree = "compare.py:work"']
    (source / "job.toml").write_text("\n".join(lines))

    def hand_over() -> None:
        with axonp2p.Swarm([str(lab.address)], home=tmp_path / "home") as swarm:
            swarm.hand_over(source)

    with pytest.raises(JobFileWrong, match=r"compare\.py:work.*no stranger's code"):
        await asyncio.to_thread(hand_over)
    assert not list((tmp_path / "home" / "jobs").iterdir()), "nothing is left of it"


async def test_it_copies_from_trackers_of_its_settings_alone(lab: Running, start: Start, tmp_path: Path) -> None:
    second = await start(tmp_path / "second", lab.clock, trackers=[str(lab.address)])
    known, stranger = lab.tracker.key.peer_id, second.tracker.key.peer_id
    await until(lambda: second.tracker.hosting.copies.find_host(known))
    assert second.tracker.hosting.copies.find_host(known) == Host(lab.address, known)
    assert lab.tracker.hosting.copies.find_host(stranger) is None  # it only introduced itself


def _hand_over_and_follow(source: Path, tracker: str, home: Path) -> None:
    with axonp2p.Swarm([tracker], home=home) as swarm:
        handed = swarm.hand_over(source, peers=1)
        mark = read_mark(JobFolder(handed.folder))
        assert mark is not None
        assert (mark.standby, mark.without_copy) == (None, "no other tracker is known")
        job = swarm.attach(handed.id)
        with pytest.raises(NobodyFits):
            job.wait(30)
        assert job.record.state is JobState.FAILED
        assert job.record.peers_wanted == 1
        assert job.record.folder == str(source)
        job.cancel()
        assert swarm.look_at_host(job.id).at_work is False
        assert job.record.state is JobState.CANCELLED
        assert swarm.find_hosted() == []
