"""What is kept of a training: its best round, its end without peers, and the weights of any round of it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from axonp2p.client.events.events import JobFinished
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.errors import JobFailed
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import RoundsLost, StateDamaged, TrainingStops
from axonp2p.kinds.train.kept.best_round import BestRound
from axonp2p.kinds.train.kept.kept_end import finish
from axonp2p.kinds.train.kept.model_files import write_round
from axonp2p.kinds.train.metrics_file import MetricsFile
from tests.fakes import NOW, key_of
from tests.unit.kinds.train.kept_job import JOB, KeptJob

LOSSES = [0.9, 0.3, 0.6, 0.5, 0.4]


def trained(home: Path, losses: list[float] = LOSSES, **train: object) -> KeptJob:
    job = KeptJob(home, **train)
    for rounds, loss in enumerate(losses, 1):
        job.train(rounds, loss)
    return job


def finished(job: KeptJob) -> JobFinished:
    last = finish(job.journal, ReceiptBook(key_of("client"), JOB), NOW)
    job.journal.tell(last)
    return last


def fetched(job: KeptJob, which: str, folder: Path) -> dict[str, Any]:
    """The weights, and which round they are of."""
    number = write_round(job.folder, which, folder / "weights")
    return {"round": number, "weights": safetensors.torch.load_file(folder / "weights")}


def same(weights: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> bool:
    return weights.keys() == others.keys() and all(torch.equal(weights[name], others[name]) for name in weights)


def break_state(job: KeptJob, rounds: int) -> None:
    (one,) = (one for one in job.books.checkpoints.all() if one.rounds == rounds)
    one.path.write_bytes(one.path.read_bytes()[:-1] + b"x")


def test_the_state_of_the_best_round_outlives_newer_ones(tmp_path: Path) -> None:
    job = trained(tmp_path)
    assert job.kept == [5, 4, 2]
    assert job.record.best == BestRound(rounds=2, value=0.3)
    job.train(6, 0.1)
    assert job.kept == [6, 5]
    job.train(7, 0.2)
    assert job.kept == [7, 6]
    job.train(8, 0.2)
    assert job.kept == [8, 7, 6]


def test_the_next_life_finds_the_best_among_the_states_that_are_left(tmp_path: Path) -> None:
    trained(tmp_path).leave()
    again = KeptJob(tmp_path)
    again.books.open(lambda ahead: [])
    assert again.record.best == BestRound(rounds=2, value=0.3)
    (gone,) = (one for one in again.books.checkpoints.all() if one.rounds == 2)
    gone.path.unlink()
    third = KeptJob(tmp_path)
    third.books.open(lambda ahead: [])
    assert third.record.best == BestRound(rounds=5, value=0.4)


def test_any_round_that_is_kept_can_be_fetched_in_any_state(tmp_path: Path) -> None:
    for state in (JobState.RUNNING, JobState.PAUSED, JobState.FAILED, JobState.CANCELLED):
        home = tmp_path / state
        job = trained(home)
        if state is not JobState.RUNNING:
            job.leave(state)
        for which, rounds in {"last": 5, "best": 2, "4": 4}.items():
            found = fetched(job, which, home)
            assert found["round"] == rounds
            assert same(found["weights"], job.weights_after(rounds))


def test_a_round_that_is_not_kept_is_named_with_those_that_are(tmp_path: Path) -> None:
    job = trained(tmp_path)
    with pytest.raises(JobFailed) as caught:
        fetched(job, "3", tmp_path)
    assert caught.value.message == "round 3 of line-1 is not kept"
    assert "after round 5, 4, 2" in caught.value.cause
    assert caught.value.fix == "axon fetch line-1 --round 5 -o OUT"


def test_where_nothing_is_kept_the_fix_leads_on(tmp_path: Path) -> None:
    for state, fix in {JobState.PAUSED: "axon resume line-1", JobState.CANCELLED: "axon submit /line"}.items():
        job = KeptJob(tmp_path / state)
        job.leave(state)
        for which in ("last", "best", "1"):
            with pytest.raises(JobFailed, match=f"no round of line-1 is kept: it is {state}") as caught:
                fetched(job, which, tmp_path)
            assert fix in caught.value.fix


def test_no_round_is_the_best_by_a_metric_that_none_has(tmp_path: Path) -> None:
    job = KeptJob(tmp_path, best="max accuracy")
    job.train(1, 0.5, error=0.2)
    with pytest.raises(JobFailed, match="none that is kept has told accuracy") as caught:
        fetched(job, "best", tmp_path)
    assert caught.value.cause == "evaluate() gives error"


def test_the_last_is_the_newest_that_is_whole_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    job = trained(tmp_path)
    break_state(job, 5)
    assert fetched(job, "last", tmp_path)["round"] == 4
    with pytest.raises(JobFailed, match="the state after round 5 is not on this disk") as caught:
        fetched(job, "5", tmp_path)
    assert "is damaged" in caught.value.cause
    for rounds in (4, 2):
        break_state(job, rounds)
    with pytest.raises(JobFailed, match="no state of line-1 is whole"):
        fetched(job, "last", tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"x" * 20, b"\xff" * 100])
def test_a_layout_that_is_not_what_was_kept_makes_no_file(tmp_path: Path, content: bytes | None) -> None:
    job = trained(tmp_path)
    if content is None:
        job.folder.layout.unlink()
    else:
        job.folder.layout.write_bytes(content)
    with pytest.raises(JobFailed) as caught:
        fetched(job, "last", tmp_path)
    assert re.search(r"model\.layout|which tensors", caught.value.message)
    assert "axon resume line-1" in caught.value.fix
    assert not (tmp_path / "weights").exists()


def test_a_job_that_was_left_finishes_with_what_is_kept(tmp_path: Path) -> None:
    job = trained(tmp_path)
    job.leave()
    last = finished(KeptJob(tmp_path))
    assert (last.rounds, last.loss, last.samples) == (5, 0.4, 5 * 80)
    assert (last.peers, last.receipts) == ([], 0)
    record = job.record
    assert (record.state, record.round, record.units, record.rounds) == (JobState.FINISHED, 5, 5, 40)
    for path, rounds, sha256 in (
        (job.folder.model, 5, record.model_sha256),
        (job.folder.best, 2, record.best_sha256),
    ):
        assert same(safetensors.torch.load_file(path), job.weights_after(rounds))
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    assert not job.folder.states.exists()
    events = job.folder.read_events()
    assert [event.rounds for event in events if isinstance(event, TrainingStops)] == [5]
    assert isinstance(events[-1], JobFinished)


def test_of_a_finished_job_the_last_and_the_best_are_there(tmp_path: Path) -> None:
    job = trained(tmp_path)
    job.leave(JobState.FAILED)
    finished(KeptJob(tmp_path))
    for which, rounds in {"last": 5, "best": 2, "2": 2, "5": 5}.items():
        found = fetched(job, which, tmp_path)
        assert found["round"] == rounds
        assert same(found["weights"], job.weights_after(rounds))
    with pytest.raises(JobFailed, match="round 4 of line-1 is not kept"):
        fetched(job, "4", tmp_path)


def test_where_the_last_round_is_the_best_its_weights_lie_there_once(tmp_path: Path) -> None:
    job = trained(tmp_path, [0.9, 0.5])
    finished(job)
    assert job.record.best == BestRound(rounds=2, value=0.5)
    assert not job.folder.best.exists()
    assert fetched(job, "best", tmp_path)["round"] == 2


def test_rounds_after_the_last_state_are_lost_and_told(tmp_path: Path) -> None:
    job = trained(tmp_path)
    break_state(job, 5)
    job.leave()
    again = KeptJob(tmp_path)
    last = finished(again)
    assert (last.rounds, last.loss) == (4, 0.5)
    assert [type(event) for event in again.told] == [StateDamaged, RoundsLost, TrainingStops, JobFinished]
    assert [int(row["round"]) for row in MetricsFile(job.folder.metrics).rows()] == [1, 2, 3, 4]
    assert same(safetensors.torch.load_file(job.folder.model), job.weights_after(4))


def test_a_damaged_best_state_is_put_aside_and_the_next_best_counts(tmp_path: Path) -> None:
    job = trained(tmp_path, [0.9, 0.3, 0.6, 0.4, 0.5])
    break_state(job, 2)
    again = KeptJob(tmp_path)
    finished(again)
    assert any(isinstance(event, StateDamaged) and event.round == 2 for event in again.told)
    assert job.record.best == BestRound(rounds=4, value=0.4)
    assert same(safetensors.torch.load_file(job.folder.best), job.weights_after(4))


def test_without_a_state_there_is_nothing_to_end_with(tmp_path: Path) -> None:
    job = KeptJob(tmp_path)
    job.leave()
    with pytest.raises(JobFailed, match="has no result") as caught:
        finished(KeptJob(tmp_path))
    assert "axon resume line-1" in caught.value.fix
    assert job.record.state is JobState.PAUSED
