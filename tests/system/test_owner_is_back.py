"""A real job on a machine whose owner comes back: it stands still, goes on, is handed back, and never fails for it."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from axonp2p.errors import AxonError
from axonp2p.sandbox.child import why_no_sandbox
from peer_daemon.control import caller
from peer_daemon.control.status import Status
from tests.laboratory.fork_server import ReadProgram
from tests.system.person import Person
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

PATIENCE_S = 90.0


def ask(home: Path) -> Status:
    return asyncio.run(caller.ask_status(home))


def until(home: Path, what: Callable[[Status], bool], why: str) -> Status:
    """The first status of which that holds."""
    began, status = time.monotonic(), None
    while time.monotonic() - began < PATIENCE_S:
        try:
            status = ask(home)
            if what(status):
                return status
        except AxonError:
            pass  # it has only just begun
        time.sleep(0.1)
    raise AssertionError(f"{why}: {status}")


def events_of(person: Person) -> list[dict[str, Any]]:
    import json

    file = next(person.home.glob("**/events.jsonl"))
    return [json.loads(line) for line in file.read_text().splitlines()]


def named(events: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [each for each in events if each["event"] == event]


def worker_seconds(daemon: int) -> float:
    return sum(
        sum(child.cpu_times()[:2])
        for child in psutil.Process(daemon).children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE
    )


@pytest.fixture
def person(tmp_path):
    (tmp_path / "person").mkdir()
    return Person(tmp_path / "person")


def submit(person: Person, processes: Processes) -> ReadProgram:
    return person.begin("submit", "line", "--tracker", processes.tracker)


def finished(job: ReadProgram) -> str:
    said, _ = job.communicate(timeout=200)
    assert job.returncode == 0, said
    return said


def test_while_the_owners_program_runs_the_job_stands_still_and_then_goes_on(tmp_path, person):
    (tmp_path / "otter").mkdir()
    (tmp_path / "otter" / "config.toml").write_text('[peer]\nyield-to = ["axon-game"]\nhand-back-minutes = 30\n')
    game = shutil.copy(shutil.which("sleep"), tmp_path / "axon-game")
    write_job(person.folder / "line", peers=1, rounds=30, pause=0.05)
    home = tmp_path / "otter"
    with Processes(tmp_path) as processes:
        processes.start_peers("otter")
        job = submit(person, processes)
        until(home, lambda status: any(each.round >= 2 for each in status.jobs), "no round was done")
        with subprocess.Popen([game, "300"]) as playing:
            still = until(home, lambda status: status.state == "waiting", "it did not wait")
            assert still.sentence == "axon-game runs"
            assert [each.frozen for each in still.jobs] == [True]
            before = worker_seconds(processes.process("otter").pid)
            time.sleep(1.5)
            assert worker_seconds(processes.process("otter").pid) == before
            assert job.poll() is None
            playing.kill()
        until(home, lambda status: status.state == "training", "it did not go on")
        finished(job)
        (proved,) = until(home, lambda status: bool(status.ledger.logs), "no tracker proved anything").ledger.logs
        assert proved.tracker in processes.tracker
        assert proved.proved > 0
        assert proved.wrong == ""
        assert "Traceback" not in processes.output("otter")
    events = events_of(person)
    assert [each["reason"] for each in named(events, "peer_paused")] == [
        "a program that has the machine for itself runs"
    ]
    assert len(named(events, "peer_resumed")) == 1
    assert not named(events, "peer_lost")
    assert len(named(events, "round_finished")) == 30


def test_a_pause_hands_the_work_back_and_the_others_go_on(tmp_path, person):
    write_job(person.folder / "line", peers=2, rounds=20, pause=0.05)
    home = tmp_path / "otter"
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron")
        job = submit(person, processes)
        until(home, lambda status: any(each.round >= 2 for each in status.jobs), "no round was done")
        paused = asyncio.run(caller.pause(home, 7200))
        assert paused.state == "paused"
        assert paused.until == pytest.approx(time.time() + 7200, abs=60)
        until(home, lambda status: not status.jobs, "the job was not handed back")
        said = finished(job)
        assert "otter" in said
        resumed = asyncio.run(caller.resume(home))
        assert resumed.state in ("ready", "waiting")
        assert resumed.done.rounds >= 2
        told = asyncio.run(caller.ask_history(home, 0))
        assert [span.state for span in told.spans][-3:-1] == ["training", "paused"]
        assert {"job began", "job ended", "paused", "resumed"} <= {each.kind for each in told.happenings}
        assert not any("Traceback" in processes.output(name) for name in ("otter", "heron"))
    events = events_of(person)
    assert len(named(events, "round_finished")) == 20
    assert named(events, "job_finished")


def test_finish_ends_the_round_first(tmp_path, person):
    write_job(person.folder / "line", peers=2, rounds=20, pause=0.05)
    home = tmp_path / "otter"
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron")
        job = submit(person, processes)
        until(home, lambda status: any(each.round >= 2 for each in status.jobs), "no round was done")
        assert asyncio.run(caller.finish(home)).state == "finishing"
        assert until(home, lambda status: status.state == "paused", "it did not finish").jobs == []
        finished(job)
    events = events_of(person)
    assert len(named(events, "round_finished")) == 20
    assert not named(events, "round_redone")


@pytest.mark.parametrize("order", [caller.finish, lambda home: caller.pause(home, None)], ids=["finish", "pause"])
def test_the_only_machine_gives_the_state_before_it_goes_and_the_job_goes_on_another_time(tmp_path, person, order):
    write_job(person.folder / "line", peers=1, rounds=40, pause=0.05)
    home = tmp_path / "otter"
    with Processes(tmp_path) as processes:
        processes.start_peers("otter")
        job = submit(person, processes)
        until(home, lambda status: any(each.round >= 2 for each in status.jobs), "no round was done")
        asyncio.run(order(home))
        said, _ = job.communicate(timeout=200)
        assert job.returncode == 8, said
        assert "handed back: " in said
        (left,) = named(events_of(person), "job_paused")
        assert f"axon resume {left['job']}" in said
        assert left["round"] == len(named(events_of(person), "round_finished")) >= 2
        until(home, lambda status: status.state == "paused", "it did not finish")

        asyncio.run(caller.resume(home))
        until(home, lambda status: status.state == "ready", "it takes no work again")
        finished(person.begin("resume", left["job"], "--tracker", processes.tracker))
    assert len(named(events_of(person), "round_finished")) == 40


def sandboxes(daemon: int) -> set[int]:
    """Their first processes."""
    return {
        child.pid
        for child in psutil.Process(daemon).children(recursive=True)
        if child.name() == "bwrap" and child.status() != psutil.STATUS_ZOMBIE
    }


def test_a_worker_stands_by_for_the_job_and_goes_when_the_machine_is_wanted(tmp_path, person, monkeypatch):
    monkeypatch.setenv("AXON_PEER_STANDBY", "true")
    file = write_job(person.folder / "line", peers=1, rounds=10, pause=0.05) / "job.toml"
    file.write_text(re.sub(r"memory = .*", 'memory = "1100 MB"', file.read_text()))
    home = tmp_path / "otter"
    with Processes(tmp_path) as processes:
        processes.start_peers("otter")
        daemon = processes.process("otter").pid
        until(home, lambda status: status.machine.standby_mb > 100, "no worker has loaded torch")
        standing = sandboxes(daemon)
        job = submit(person, processes)
        at_work = until(home, lambda status: any(each.round >= 2 for each in status.jobs), "no round was done")
        assert at_work.machine.standby_mb == 0
        assert sandboxes(daemon) == standing
        finished(job)
        until(home, lambda status: status.machine.standby_mb > 100, "none stands by after the job")
        assert sandboxes(daemon).isdisjoint(standing)
        asyncio.run(caller.pause(home, None))
        until(home, lambda _: not sandboxes(daemon), "it holds memory that the owner wants")
        asyncio.run(caller.resume(home))
        until(home, lambda status: status.machine.standby_mb > 0, "none stands by after the pause")
        left = sandboxes(daemon)
        processes.kill("otter")
        psutil.wait_procs([psutil.Process(pid) for pid in left if psutil.pid_exists(pid)], timeout=10)
        assert not any(psutil.pid_exists(pid) for pid in left)
        assert "Traceback" not in processes.output("otter")
