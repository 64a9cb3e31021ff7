"""Jobs that end early, by their owner or by a metric, with weights; and weights of rounds of jobs that never ended."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import axonp2p
from axonp2p.client.events.events import Event, JobCancelled, JobFinished, JobPaused
from axonp2p.client.job import Job
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import JobFailed, JobOver
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import PeersStarting, RoundFinished, TrainingStops
from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.fork_server import fork_server
from tests.system.processes import Processes
from tests.system.small_job import TASK, write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

PATIENCE_S = 120.0
MANY = 400
FIRST_IS_BEST = '\nbest = "max error"\n'
"""Its error falls from round to round, so by this the first round is the best."""


def until(job: Job, round: int) -> None:
    for event in job.events():
        if isinstance(event, RoundFinished) and event.round + 1 == round:
            return
    raise AssertionError(f"the job ended before round {round}")


def errors(events: list[Event]) -> dict[int, float]:
    """What peers found of the weights after each round, from 1."""
    return {event.round + 1: event.metrics["error"] for event in events if isinstance(event, RoundFinished)}


def error_of(weights: dict[str, torch.Tensor]) -> Any:
    """What the task's `evaluate` finds of them, on all its data."""
    inputs = torch.linspace(-1, 1, 240).reshape(120, 2)
    wanted = inputs @ torch.tensor([[2.0], [-1.0]]) + 0.5
    found = torch.nn.functional.mse_loss(inputs @ weights["weight"].T + weights["bias"], wanted)
    return pytest.approx(found.item(), rel=1e-3)


def axon(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return fork_server().run("client_cli.main", [*words, "--home", str(home)], PATIENCE_S)


def test_a_job_that_is_stopped_ends_with_the_weights_of_its_last_round(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = swarm.submit(write_job(tmp_path / "line", peers=2, rounds=MANY, pause=0.02))
    until(job, 2)
    job.stop()
    last = job.wait()
    assert isinstance(last, JobFinished)
    assert 2 < last.rounds < MANY
    events = list(job.events())
    told = errors(events)
    assert list(told) == list(range(1, last.rounds + 1))
    assert [event.rounds for event in events if isinstance(event, TrainingStops)] == [last.rounds]
    assert (job.record.state, job.record.units) == (JobState.FINISHED, last.rounds)
    assert error_of(job.fetch()) == told[last.rounds]
    assert last.receipts == 2 * last.rounds
    assert swarm.credits(job.id).receipts == 2 * last.rounds
    assert sorted(last.peers) == ["heron", "otter"]
    assert not (job.folder / "states").exists()
    assert not (job.folder / "leases.json").exists()


def test_of_a_job_that_runs_or_was_cancelled_kept_rounds_can_be_had(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    source = write_job(tmp_path / "line", peers=2, rounds=MANY, pause=0.02, train=FIRST_IS_BEST)
    job = swarm.submit(source)
    until(job, 4)
    best = job.fetch(round="best")
    job.fetch(round="last")  # of a job that runs
    job.cancel()
    assert isinstance(job.wait(), JobCancelled)
    told = errors(JobFolder(job.folder).read_events())
    kept = job.record.kept_round
    assert error_of(best) == error_of(job.fetch(round="best")) == told[1]
    out = job.fetch(tmp_path / "out", round="last")
    assert error_of(safetensors.torch.load_file(out / "model.safetensors")) == told[kept]
    assert (out / "metrics.csv").exists()
    with pytest.raises(JobOver, match="cannot be resumed: it is cancelled") as caught:
        swarm.resume(job.id)
    assert f"axon fetch {job.id} --round last" in caught.value.fix


def test_a_job_whose_data_never_comes_is_told_of_and_ends(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    first = "inputs = torch.linspace"
    task = TASK.replace(first, f"while True:\n            time.sleep(0)\n        {first}")
    limit = 'step-timeout = "20 s"\n'
    job = swarm.submit(write_job(tmp_path / "line", peers=2, least=2, rounds=2, task=task, train=limit))
    with pytest.raises(JobFailed, match=r"no peer came through its first local step in 2\d s") as caught:
        job.wait()
    assert "axon logs JOB" in caught.value.fix
    told = JobFolder(job.folder).read_events()
    starting = [event for event in told if isinstance(event, PeersStarting) and event.stepping]
    assert sorted(starting[0].stepping) == ["heron", "otter"]
    logs = "".join(log.read_text() for log in (job.folder / "logs").iterdir())
    assert "a piece of the task has taken 1" in logs
    assert "in data" in logs


def test_a_job_ends_by_itself_when_its_rounds_get_no_better(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    train = f"{FIRST_IS_BEST}stop-after = 3\n"
    job = swarm.submit(write_job(tmp_path / "line", peers=2, rounds=MANY, train=train))
    events = list(job.events())
    last = events[-1]
    assert isinstance(last, JobFinished)
    assert (last.rounds, last.receipts) == (4, 8)
    told = errors(events)
    (stops,) = (event for event in events if isinstance(event, TrainingStops))
    assert (stops.rounds, stops.metric, stops.best_round, stops.best) == (4, "error", 0, told[1])
    assert error_of(job.fetch()) == told[4]
    assert error_of(job.fetch(round="best")) == told[1]


def test_a_job_that_was_left_is_ended_without_peers(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = swarm.submit(write_job(tmp_path / "line", peers=2, rounds=MANY, pause=0.02))
    until(job, 2)
    job.leave()
    left = job.wait()
    assert isinstance(left, JobPaused)
    with pytest.raises(JobFailed, match="has no result") as caught:
        job.fetch()
    assert f"axon fetch {job.id} --round last" in caught.value.fix
    weights = job.fetch(round="last")
    done = axon(tmp_path / "client", "stop", job.id, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["round"] == left.round
    record = swarm.status(job.id)
    assert (record.state, record.done) == (JobState.FINISHED, left.round)
    assert all(torch.equal(value, weights[name]) for name, value in swarm.job(job.id).fetch().items())
    assert (job.folder / "report.html").exists()

    for form, name in (("torch", "line.pt"), ("safetensors", "line.safetensors")):
        done = axon(tmp_path / "client", "export", job.id, "-o", str(tmp_path / name), "--format", form)
        assert done.returncode == 0, done.stderr
    assert torch.load(tmp_path / "line.pt", weights_only=True).keys() == weights.keys()
    assert (tmp_path / "line.safetensors").read_bytes() == (job.folder / "model.safetensors").read_bytes()
    done = axon(tmp_path / "client", "export", job.id, "-o", str(tmp_path / "folder"), "--format", "pretrained")
    assert done.returncode == 9
    assert "has no save_pretrained" in done.stderr


def test_a_client_that_dies_while_it_stops_a_job_ends_it_when_it_is_back(processes: Processes, tmp_path: Path) -> None:
    home = tmp_path / "client"
    source = write_job(tmp_path / "line", peers=2, rounds=MANY, pause=0.1)
    words = ["submit", str(source), "--tracker", processes.tracker, "--home", str(home)]
    out = (tmp_path / "out").open("wb")
    client = fork_server().start("client_cli.main", words, out)
    try:
        job = _until_trained(home, 2)
        stopping = fork_server().start("client_cli.main", ["stop", job.path.name, "--home", str(home)], out)
        try:
            _until(lambda: bool(job.read().stops_after), "it does not hear that it is to stop")
            client.kill()
            client.wait()
        finally:
            stopping.kill()
            stopping.wait()
    finally:
        client.kill()
        client.wait()
        out.close()
    killed = job.read()
    assert killed.state is JobState.RUNNING
    done = axon(home, "resume", job.path.name, "--tracker", processes.tracker)
    assert done.returncode == 0, done.stdout + done.stderr
    record = job.read()
    assert (record.state, record.round) == (JobState.FINISHED, killed.stops_after)
    assert error_of(safetensors.torch.load_file(job.model)) == errors(job.read_events())[record.round]


def _until_trained(home: Path, rounds: int) -> JobFolder:
    store = JobStore(home)
    _until(lambda: any(record.done >= rounds for record in store.records()), f"it does not come to round {rounds}")
    return store.find(store.records()[0].id)


def _until(there: Any, why_not: str) -> None:
    began = time.monotonic()
    while not there():
        assert time.monotonic() - began < PATIENCE_S, why_not
        time.sleep(0.02)
