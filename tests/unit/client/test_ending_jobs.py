"""Jobs that are ended with what is kept of them, as far as that needs no swarm."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import torch

import axonp2p
from axonp2p.client.events.events import JobFinished
from axonp2p.client.no_result import cannot_be_stopped, is_over_for, no_result
from axonp2p.errors import JobOver, SettingsError, TrackerUnreachable
from axonp2p.jobs.lifecycle import JobState
from tests.unit.kinds.train.kept_job import JOB, KeptJob

NOBODY = "https://127.0.0.1:1"


def left(home: Path, rounds: int = 3, state: JobState = JobState.PAUSED) -> KeptJob:
    job = KeptJob(home)
    for number in range(1, rounds + 1):
        job.train(number)
    job.leave(state)
    return job


def with_bundle(job: KeptJob) -> KeptJob:
    job.folder.bundle.mkdir()
    (job.folder.bundle / "task.py").write_text("class Task: pass\n")
    (job.folder.bundle / "job.toml").write_text('name = "line"\n[train]\nrounds = 40\n')
    return job


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.FAILED])
def test_a_job_on_which_nobody_works_has_finished_when_stop_returns(tmp_path: Path, state: JobState) -> None:
    kept = left(tmp_path, state=state)
    with axonp2p.Swarm(home=tmp_path) as swarm:  # no tracker is known, and none is asked
        job = swarm.job(JOB)
        job.stop()
        assert job.record.state is JobState.FINISHED
        weights = job.fetch()
    assert all(torch.equal(weights[name], value) for name, value in kept.weights_after(3).items())


def test_a_job_that_looks_for_peers_is_ended_with_what_is_kept(tmp_path: Path) -> None:
    kept = with_bundle(left(tmp_path))
    with axonp2p.Swarm([NOBODY], home=tmp_path) as swarm:
        job = swarm.resume(JOB)  # it waits for peers for minutes
        job.stop()
        job.stop()
        last = job.wait(60)
        assert isinstance(last, JobFinished)
        assert (last.rounds, last.peers) == (3, [])
        weights = job.fetch()
    assert all(torch.equal(weights[name], value) for name, value in kept.weights_after(3).items())
    assert kept.record.state is JobState.FINISHED


def test_a_job_without_a_round_goes_on_to_look_for_peers(tmp_path: Path) -> None:
    with_bundle(left(tmp_path, rounds=0))
    with axonp2p.Swarm([NOBODY], home=tmp_path) as swarm:
        job = swarm.resume(JOB)
        job.stop()
        with pytest.raises(TrackerUnreachable):
            job.wait(60)


def test_what_is_over_for_good_is_not_ended_again(tmp_path: Path) -> None:
    left(tmp_path, state=JobState.CANCELLED)
    with axonp2p.Swarm(home=tmp_path) as swarm:
        with pytest.raises(JobOver, match="it is cancelled") as caught:
            swarm.job(JOB).stop()
        assert f"axon fetch {JOB} --round last -o OUT" in caught.value.fix
        out = swarm.job(JOB).fetch(tmp_path / "out", round="last")
    assert safetensors.torch.load_file(out / "model.safetensors").keys() == {"weight", "bias"}
    assert sorted(path.name for path in out.iterdir()) == ["events.jsonl", "metrics.csv", "model.safetensors"]


@pytest.mark.parametrize("which", ["first", "-1", "1.5", ""])
def test_a_round_that_is_none_is_refused(tmp_path: Path, which: str) -> None:
    left(tmp_path)
    with axonp2p.Swarm(home=tmp_path) as swarm, pytest.raises(SettingsError, match="no round is called"):
        swarm.job(JOB).fetch(round=which)


CAN_GO_ON = [JobState.PAUSED, JobState.FAILED, JobState.RUNNING]


@pytest.mark.parametrize("kept", [0, 3])
@pytest.mark.parametrize("state", [*CAN_GO_ON, JobState.CANCELLED])
def test_each_fix_names_a_command_that_takes_the_job_as_it_is(tmp_path: Path, state: JobState, kept: int) -> None:
    job = left(tmp_path, rounds=kept, state=JobState.CANCELLED if state is JobState.CANCELLED else JobState.PAUSED)
    job.journal.change(state=state)
    fix = no_result(job.record, at_work=False).fix
    assert ("axon resume" in fix) == (state in CAN_GO_ON), "axon resume refuses a job that is cancelled"
    assert ("axon fetch line-1 --round last" in fix) == bool(kept), "axon fetch --round refuses a job without a state"
    assert ("axon submit /line" in fix) == (not kept and state is JobState.CANCELLED)
    if state is JobState.CANCELLED:
        assert is_over_for(job.record, "resumed").fix == fix


def test_a_job_at_work_is_to_be_watched(tmp_path: Path) -> None:
    job = left(tmp_path)
    assert no_result(job.record, at_work=True).fix.startswith("axon fetch line-1 --round last")
    nothing = left(tmp_path / "new", rounds=0)
    assert no_result(nothing.record, at_work=True).fix.startswith("axon watch line-1")
    assert "axon cancel line-1" in cannot_be_stopped(job.record).fix
