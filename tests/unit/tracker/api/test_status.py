"""What `axon-tracker status` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from axonp2p.errors import MalformedMessage, NotFound, TrackerUnreachable
from axonp2p.transport.address import PinnedAddress
from tests.unit.tracker.conftest import Running, Start
from tracker.api.status import OtherState, TrackerStatus, ask_status, print_status, status_lines


def other(**changes: Any) -> OtherState:
    usual: dict[str, Any] = {
        "address": "https://10.0.0.1:7070#abc",
        "tracker": "b" * 52,
        "standing": "configured",
        "lives": True,
        "failures": 0,
        "answered_s_ago": 0.5,
        "lag_s": 0.31,
        "equal_s_ago": 3.2,
        "fetched": 7,
        "pushed": 80,
        "log": "12 entries",
        "bytes_sent": 9300,
        "bytes_received": 410,
    }
    return OtherState(**(usual | changes))


def status_of(*others: OtherState) -> TrackerStatus:
    return TrackerStatus(
        tracker="a" * 52, address="https://10.0.0.9:7070#x", alive=3, rows=5, time=0, trackers=list(others)
    )


def test_each_other_tracker_has_a_line_with_its_lag():
    away = other(address="https://10.0.0.2:7070#abc", lives=False, answered_s_ago=75.0, lag_s=None, equal_s_ago=None)
    lines = status_lines(status_of(other(), away))
    assert lines[1] == "peers 3  rows 5  trackers 1 of 2 up"
    assert " ".join(lines[3].split()) == "bbbbbbbb 10.0.0.1:7070 up 0.3 s 3 s ago 7 80 9.3 kB 0.4 kB 12 entries"
    assert "away for 75 s  -      never" in lines[4]


def test_one_that_never_answered_has_no_name():
    line = status_lines(status_of(other(tracker="", lives=False, answered_s_ago=None)))[3]
    assert line.startswith("? ")
    assert "never answered" in line


def test_a_tracker_that_is_alone_is_told_what_to_do():
    assert "--tracker" in status_lines(status_of())[-1]


async def test_a_running_tracker_tells_its_status(lab: Running):
    status = await ask_status(lab.address)
    assert (status.tracker, status.alive, status.trackers) == (lab.tracker.key.peer_id, 0, [])


async def test_a_tracker_that_is_gone_is_unreachable(start: Start):
    lab = await start()
    await lab.stop()
    with pytest.raises(TrackerUnreachable):
        await ask_status(lab.address)


async def test_another_program_there_is_no_tracker(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.api.status.STATUS_PATH", "/v1/trackers")
    with pytest.raises(MalformedMessage, match="does not tell its status"):
        await ask_status(PinnedAddress.parse(str(lab.address)))


def test_a_home_where_no_tracker_runs(tmp_path: Path):
    with pytest.raises(NotFound, match="no tracker runs"):
        print_status(tmp_path, as_json=False)
