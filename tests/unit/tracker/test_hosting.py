"""A tracker as a host of jobs: it says what it offers, answers on sessions, and may be told to host none."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from axonp2p.errors import SettingsError
from axonp2p.hosting.caller import HostLine, ask_offer
from axonp2p.hosting.host import Host
from axonp2p.settings import TrackerSettings
from axonp2p.transport.http_caller import HttpCaller
from tests.fakes import ManualClock, key_of
from tests.unit.tracker.conftest import Running
from tracker.app import Tracker


async def test_it_hosts_beside_its_other_work(lab: Running) -> None:
    offer = await ask_offer(lab.caller)
    assert (offer.host, offer.jobs, offer.free) == (lab.tracker.key.peer_id, 4, 4)
    async with await HostLine.open(key_of("ada"), Host(lab.address, offer.host)) as line:
        assert await line.jobs() == []
        assert await line.jobs() == []  # a session is for many questions
    assert "axon_hosted_jobs 0.0" in (await lab.caller.fetch("/metrics", 10**6)).decode()


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
