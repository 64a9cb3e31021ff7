"""Whole jobs: a real tracker, real peers with real sandboxes, and the Python face."""

from __future__ import annotations

import csv
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors.torch
import torch

import axonp2p
from axonp2p.client.events.events import Event, JobCancelled, JobFinished, JobPaused, JobSubmitted, PeerHired, PeerLost
from axonp2p.client.job import Job
from axonp2p.errors import AxonError, JobFailed, NobodyFits, TaskMistake
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import RoundFinished, RoundProgress
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.small_job import TASK, write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with Processes(tmp_path_factory.mktemp("processes")) as running:
        running.start_peers("otter", "heron", "lynx")
        yield running


def until(job: Job, round: int) -> list[Event]:
    """Follow the job until that many rounds are finished."""
    seen = []
    for event in job.events():
        seen.append(event)
        if isinstance(event, RoundFinished) and event.round + 1 == round:
            return seen
    raise AssertionError(f"the job ended before round {round}: {seen[-1]}")


def test_a_job_ends_with_weights_metrics_logs_and_receipts(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = swarm.submit(write_job(tmp_path / "line", peers=3, rounds=6))
    events = list(job.events())

    assert isinstance(events[0], JobSubmitted)
    last = events[-1]
    assert isinstance(last, JobFinished)
    assert sorted(last.peers) == ["heron", "lynx", "otter"]
    assert not last.lost
    rounds = [event for event in events if isinstance(event, RoundFinished)]
    assert [event.round for event in rounds] == list(range(6))
    assert rounds[-1].loss < rounds[0].loss
    assert rounds[-1].metrics["error"] < rounds[0].metrics["error"]
    assert all(earlier.wire_bytes < later.wire_bytes for earlier, later in itertools.pairwise(rounds))

    weights = job.fetch()
    assert {name: tuple(value.shape) for name, value in weights.items()} == {"weight": (1, 2), "bias": (1,)}
    model = torch.nn.Linear(2, 1)
    model.load_state_dict(weights)

    out = job.fetch(tmp_path / "out")
    file = (out / "model.safetensors").read_bytes()
    assert file == safetensors.torch.save(weights)
    assert hashlib.sha256(file).hexdigest() == job.record.model_sha256
    with (out / "metrics.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["round"] for line in lines] == ["1", "2", "3", "4", "5", "6"]
    assert set(lines[0]) == {"round", "loss", "held_out_error", "samples", "seconds", "bytes"}
    assert {int(line["samples"]) for line in lines} == {3 * 5 * 16}
    for name in ("heron", "lynx", "otter"):
        assert "evaluated on 40" in (out / "logs" / f"{name}.log").read_text()


def test_receipts_add_up_to_balances(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = swarm.submit(write_job(tmp_path / "line", peers=2, rounds=3))
    last = job.wait()
    assert isinstance(last, JobFinished)
    assert last.receipts == 2 * 3

    ledger = swarm.credits(job.id)
    assert ledger.receipts == last.receipts
    earned = {balance.name: balance.earned for balance in ledger.balances if balance.earned_flops}
    assert earned == pytest.approx(last.credits)
    assert min(earned.values()) > 0
    assert sum(balance.owed_flops for balance in ledger.balances) == sum(
        balance.earned_flops for balance in ledger.balances
    )


def test_a_peer_that_is_killed_does_not_end_the_job(swarm: axonp2p.Swarm, processes: Processes, tmp_path: Path) -> None:
    processes.start_peers("wren")
    job = swarm.submit(write_job(tmp_path / "line", peers=4, rounds=8, pause=0.02))
    until(job, 2)
    processes.kill("wren")
    events = list(job.events())

    (lost,) = (event for event in events if isinstance(event, PeerLost))
    assert (lost.peer, lost.left) == ("wren", 3)
    last = events[-1]
    assert isinstance(last, JobFinished)
    assert last.lost == ["wren"]
    assert sorted(last.peers) == ["heron", "lynx", "otter"]
    assert [event.round for event in events if isinstance(event, RoundFinished)] == list(range(8))
    assert job.fetch()["weight"].shape == (1, 2)
    (record,) = (peer for peer in job.record.peers if peer.lost)
    assert record.name == "wren"


def test_a_mistake_in_the_task_comes_back_with_traceback_and_peer(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    wrong = TASK.replace("inputs, wanted = batch", "inputs, wanted = batch\n        print(1 / 0)")
    job = swarm.submit(write_job(tmp_path / "line", peers=2, rounds=3, task=wrong))
    with pytest.raises(TaskMistake) as caught:
        list(job.events())
    hired = [peer.name for peer in job.record.peers]
    assert any(name in caught.value.message for name in hired)
    line = 1 + wrong.splitlines().index("        print(1 / 0)")
    assert f'task.py", line {line}, in loss' in caught.value.cause
    assert "ZeroDivisionError" in caught.value.cause
    assert job.record.state is JobState.FAILED
    assert job.record.error is not None
    with pytest.raises(TaskMistake):
        job.fetch()


def test_a_peer_that_is_busy_is_replaced(swarm: axonp2p.Swarm, tmp_path: Path, processes: Processes) -> None:
    first = swarm.submit(write_job(tmp_path / "long", peers=1, rounds=500, pause=0.05))
    (busy,) = (event.peer for event in until(first, 1) if isinstance(event, PeerHired))
    second = swarm.submit(write_job(tmp_path / "short", peers=2, rounds=2))
    last = second.wait()
    assert isinstance(last, JobFinished)
    assert len(last.peers) == 2
    assert busy not in last.peers

    first.cancel()
    assert isinstance(first.wait(), JobCancelled)
    assert first.record.state is JobState.CANCELLED


def test_a_job_that_was_left_goes_on_where_it_was(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    source = write_job(tmp_path / "line", peers=2, rounds=12, pause=0.02)
    job = swarm.submit(source)
    until(job, 3)
    job.leave()
    left = job.wait()
    assert isinstance(left, JobPaused)
    assert 3 <= left.round < 12
    assert job.record.state is JobState.PAUSED
    with pytest.raises(AxonError, match="no result"):
        job.fetch()

    (source / "task.py").unlink()  # the job has its own copy
    again = swarm.resume(job.id)
    events = list(again.events())
    rounds = [event.round for event in events if isinstance(event, RoundFinished)]
    assert rounds == list(range(left.round, 12))
    last = events[-1]
    assert isinstance(last, JobFinished)
    assert last.samples == 12 * 2 * 5 * 16
    assert swarm.credits(job.id).receipts == 12 * 2
    assert any(isinstance(event, RoundProgress) for event in events)


def test_with_too_few_peers_left_what_was_done_is_kept(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "ibex")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(write_job(tmp_path / "line", peers=2, rounds=8, pause=0.02, least=2))
            until(job, 2)
            processes.kill("ibex")
            with pytest.raises(JobFailed) as caught:
                job.wait()
            assert f"axon resume {job.id}" in caught.value.fix
            kept = job.record.kept_round
            assert kept >= 2

            with pytest.raises(NobodyFits):  # only one is left
                swarm.resume(job.id).wait()
            assert job.record.kept_round == kept

            processes.start_peers("tern")
            events = list(swarm.resume(job.id).events())
            assert [event.round for event in events if isinstance(event, RoundFinished)] == list(range(kept, 8))
            last = events[-1]
            assert isinstance(last, JobFinished)
            assert last.samples == 8 * 2 * 5 * 16


def test_too_few_peers_are_said_with_numbers(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    folder = write_job(tmp_path / "line", peers=2, rounds=1)
    text = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text(text.replace("[need]", "[need]\ncores = 64"))
    job = swarm.submit(folder)
    with pytest.raises(NobodyFits) as caught:
        job.wait()
    assert "needs 1 peer and can have 0" in caught.value.message
    assert caught.value.fix
    assert job.record.state is JobState.FAILED
