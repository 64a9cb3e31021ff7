"""Clients, peers and trackers killed at any moment: the job goes on, and comes to what it would have come to."""

from __future__ import annotations

import hashlib
import json
import random
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import axonp2p
from axonp2p.client.events.events import Event, JobPaused, PeerLost, PeersAwaited
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import NobodyFits
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import PeerLeftBehind, RoundFinished, RoundsLost, StateFound, ValuesLate
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.fork_server import ForkedProgram, fork_server
from tests.system.processes import Processes
from tests.system.small_job import TASK, write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

MOMENTS = 20
LATEST_S = 4.0
"""Into a life of the client: from before it has a job to when it may have trained some rounds."""
LATEST_IN_TRAINING_S = 1.0
"""The same of every second life, from when it has trained one: however slow the machine is."""
ROUNDS = 30
"""Of a job: few enough that twenty lives are those of several jobs."""
PATIENCE_S = 60.0
WARM_UP = """
    def schedule(self, step, steps):
        return min(1.0, (step + 1) / 60)
"""
REMEMBERS = TASK.replace("lr=0.2", "lr=0.02, momentum=0.9") + WARM_UP
"""Without the optimiser's memory, or at another rate in any step, a job would come to something else."""
ALWAYS_THE_SAME = """
compression = "none"
exchange-every = 5
overlap = false
"""


def write(folder: Path, *, rounds: int = ROUNDS, pause: float = 0.02, wait: str = "0 s") -> Path:
    """A job that comes to the same weights whenever the same two peers train it."""
    return write_job(
        folder, peers=2, least=2, wait=wait, rounds=rounds, pause=pause, task=REMEMBERS, train=ALWAYS_THE_SAME
    )


class Client:
    """`axon` as a process of its own, which may be killed."""

    def __init__(self, home: Path, tracker: str) -> None:
        self.home = home
        self._tracker = tracker
        self.said = ""

    def run(self, *words: str, kill_after: float | None = None, in_training: bool = False) -> int:
        """Its exit code; minus nine when it was killed: so many seconds after its start, or after its first round."""
        options = ["--home", str(self.home)]
        if words[0] in ("submit", "resume"):
            options += ["--tracker", self._tracker]
        with tempfile.TemporaryFile("w+") as out:
            process = fork_server().start("client_cli.main", [*words, *options], out)
            if in_training:
                self._until_it_trains(process)
            try:
                return process.wait(120 if kill_after is None else kill_after)
            except subprocess.TimeoutExpired:
                process.kill()
                assert kill_after is not None, self.said
                return process.wait()
            finally:
                out.seek(0)
                self.said = out.read()

    def _until_it_trains(self, process: ForkedProgram) -> None:
        job = self.job()
        before, began = (job.read().round if job else 0), time.monotonic()
        while process.poll() is None and (job is None or job.read().round <= before):
            assert time.monotonic() - began < PATIENCE_S, "it trains nothing"
            time.sleep(0.02)
            job = self.job()

    @contextmanager
    def running(self, *words: str) -> Iterator[ForkedProgram]:
        options = ["--home", str(self.home), "--tracker", self._tracker]
        with (self.home.parent / "client.out").open("ab") as out:
            process = fork_server().start("client_cli.main", [*words, *options], out)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def jobs(self) -> list[JobFolder]:
        """All of them."""
        return [JobStore(self.home).find(record.id) for record in JobStore(self.home).records()]

    def job(self) -> JobFolder | None:
        """The newest one that is not over."""
        store = JobStore(self.home)
        found = [record.id for record in store.records() if record.state is not JobState.FINISHED]
        return store.find(found[-1]) if found else None


def until(job: JobFolder, rounds: int) -> None:
    began = time.monotonic()
    while job.read().round < rounds:
        assert time.monotonic() - began < PATIENCE_S, f"it does not come to round {rounds}"
        time.sleep(0.02)


def until_there(client: Client) -> JobFolder:
    began = time.monotonic()
    while (job := client.job()) is None:
        assert time.monotonic() - began < PATIENCE_S, "no job"
        time.sleep(0.02)
    return job


def until_paid(client: Client, tracker: str, job: JobFolder, receipts: int) -> None:
    """Until so many receipts are in the ledger: peers hand in what a client that was killed did not."""
    began = time.monotonic()
    with axonp2p.Swarm(trackers=[tracker], home=client.home) as swarm:
        while (there := swarm.credits(job.path.name).receipts) != receipts:
            assert time.monotonic() - began < PATIENCE_S, there
            time.sleep(0.2)


def the_books(job: JobFolder) -> list[Event]:
    """All events, when they and the metrics say that every round was trained once, and in its turn."""
    events = job.read_events()
    rounds = [event.round for event in events if isinstance(event, RoundFinished)]
    assert rounds == list(range(job.read().round))
    assert [int(row["round"]) - 1 for row in MetricsFile(job.metrics).rows()] == rounds
    assert not any(isinstance(event, RoundsLost) for event in events)
    return events


def weights_of(job: JobFolder) -> str:
    assert job.read().state is JobState.FINISHED
    return hashlib.sha256(job.model.read_bytes()).hexdigest()


def nobody_was_disturbed(events: list[Event]) -> bool:
    """Whether both peers were there from the first round to the last, with what their optimisers remember, and in time.

    A machine that is busy for ten seconds may lose one, or have it wait for a value that goes into a later round
    instead; what the job comes to then is another thing than it was.
    """
    lives = [event for event in events if isinstance(event, StateFound)]
    disturbed = any(isinstance(event, PeerLost | PeerLeftBehind | ValuesLate) for event in events)
    return not disturbed and all(len(life.waiting) == 2 for life in lives)


def undisturbed_weights(client: Client, source: Path) -> str:
    """What the job comes to when nobody is killed."""
    for _ in range(3):
        assert client.run("submit", str(source)) == 0, client.said
        if nobody_was_disturbed(the_books(client.jobs()[-1])):
            return weights_of(client.jobs()[-1])
    pytest.fail("this machine is too busy to train a small job three times")


def test_a_client_killed_at_twenty_moments_comes_to_the_same_weights(processes: Processes, tmp_path: Path) -> None:
    chance = random.Random(6)
    source = write(tmp_path / "line")
    expected = undisturbed_weights(Client(tmp_path / "calm", processes.tracker), source)
    shaken = Client(tmp_path / "shaken", processes.tracker)
    kills, waited = 0, 0
    while kills < MOMENTS or shaken.job():
        job = shaken.job()
        words = ("resume", job.path.name) if job else ("submit", str(source))
        in_training = kills < MOMENTS and kills % 2 == 1
        moment = chance.uniform(0, LATEST_IN_TRAINING_S if in_training else LATEST_S)
        code = shaken.run(*words, kill_after=moment if kills < MOMENTS else None, in_training=in_training)
        kills += code == -signal.SIGKILL
        # The slot of a client that died while it hired may look taken for a moment.
        assert code in (0, -signal.SIGKILL, NobodyFits.exit_code), shaken.said
    compared = 0
    for job in shaken.jobs():
        events = the_books(job)
        waited += sum(bool(event.waiting) for event in events if isinstance(event, StateFound))
        assert len({peer.name for peer in job.read().peers}) == 2
        if nobody_was_disturbed(events):
            assert weights_of(job) == expected
            until_paid(shaken, processes.tracker, job, 2 * ROUNDS)
            compared += 1
    # A client that was killed as it removed the states of a finished job leaves that to the next one.
    assert shaken.run("submit", str(write(tmp_path / "next", rounds=2))) == 0, shaken.said
    assert not list(shaken.home.glob("jobs/*/states/*"))
    assert compared
    assert waited > MOMENTS // 4  # the others were killed before they had come so far
    for name in ("otter", "heron"):
        assert "Traceback" not in processes.output(name)


def test_when_everything_dies_at_once_no_round_in_the_books_is_trained_twice(tmp_path: Path) -> None:
    source = write(tmp_path / "line", rounds=30)
    with Processes(tmp_path) as processes:
        processes.start_tracker("second", knows=[processes.tracker])
        processes.start_peers("otter", "heron")
        client = Client(tmp_path / "client", processes.tracker)
        with client.running("submit", str(source)) as program:
            job = until_there(client)
            until(job, 7)
            program.kill()
            for name in ("otter", "heron", "tracker", "second"):
                processes.process(name).kill()
            for name in ("otter", "heron", "tracker", "second"):
                processes.kill(name)
        done = job.read().round
        assert done >= 7
        processes.start_tracker("tracker")
        processes.start_tracker("second", knows=[processes.tracker])
        processes.start_peers("otter", "heron")
        assert client.run("resume", job.path.name) == 0, client.said
        found = re.search(r"continues after round (\d+) of 30", client.said)
        assert found
        assert int(found[1]) >= done
        the_books(job)
        assert weights_of(job)
        until_paid(client, processes.tracker, job, 2 * 30)


def test_a_job_killed_at_its_very_end_keeps_no_slot_from_the_next(processes: Processes, tmp_path: Path) -> None:
    client = Client(tmp_path / "client", processes.tracker)
    with client.running("submit", str(write(tmp_path / "line", rounds=1000))) as program:
        job = until_there(client)
        until(job, 3)
        program.kill()  # its peers wait for five minutes
        program.wait()
    job.write(msgspec.structs.replace(job.read(), state=JobState.FINISHED))
    assert client.run("submit", str(write(tmp_path / "next", rounds=2))) == 0, client.said
    assert not job.leases.exists()
    assert not job.states.exists()


def test_a_job_is_paused_and_cancelled_from_another_terminal(processes: Processes, tmp_path: Path) -> None:
    source = write(tmp_path / "line", rounds=1000)
    client = Client(tmp_path / "client", processes.tracker)
    with client.running("submit", str(source)) as program:
        job = until_there(client)
        until(job, 3)
        assert client.run("pause", job.path.name) == 0, client.said
        assert program.wait(PATIENCE_S) == 130
    left = job.read()
    assert left.state is JobState.PAUSED
    assert left.round == left.kept_round >= 3
    assert f"Paused {left.id} after {left.round} rounds." in client.said
    with client.running("resume", job.path.name) as program:
        until(job, left.round + 3)
        program.kill()  # now its peers wait for it
        program.wait()
        assert client.run("cancel", job.path.name, "--json") == 0, client.said
    assert json.loads(client.said)["state"] == "cancelled"
    # And do so no more: at once there is room for another.
    assert client.run("submit", str(write(tmp_path / "next", rounds=2))) == 0, client.said


def test_a_job_with_too_few_peers_waits_for_others_and_keeps_what_it_has(tmp_path: Path) -> None:
    source = write(tmp_path / "line", rounds=40, wait="2 min")
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(source)
            seen: list[Event] = []
            for event in job.events():
                seen.append(event)
                if isinstance(event, RoundFinished) and event.round == 3:
                    processes.kill("heron")
                if isinstance(event, PeersAwaited):
                    assert (event.there, event.needed) == (1, 2)
                    assert event.seconds > 60
                    processes.start_peers("wren")
            assert job.record.state is JobState.FINISHED
            assert not isinstance(seen[-1], JobPaused)
            assert sum(isinstance(event, PeersAwaited) for event in seen) == 1
            the_books(JobFolder(job.folder))
            # The one that stayed held what was done, and nothing went over the disk.
            (found,) = (event for event in seen if isinstance(event, StateFound))
            assert found.waiting == ["otter"]
