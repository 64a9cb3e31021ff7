"""Jobs as programs see them: a script that submits its class, events in a running loop and as JSON, Ctrl-C twice."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import axonp2p
from axonp2p.events import JobFinished, JobSubmitted, RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.person import Person
from tests.system.processes import Processes
from tests.system.small_job import TASK, write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

SCRIPT = Path(__file__).parent.parent.parent / "examples" / "script" / "two_moons.py"


def typed(processes: Processes, home: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    """The command line of the script, and its environment."""
    return [sys.executable, str(SCRIPT), "--tracker", processes.tracker, *words], {**os.environ, "AXON_HOME": str(home)}


def test_a_script_trains_its_own_class(processes: Processes, tmp_path: Path) -> None:
    words, environment = typed(processes, tmp_path / "home", "--rates", "0.3", "--rounds", "2")
    done = subprocess.run(words, capture_output=True, text=True, timeout=400, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    first, second, best = done.stdout.splitlines()  # no line of a log beside what the script prints
    assert first.startswith("rate 0.3, round 1 of 2: 0.")
    assert second.startswith("rate 0.3, round 2 of 2: 0.")
    assert best.startswith("best: rate 0.3 with ")
    with axonp2p.Swarm([processes.tracker], home=tmp_path / "home") as swarm:
        (record,) = swarm.jobs()
        assert (record.name, record.spec["train"]["rounds"], record.spec["need"]["peers"]) == ("two-moons", 2, 2)
        assert "'rate': 0.3" in (Path(record.folder) / "two_moons.py").read_text()
        # The copy is a job's folder like any other: whoever is told to submit it again can.
        again = swarm.submit(record.folder, peers=1, rounds=1)
        assert isinstance(again.wait(), JobFinished)


async def test_a_running_loop_goes_on_while_a_job_is_followed(processes: Processes, tmp_path: Path) -> None:
    """As in a notebook, whose loop also draws the page."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with axonp2p.Swarm([processes.tracker], home=tmp_path / "home") as swarm:
        job = swarm.submit(write_job(tmp_path / "line", peers=1, rounds=3, pause=0.02))
        seen = [event async for event in job.events()]
    ticking.cancel()
    assert isinstance(seen[0], JobSubmitted)
    assert isinstance(seen[-1], JobFinished)
    assert len([event for event in seen if isinstance(event, RoundFinished)]) == 3
    assert ticks > 20


def test_for_programs_each_event_is_a_line_and_the_last_one_is_the_outcome(
    processes: Processes, tmp_path: Path
) -> None:
    person = Person(tmp_path)
    write_job(tmp_path / "line", peers=2, rounds=5)
    words = ["--tracker", processes.tracker, "--set", "train.rounds=2", "--peers", "1", "--log", "tensorboard"]
    done = person.run("submit", "line", "--json-events", *words)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    first, last = told[0], told[-1]
    assert first["event"] == "job_submitted"
    assert Path(first["folder"]).name == first["job"]
    assert [event["round"] for event in told if event["event"] == "round_finished"] == [0, 1]
    assert (last["event"], last["job"], last["rounds"]) == ("job_finished", first["job"], 2)
    assert done.stderr == ""
    assert list((tmp_path / "runs" / first["job"]).iterdir())
    # What ran is what is kept, for whoever goes on with it or looks at it.
    assert person.ask("status", first["job"])["units"] == 2
    kept = (Path(first["folder"]) / "bundle" / "job.toml").read_text()
    assert "rounds = 2" in kept
    assert "peers = 1" in kept
    assert "rounds = 5" in (tmp_path / "line" / "job.toml").read_text()


def error_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])["error"]
    return told


def test_an_error_names_its_job_and_where_it_lies(processes: Processes, tmp_path: Path) -> None:
    person = Person(tmp_path)
    wrong = TASK.replace("inputs, wanted = batch", "inputs, wanted = batch\n        print(1 / 0)")
    write_job(tmp_path / "line", peers=1, rounds=2, task=wrong)
    words = ["submit", "line", "--tracker", processes.tracker]
    done = person.run(*words, "--json", code=1)
    error = error_of(done)
    assert error["code"] == "AX-102"
    assert Path(error["folder"]).name == error["job"]
    assert (Path(error["folder"]) / "job.json").exists()
    done = person.run(*words, "--json-events", code=1)
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["event"], last["code"]) == ("job_ended_badly", "AX-102")
    assert error_of(done)["job"] == last["job"]


def test_what_is_set_holds_for_a_job_that_a_tracker_carries_on(processes: Processes, tmp_path: Path) -> None:
    person = Person(tmp_path)
    task = TASK.replace("time.sleep(PAUSE)", 'open("/out/steps.txt", "a").write("one\\n")')
    write_job(tmp_path / "line", peers=2, rounds=5, task=task, train="loader-workers = 1\n")
    tracker = ["--tracker", processes.tracker]
    person.run("check", "line", "--set", "train.rounds=0", *tracker, code=9)
    handed = person.ask("submit", "line", "--detach", "--set", "train.rounds=2", "--peers", "1", *tracker)
    told = person.run("watch", handed["job"], "--json", *tracker).stdout.splitlines()
    assert json.loads(told[0])["rounds"] == 2
    assert json.loads(told[-1])["event"] == "job_finished"
    person.run("fetch", handed["job"], "-o", "out", *tracker)
    with (tmp_path / "out" / "metrics.csv").open() as file:
        assert [line["round"] for line in csv.DictReader(file)] == ["1", "2"]
    (written,) = (tmp_path / "out" / "out").glob("*/steps.txt")
    assert written.read_text().count("one") == 10, "what the task wrote into /out came home from the host"


def test_ctrl_c_twice_in_a_script_gives_the_slots_back(processes: Processes, tmp_path: Path) -> None:
    words, environment = typed(processes, tmp_path / "home", "--rounds", "100000")
    script = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert script.stdout is not None
    assert script.stdout.readline().startswith("rate 0.3, round 1 of 100000: ")
    script.send_signal(signal.SIGINT)
    script.send_signal(signal.SIGINT)
    _, told = script.communicate(timeout=120)
    assert script.returncode == 130, told
    (line,) = told.splitlines()
    assert line.startswith("interrupted: two-moons-")
    assert 'swarm.resume("two-moons-' in line
    with axonp2p.Swarm([processes.tracker], home=tmp_path / "home") as swarm:
        (record,) = swarm.jobs()
        assert record.state == "paused"
        assert not (swarm.job(record.id).folder / "leases.json").exists()
        # All slots are free at once: this job waits for none.
        job = swarm.submit(write_job(tmp_path / "next", peers=2, rounds=1, least=2))
        assert isinstance(job.wait(), JobFinished)
