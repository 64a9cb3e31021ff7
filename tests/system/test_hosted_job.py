"""A tracker carries a job on: its client is switched off, the tracker killed, and another computer has the weights."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

import axonp2p
from axonp2p.client.events.events import JobFinished, JobSubmitted
from axonp2p.client.storage.job_record import has_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import NotFound
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.run.events import OutputsLost
from axonp2p.kinds.train.events import RoundFinished, StateFound
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.sandbox.child import why_no_sandbox
from client_cli import verify_ledger
from tests.lab.swarm import NOT_ON_THE_LAN
from tests.laboratory.fork_server import ReadProgram, fork_server
from tests.system.network import Network, why_not
from tests.system.processes import Processes
from tests.system.small_job import write_job
from tests.system.test_run_job import SQUARE, squares_are_there, write

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

PATIENCE_S = 150.0
NO_NETWORK = why_not()


class Computer:
    """A home, and `axon` on it."""

    def __init__(self, home: Path, tracker: str, inside: Sequence[str] = (), second: str = "") -> None:
        self.home = home
        self._tracker = tracker
        self._inside = inside
        self._second = ["--tracker", second] if second else []

    def _words(self, *words: str) -> list[str]:
        return [*words, "--home", str(self.home), "--tracker", self._tracker, *self._second]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return fork_server().run("client_cli.main", self._words(*words), 120, inside=self._inside)

    def ask(self, *words: str) -> dict[str, Any]:
        done = self.run(*words, "--json")
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def fails(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = self.run(*words)
        assert done.returncode != 0
        return done

    def at(self, home: Path) -> Computer:
        """Another one that knows the same tracker."""
        return Computer(home, self._tracker, self._inside)

    def watch(self, job: str) -> ReadProgram:
        """Its events, a line each."""
        return fork_server().begin("client_cli.main", self._words("watch", job, "--json"), inside=self._inside)

    def folder(self, job: str) -> JobFolder:
        return JobStore(self.home).find(job)

    def has_the_key_of(self, other: Computer) -> None:
        self.home.mkdir()
        shutil.copy(other.home / "client.key", self.home)


def until(what: Callable[[], object], why: str) -> None:
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < PATIENCE_S, why
        time.sleep(0.5)  # each look is a program of its own, which takes from the workers


def processes_of(hosted: Path) -> list[psutil.Process]:
    """Those that work on hosted jobs in there."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "axonp2p.client.hosted_run" in words and any(str(hosted) in word for word in words):
            found.append(process)
    return found


def finished_well(folder: JobFolder, rounds: int) -> None:
    record = folder.read()
    assert record.state is JobState.FINISHED
    assert hashlib.sha256(folder.model.read_bytes()).hexdigest() == record.model_sha256
    events = folder.read_events()
    assert [event.round for event in events if isinstance(event, RoundFinished)] == list(range(rounds))
    assert isinstance(events[-1], JobFinished)


def test_the_client_goes_and_the_host_dies_and_the_job_goes_on(tmp_path: Path) -> None:
    source = write_job(tmp_path / "line", peers=2, least=2, rounds=20, pause=0.05)
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron")
        hosted = tmp_path / "tracker" / "hosted"
        laptop = Computer(tmp_path / "laptop", processes.tracker)
        other = Computer(tmp_path / "other", processes.tracker)
        told = laptop.ask("submit", str(source), "--detach")
        job = told["job"]
        assert told["hosted_at"] == processes.tracker
        other.has_the_key_of(laptop)
        shutil.rmtree(laptop.home)
        shutil.rmtree(source)

        until(lambda: other.ask("status", job[:-2])["round"] >= 3, "it does not come to round 3")
        assert other.ask("status", job)["state"] == "running"
        (process,) = processes_of(hosted)
        processes.kill("tracker")
        until(lambda: not psutil.pid_exists(process.pid), "its process outlives the tracker")
        processes.start_tracker("tracker")
        with other.watch(job) as watching:
            assert watching.stdout is not None
            events = [json.loads(line)["event"] for line in watching.stdout]
        assert events.count("round_finished") == 20
        assert events[-1] == "job_finished"
        fetched = other.ask("fetch", job, "-o", str(tmp_path / "out"))
        assert {"model.safetensors", "metrics.csv", "events.jsonl"} <= set(fetched["files"])
        folder = other.folder(job)
        finished_well(folder, 20)
        (found,) = (event for event in folder.read_events() if isinstance(event, StateFound))
        assert sorted(found.waiting) == ["heron", "otter"]
        assert [one["state"] for one in other.ask("jobs", "--hosted")["jobs"]] == ["finished"]
        credits = other.ask("credits")
        (at_host,) = credits["hosted"]
        assert at_host["name"] == job
        assert at_host["owed"] > 0
        assert [one["owed"] for one in credits["balances"] if one["name"] == "you"] == [at_host["owed"]]
        proved = other.ask("credits", "--proof", str(tmp_path / "proof"))["receipts"]
        assert len(proved) >= at_host["receipts"]
        verify = [sys.executable, Path(verify_ledger.__file__), tmp_path / "proof"]
        said = subprocess.run(verify, check=True, capture_output=True, text=True).stdout
        assert said.startswith(f"{len(proved)} receipts")
        assert not processes_of(hosted)
        for name in ("tracker", "otter", "heron"):
            assert "Traceback" not in processes.output(name)


def test_a_hosted_job_is_steered_from_afar_and_another_taken_back(tmp_path: Path) -> None:
    source = write_job(tmp_path / "line", peers=1, rounds=1000, pause=0.02)
    with Processes(tmp_path) as processes:
        processes.start_peers("otter")
        hosted = tmp_path / "tracker" / "hosted"
        laptop = Computer(tmp_path / "laptop", processes.tracker)
        job = laptop.ask("submit", str(source), "--detach")["job"]
        until(lambda: laptop.ask("status", job)["round"] >= 2, "no round")
        paused = laptop.ask("pause", job)
        assert paused["state"] == "paused"
        assert paused["round"] == paused["kept_round"] >= 2
        assert laptop.ask("resume", job)["state"] == "resumed"
        until(lambda: laptop.ask("status", job)["round"] > paused["round"], "it does not go on")
        (process,) = processes_of(hosted)
        process.kill()  # and is started again
        before = laptop.ask("status", job)["round"]
        until(lambda: laptop.ask("status", job)["round"] > before + 1, "it does not come back")
        assert laptop.ask("cancel", job)["state"] == "cancelled"
        until(lambda: not processes_of(hosted), "its process is left")
        # At once there is room for another, also at the peer.
        _is_taken_back(laptop, write_job(tmp_path / "next", peers=1, rounds=60, pause=0.1), tmp_path)


def test_a_hosted_job_is_stopped_from_afar_and_its_weights_come(tmp_path: Path) -> None:
    source = write_job(tmp_path / "line", peers=1, rounds=1000, pause=0.02, train='\nbest = "max error"\n')
    with Processes(tmp_path) as processes:
        processes.start_peers("otter")
        laptop = Computer(tmp_path / "laptop", processes.tracker)
        job = laptop.ask("submit", str(source), "--detach")["job"]
        until(lambda: laptop.ask("status", job)["round"] >= 2, "no round")
        stopped = laptop.ask("stop", job)
        assert stopped["state"] == "finished"
        assert 2 <= stopped["round"] < 1000
        for words in ((), ("--round", "best")):
            out = tmp_path / "-".join(["out", *words])
            assert "model.safetensors" in laptop.ask("fetch", job, "-o", str(out), *words)["files"]
        finished_well(laptop.folder(job), stopped["round"])
        kept = laptop.folder(job)
        assert (tmp_path / "out---round-best" / "model.safetensors").read_bytes() == kept.best.read_bytes()

        other = laptop.ask("submit", str(source), "--detach")["job"]
        until(lambda: laptop.ask("status", other)["round"] >= 2, "no round")
        left = laptop.ask("pause", other)
        assert left["state"] == "paused"
        stopped = laptop.ask("stop", other)  # no process works on it there
        assert (stopped["state"], stopped["round"]) == ("finished", left["kept_round"])
        laptop.ask("fetch", other, "-o", str(tmp_path / "other"))
        finished_well(laptop.folder(other), left["kept_round"])


def _is_taken_back(laptop: Computer, source: Path, base: Path) -> None:
    job = laptop.ask("submit", str(source), "--detach")["job"]
    stranger = laptop.at(base / "stranger")
    assert stranger.fails("status", job).returncode == NotFound.exit_code
    other = laptop.at(base / "other")
    other.has_the_key_of(laptop)
    until(lambda: laptop.ask("status", job)["round"] >= 2, "no round")
    assert "is not on this computer" in other.fails("resume", job, "--here").stderr
    assert laptop.ask("resume", job, "--here")["state"] == "finished"
    folder = laptop.folder(job)
    finished_well(folder, 60)
    lives = [event for event in folder.read_events() if isinstance(event, JobSubmitted)]
    assert lives[-1].resumed_from_round >= 2
    assert not processes_of(base)


def kept_round(folder: JobFolder) -> int:
    record = folder.read()
    assert isinstance(record, TrainRecord)
    return record.kept_round


def test_a_host_dies_for_good_and_the_job_goes_on_where_its_copy_is(tmp_path: Path) -> None:
    source = write_job(tmp_path / "line", peers=1, rounds=100, pause=0.1)
    with Processes(tmp_path) as processes:
        processes.start_tracker("second", knows=[processes.tracker])
        processes.stop("tracker")
        processes.start_tracker("tracker", knows=[processes.trackers["second"]])
        processes.start_peers("otter", "heron")  # the one that waits for the old host cannot be hired
        addresses = processes.trackers
        laptop = Computer(tmp_path / "laptop", addresses["tracker"], second=addresses["second"])
        told = laptop.ask("submit", str(source), "--detach")
        job = told["job"]
        names = {address: name for name, address in addresses.items()}
        host, kept_at = names[told["hosted_at"]], names[told["copy_at"]]
        assert {host, kept_at} == {"tracker", "second"}
        client = next((tmp_path / kept_at / "hosted").iterdir()).name
        copied = JobFolder(tmp_path / kept_at / "hosted" / client / job / "home" / "jobs" / job)
        # The record comes last, and the job goes on from the state that it names.
        until(lambda: has_record(copied.record_file) and kept_round(copied) >= 3, "no copy of a state")
        (shown,) = laptop.ask("jobs", "--hosted")["jobs"]
        assert shown["copy_at"] == addresses[kept_at]
        assert "rounds" in shown["copy"]

        processes.kill(host)
        shutil.rmtree(tmp_path / host)
        assert f"axon resume {job} " in laptop.fails("pause", job).stderr
        resumed = laptop.ask("resume", job)
        assert resumed["hosted_at"] == addresses[kept_at]
        with laptop.watch(job) as watching:
            assert watching.stdout is not None
            assert [json.loads(line)["event"] for line in watching.stdout][-1] == "job_finished"
        laptop.ask("fetch", job, "-o", str(tmp_path / "out"))
        folder = laptop.folder(job)
        record, events = folder.read(), folder.read_events()
        assert record.state is JobState.FINISHED
        assert hashlib.sha256((tmp_path / "out" / "model.safetensors").read_bytes()).hexdigest() == record.model_sha256
        lives = [event for event in events if isinstance(event, JobSubmitted)]
        assert lives[-1].resumed_from_round >= 3
        # One that was told when its state was not copied yet is told again.
        assert {event.round for event in events if isinstance(event, RoundFinished)} == set(range(100))
        assert not processes_of(tmp_path / kept_at / "hosted")
        assert "Traceback" not in processes.output(kept_at)


def test_copies_of_a_command_go_on_without_their_client_and_come_home_from_the_host(tmp_path: Path) -> None:
    source = write(
        tmp_path / "squares", SQUARE + "    print(index)\n", peers=1, copies=12, lines='env = {PAUSE = "2"}\n'
    )
    with Processes(tmp_path) as processes:
        processes.start_peers("otter")
        hosted = tmp_path / "tracker" / "hosted"
        laptop = Computer(tmp_path / "laptop", processes.tracker)
        other = Computer(tmp_path / "other", processes.tracker)
        job = laptop.ask("submit", str(source), "--detach")["job"]
        other.has_the_key_of(laptop)
        shutil.rmtree(laptop.home)
        until(lambda: other.ask("status", job)["done"] >= 2, "no result")
        paused = other.ask("pause", job)
        assert (paused["state"], 2 <= paused["done"] < 12) == ("paused", True)
        assert not (other.folder(job).path / "out").exists()
        assert list(other.ask("logs", job)["logs"]) == ["otter"]
        other.ask("resume", job)
        until(lambda: other.ask("status", job)["done"] > paused["done"], "it does not go on")
        (process,) = processes_of(hosted)
        process.kill()  # and is started again
        following = other.run("logs", job, "-f")
        assert (following.returncode, "11" in following.stdout.splitlines()) == (0, True), following.stderr
        with other.watch(job) as watching:
            assert watching.stdout is not None
            assert [json.loads(line)["event"] for line in watching.stdout][-1] == "job_finished"
        files = other.ask("fetch", job, "-o", str(tmp_path / "fetched"))["files"]
        assert {"results.csv", *(f"out/{index}/square.txt" for index in range(12))} <= set(files)
        squares_are_there(other.folder(job).path, 12)
        (there,) = hosted.glob("*/*/home/jobs/*/results.csv")
        assert (tmp_path / "fetched" / "results.csv").read_bytes() == there.read_bytes()
        with axonp2p.Swarm([processes.tracker], home=other.home) as swarm:
            assert [copy.files[0].read_text() for copy in swarm.attach(job).fetch()] == [str(n**2) for n in range(12)]
        assert [one["state"] for one in other.ask("jobs", "--hosted")["jobs"]] == ["finished"]
        _copies_are_taken_back(other, source)
        assert not processes_of(hosted)
        assert "Traceback" not in processes.output("tracker")


def _copies_are_taken_back(computer: Computer, source: Path) -> None:
    job = computer.ask("submit", str(source), "--detach")["job"]
    until(lambda: computer.ask("status", job)["done"] >= 2, "no result")
    assert computer.ask("resume", job, "--here")["state"] == "finished"
    folder = computer.folder(job)
    squares_are_there(folder.path, 12)
    events = folder.read_events()
    assert not [event for event in events if isinstance(event, OutputsLost)]
    lives = [event for event in events if isinstance(event, JobSubmitted)]
    assert lives[-1].resumed_from_round >= 2


@pytest.mark.skipif(bool(NO_NETWORK), reason=NO_NETWORK or "-")
def test_the_clients_network_is_gone_in_round_3_and_another_machine_fetches_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in NOT_ON_THE_LAN.items():
        monkeypatch.setenv(name, value)
    source = write_job(tmp_path / "line", peers=2, least=2, rounds=12, pause=0.05)
    with Network() as network, Processes(tmp_path, first_tracker="") as processes:
        here, away = network.inside("left"), network.inside("right")
        processes.start_tracker("tracker", listen=f"{network.host('left', 0)}:7070", inside=here)
        for number, name in enumerate(("otter", "heron"), 1):
            processes.start_peers(name, listen=f"{network.host('left', number)}:7071", inside=here)
        laptop = Computer(tmp_path / "laptop", processes.tracker, away)
        other = Computer(tmp_path / "other", processes.tracker, here)
        job = laptop.ask("submit", str(source), "--detach")["job"]
        other.has_the_key_of(laptop)
        with laptop.watch(job) as watching:
            assert watching.stdout is not None
            for line in watching.stdout:
                event = json.loads(line)
                if event["event"] == "round_finished" and event["round"] >= 2:
                    break
            network.switch_off("right")
        shutil.rmtree(laptop.home)
        assert not os.path.exists(f"/run/netns/{away[-1]}")
        with other.watch(job) as watching:
            assert watching.wait(120) == 0
        other.ask("fetch", job, "-o", str(tmp_path / "out"))
        finished_well(other.folder(job), 12)
