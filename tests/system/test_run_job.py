"""One command in many copies on real peers: each index one result, whoever is killed or stands still meanwhile."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import Event, JobFinished, PeerLost
from axonp2p.client.job import Job
from axonp2p.errors import NobodyFits
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.run.events import CopyBegun, CopyEnded, CopyRetried, IndexFailed, OutputsKept, SpeculativeCopy
from axonp2p.kinds.run.record import RunRecord
from axonp2p.kinds.run.results import CopyResult, ResultsFile
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.test_never_lose_a_job import Client

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "run-sweep"
PEERS = ("heron", "lynx", "otter", "wren")
KILLS = 6

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(180),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with Processes(tmp_path_factory.mktemp("processes")) as running:
        running.start_peers(*PEERS)
        yield running


def write(folder: Path, program: str, *, copies: int = 8, peers: int = 4, lines: str = "") -> Path:
    """A job that runs this program; `lines` are more of its section."""
    folder.mkdir()
    (folder / "work.py").write_text(textwrap.dedent(program))
    (folder / "job.toml").write_text(
        textwrap.dedent(f"""
            name = "work"
            kind = "run"
            [need]
            peers = {peers}
            memory = "256 MB"
            max-rtt = "5 s"
            wait = "60 s"
            [run]
            command = "python work.py {{index}}"
            copies = {copies}
            outputs = ["*.txt"]
        """)
        + lines
    )
    return folder


SQUARE = """
    import os, pathlib, sys, time
    time.sleep(float(os.environ.get("PAUSE", "0")))
    index = int(sys.argv[1])
    pathlib.Path(os.environ["AXON_OUT"], "square.txt").write_text(str(index ** 2))
"""


def lines_of(folder: Path, copies: int = 8) -> dict[int, CopyResult]:
    """results.csv, which must have each index once."""
    lines, whole, _ = ResultsFile(folder / "results.csv", copies)._read()
    assert whole
    assert sorted(lines) == list(range(copies))
    return lines


def squares_are_there(folder: Path, copies: int = 8) -> None:
    """Every index has its result, once, with its file."""
    lines_of(folder, copies)
    for index in range(copies):
        assert (folder / "out" / str(index) / "square.txt").read_text() == str(index**2)
    kept = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    counted = [event["index"] for event in kept if event["event"] == "outputs_kept"]
    assert len(counted) == len(set(counted))


def until(job: Job, found: type[Event], peer: str = "") -> list[Event]:
    """Follow the job until that is told, of that peer."""
    seen = []
    for event in job.events():
        seen.append(event)
        if isinstance(event, found) and (not peer or getattr(event, "peer", "") == peer):
            return seen
    raise AssertionError(f"the job ended without it: {seen[-1]}")


def finished(job: Job) -> JobFinished:
    last = job.wait(120)
    assert isinstance(last, JobFinished)
    return last


def test_what_every_copy_prints_comes_back_and_is_paid_for(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    folder = write(tmp_path / "print", "")
    text = (folder / "job.toml").read_text().replace("python work.py {index}", "python -c 'print(1)'")
    (folder / "job.toml").write_text(text)
    job = swarm.submit(folder)
    last = finished(job)
    lines = lines_of(job.folder)
    assert {line.code for line in lines.values()} == {0}
    logs = {path.stem: path.read_text() for path in (job.folder / "logs").iterdir()}
    assert sum(text.splitlines().count("1") for text in logs.values()) == 8, logs
    assert set(logs) >= {line.peer for line in lines.values()}
    ledger = swarm.credits(job.id)
    assert ledger.receipts == last.receipts == len({line.peer for line in lines.values()})
    assert min(last.credits[line.peer] for line in lines.values()) > 0


def test_the_sweep_of_the_examples_ends_with_its_table(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = swarm.submit(EXAMPLE)
    finished(job)
    assert len(lines_of(job.folder)) == 8
    table = subprocess.run(
        [sys.executable, str(EXAMPLE / "table.py"), str(job.folder)], capture_output=True, text=True, check=True
    ).stdout
    assert [line.split()[0] for line in table.splitlines()] == [*map(str, range(8)), "mean"]
    assert 80 < float(table.splitlines()[-1].split()[1].strip("%,")) <= 100


def test_a_copy_that_fails_is_tried_at_other_peers_and_ends_with_its_own_code(
    swarm: axonp2p.Swarm, tmp_path: Path
) -> None:
    program = SQUARE + "    time.sleep(0.5)\n    sys.exit(7 if index == 2 else 0)\n"
    job = swarm.submit(write(tmp_path / "fails", program, copies=4, lines="attempts = 2\n"))
    events = list(job.events())
    lines = lines_of(job.folder, 4)
    assert {index: line.code for index, line in lines.items()} == {0: 0, 1: 0, 2: 7, 3: 0}
    (failed,) = (event for event in events if isinstance(event, IndexFailed))
    assert (failed.index, failed.code, failed.reason) == (2, 7, "exit code 7")
    assert [event.index for event in events if isinstance(event, CopyRetried)] == [2]
    assert len([event for event in events if isinstance(event, CopyEnded) and event.index == 2]) == 2
    assert isinstance(events[-1], JobFinished)
    assert job.record.state is JobState.FINISHED


def test_the_copy_of_a_peer_that_stands_still_is_begun_elsewhere(
    swarm: axonp2p.Swarm, processes: Processes, tmp_path: Path
) -> None:
    job = swarm.submit(write(tmp_path / "frozen", SQUARE, lines='env = {PAUSE = "1"}\n'))
    until(job, CopyBegun, "lynx")
    daemon = processes.process("lynx")
    daemon.send_signal(signal.SIGSTOP)
    try:
        events = list(job.events())
    finally:
        daemon.send_signal(signal.SIGCONT)
    squares_are_there(job.folder)
    twice = [event for event in events if isinstance(event, SpeculativeCopy | CopyRetried)]
    assert twice
    assert isinstance(events[-1], JobFinished)


def test_a_peer_that_is_killed_costs_its_copy_a_second_beginning(
    swarm: axonp2p.Swarm, processes: Processes, tmp_path: Path
) -> None:
    processes.start_peers("swift")
    job = swarm.submit(write(tmp_path / "killed", SQUARE, peers=5, lines='env = {PAUSE = "1"}\n'))
    until(job, CopyBegun, "swift")
    processes.kill("swift")
    events = list(job.events())
    squares_are_there(job.folder)
    assert [event.peer for event in events if isinstance(event, PeerLost)] == ["swift"]
    assert isinstance(events[-1], JobFinished)


def test_a_client_that_is_killed_at_any_moment_has_each_result_once(processes: Processes, tmp_path: Path) -> None:
    chance = random.Random(16)
    source = write(tmp_path / "source", SQUARE, lines='env = {PAUSE = "0.6"}\n')
    client = Client(tmp_path / "client", processes.tracker)
    kills = 0
    while kills < KILLS or client.job():
        job = client.job()
        words = ("resume", job.path.name) if job else ("submit", str(source))
        moment = chance.uniform(0.6, 3.0) if kills < KILLS else None
        code = client.run(*words, "--json", kill_after=moment)
        kills += code == -signal.SIGKILL
        # The slot of a client that died while it hired may look taken for a moment.
        assert code in (0, -signal.SIGKILL, NobodyFits.exit_code), client.said
    for done in client.jobs():
        squares_are_there(done.path)
        record = done.read()
        assert record.state is JobState.FINISHED
        assert isinstance(record, RunRecord)
        assert not record.unpaid


def test_the_job_goes_on_without_a_tracker(swarm: axonp2p.Swarm, processes: Processes, tmp_path: Path) -> None:
    job = swarm.submit(write(tmp_path / "alone", SQUARE, lines='env = {PAUSE = "1"}\n'))
    until(job, OutputsKept)
    processes.kill("tracker")
    finished(job)
    squares_are_there(job.folder)
    processes.start_tracker("tracker")
