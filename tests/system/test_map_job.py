"""Calls on real peers: each item has one result, equal to a plain loop's, whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

import axonp2p
import axonp2p.joblib
from axonp2p.client.events.events import JobSubmitted, PeerLost
from axonp2p.errors import NotPlain
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.map.events import ChunkDone
from axonp2p.kinds.map.fetched import fetched
from axonp2p.kinds.map.record import MapRecord
from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory import scikit_calls
from tests.system.processes import Processes
from tests.system.test_hosted_job import Computer, until

PEERS = ("heron", "lynx", "otter", "wren")
NEED = {"memory": "256 MB", "max-rtt": "5 s", "wait": "60 s"}

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(280),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with Processes(tmp_path_factory.mktemp("processes")) as running:
        running.start_peers(*PEERS)
        yield running


def executor(processes: Processes, home: Path, **more: Any) -> axonp2p.Executor:
    return axonp2p.Executor(4, [processes.tracker], home / "client", need=NEED, **more)


def test_200_calls_are_equal_to_a_plain_loop_and_an_exception_comes_back(processes: Processes, tmp_path: Path) -> None:
    def work(number: int, power: int = 2) -> dict[str, Any]:
        print("call", number)
        if number == 13:
            raise KeyError("thirteen")
        return {"number": number, "power": number**power, "text": "ä" * (number % 7)}

    with executor(processes, tmp_path) as calls:
        waiting = {calls.submit(work, number, power=3): number for number in range(200)}
        for future in as_completed(waiting):
            number = waiting[future]
            if number != 13:
                assert future.result() == {"number": number, "power": number**3, "text": "ä" * (number % 7)}
            else:
                error = future.exception()
                assert isinstance(error, axonp2p.TaskError)
                assert (error.kind, error.reason) == ("KeyError", "'thirteen'")
                assert "in work" in error.traceback
    record = calls.job.record
    assert isinstance(record, MapRecord)
    assert (record.state, record.results, record.failed) == (JobState.FINISHED, 200, 1)
    assert sum(record.credits.values()) > 0


def test_an_array_of_many_calls_leaves_about_once_and_arrays_come_back(processes: Processes, tmp_path: Path) -> None:
    table = np.random.default_rng(0).random((500, 1000))  # 4 MB

    def column_means(numbers: np.ndarray[Any, Any], power: int) -> np.ndarray[Any, Any]:
        return (numbers**power).mean(axis=0)

    with executor(processes, tmp_path) as calls:
        found = [calls.submit(column_means, table, power) for power in range(1, 9)]
        for power, future in enumerate(found, 1):
            assert np.array_equal(future.result(), column_means(table, power))


def test_scikit_learn_is_unchanged_on_peers(processes: Processes, tmp_path: Path) -> None:
    """The sandbox has the packages of the peer's own Python, scikit-learn among them."""
    with executor(processes, tmp_path) as calls, parallel_config("axon", executor=calls):
        for name, call in scikit_calls.WORKING.items():
            assert scikit_calls.same(call(-1), call(1)), name
        for call in scikit_calls.REFUSED.values():
            with pytest.raises(NotPlain, match="cannot travel back"):
                call(-1)


def test_it_works_inside_a_running_event_loop(processes: Processes, tmp_path: Path) -> None:
    async def notebook() -> list[int]:
        with axonp2p.Swarm([processes.tracker], tmp_path / "client") as swarm:
            return list(swarm.map(lambda number: -number, range(10), need=NEED))

    assert asyncio.run(notebook()) == [-number for number in range(10)]


PROGRAM = """
import sys, time, axonp2p

def work(number):
    time.sleep(0.05)
    return number * number

if __name__ == "__main__":
    tracker, home = sys.argv[1:]
    need = {"memory": "256 MB", "max-rtt": "5 s", "wait": "60 s"}
    with axonp2p.Executor(4, [tracker], home, need=need) as calls:
        waiting = [calls.submit(work, number) for number in range(300)]
        for future in waiting:
            print(future.result(), flush=True)
"""


def test_a_client_that_is_killed_is_resumed_without_its_program_while_a_peer_is_killed_too(tmp_path: Path) -> None:
    home, program = tmp_path / "client", tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    with Processes(tmp_path) as running:
        running.start_peers(*PEERS)
        words = [sys.executable, str(program), running.tracker, str(home)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout
            for _ in range(20):
                assert client.stdout.readline()
            client.send_signal(signal.SIGKILL)
        with axonp2p.Swarm([running.tracker], home) as swarm:
            (before,) = swarm.jobs()
            job = swarm.resume(before.id, wait=60)
            killed = False
            for event in job.events():
                if isinstance(event, ChunkDone) and not killed:
                    running.kill(event.peer)
                    killed = True
            assert job.fetch() == [number * number for number in range(300)]
    events = list(job.events())
    assert any(isinstance(event, PeerLost) for event in events)
    record = job.record
    assert isinstance(record, MapRecord)
    assert (record.items, record.results, record.failed) == (300, 300, 0)


def write_squares(folder: Path, *lines: str, pause: float = 0.0) -> Path:
    folder.mkdir()
    work = f"import time\ndef work(item):\n    time.sleep({pause})\n    return item['x'] ** 2\n"
    (folder / "task.py").write_text(work)
    (folder / "items.jsonl").write_text("".join(f'{{"x": {number}}}\n' for number in range(50)))
    need = ["[need]", "peers = 4", 'memory = "256 MB"', 'max-rtt = "5 s"']
    section = lines or ('fn = "task.py:work"', 'items = "items.jsonl"')
    (folder / "job.toml").write_text("\n".join(['name = "squares"', 'kind = "map"', *need, "[map]", *section]))
    return folder


SQUARES = [number**2 for number in range(50)]


def test_a_folder_with_a_function_and_items_is_done(processes: Processes, tmp_path: Path) -> None:
    with axonp2p.Swarm([processes.tracker], tmp_path / "client") as swarm:
        job = swarm.submit(write_squares(tmp_path / "squares"))
        job.wait()
        assert job.fetch() == SQUARES


def test_a_tracker_carries_calls_on_and_their_results_come_home(processes: Processes, tmp_path: Path) -> None:
    folder = write_squares(tmp_path / "squares", pause=0.5)
    laptop = Computer(tmp_path / "laptop", processes.tracker)
    other = Computer(tmp_path / "other", processes.tracker)
    job = laptop.ask("submit", str(folder), "--detach")["job"]
    other.has_the_key_of(laptop)
    shutil.rmtree(laptop.home)
    until(lambda: other.ask("status", job)["done"] >= 4, "no result")
    paused = other.ask("pause", job)
    assert (paused["state"], paused["done"] < 50) == ("paused", True)
    assert "no result" in other.fails("fetch", job, "-o", str(tmp_path / "early")).stderr
    other.ask("resume", job)
    until(lambda: other.ask("status", job)["done"] > paused["done"], "it does not go on")
    with other.watch(job) as watching:
        assert watching.stdout is not None
        assert [json.loads(line)["event"] for line in watching.stdout][-1] == "job_finished"
    assert "results.sqlite" in other.ask("fetch", job, "-o", str(tmp_path / "out"))["files"]
    assert fetched(tmp_path / "out" / "results.sqlite") == SQUARES
    with axonp2p.Swarm([processes.tracker], other.home) as swarm:
        assert swarm.attach(job).fetch() == SQUARES

    job = other.ask("submit", str(folder), "--detach")["job"]
    until(lambda: other.ask("status", job)["done"] >= 4, "no result")
    assert other.ask("resume", job, "--here")["state"] == "finished"
    lives = [event for event in other.folder(job).read_events() if isinstance(event, JobSubmitted)]
    assert lives[-1].resumed_from_round >= 4
    assert fetched(other.folder(job).path / "results.sqlite") == SQUARES

    program = write_squares(tmp_path / "program", "calls = true")
    refused = other.fails("submit", str(program), "--detach").stderr
    assert "the job cannot be hosted: its calls come from a program" in refused


def test_an_interrupted_program_leaves_its_job_to_be_resumed(processes: Processes, tmp_path: Path) -> None:
    home, program = tmp_path / "client", tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    words = [sys.executable, str(program), processes.tracker, str(home)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        assert client.stdout
        assert client.stdout.readline()
        client.send_signal(signal.SIGINT)
        began = time.monotonic()
        client.wait(120)
        assert time.monotonic() - began < 120
    with axonp2p.Swarm([processes.tracker], home) as swarm:
        (record,) = swarm.jobs()
        assert record.state is JobState.PAUSED
        assert 0 < record.done < 300
