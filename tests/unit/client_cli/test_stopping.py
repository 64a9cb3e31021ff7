"""`axon pause`, `axon stop` and `axon cancel` where no program works on the job, or one does that hears."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from axonp2p.client.storage.job_commands import JobCommand, take
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import JobFailed, JobOver
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.kinds.train.section import TrainJob
from client_cli.main import cli
from tests.unit.kinds.train.kept_job import KeptJob


def make_job(home: Path, state: JobState, kept: int = 0) -> JobFolder:
    record = TrainRecord(
        id="line-1", name="line", folder="/", spec=msgspec.to_builtins(TrainJob(name="line")), state=state, created=0.0,
        updated=0.0, peers_wanted=2, rounds=9, round=kept, kept_round=kept,
    )  # fmt: skip
    return JobStore(home).create(record)


def axon(*words: str, home: Path) -> str:
    done = CliRunner().invoke(cli, [*words, "--home", str(home)], catch_exceptions=False)
    return done.output


def test_a_job_whose_program_died_is_paused_already(tmp_path: Path) -> None:
    folder = make_job(tmp_path, JobState.RUNNING, kept=3)
    said = axon("pause", "line", home=tmp_path)
    assert "line-1 is paused; 3 rounds kept." in said
    assert f"axon resume line-1 --home {tmp_path}" in said
    assert folder.read().state is JobState.PAUSED


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.PAUSED, JobState.FAILED, JobState.CANCELLED])
def test_a_job_without_a_program_is_cancelled_for_good(tmp_path: Path, state: JobState) -> None:
    folder = make_job(tmp_path, state)
    assert "Cancelled line-1." in axon("cancel", "line", home=tmp_path)
    assert folder.read().state is JobState.CANCELLED


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.FAILED])
def test_the_slots_of_a_job_whose_program_was_killed_are_given_back(tmp_path: Path, state: JobState) -> None:
    folder = make_job(tmp_path, state)
    folder.leases.write_bytes(b"[]")
    axon("cancel", "line", home=tmp_path)
    assert not folder.leases.exists()


def test_what_has_finished_is_not_cancelled(tmp_path: Path) -> None:
    make_job(tmp_path, JobState.FINISHED)
    with pytest.raises(JobOver, match="cannot be cancelled: it is finished"):
        axon("cancel", "line", home=tmp_path)


@pytest.mark.parametrize(
    ("words", "wish", "state"),
    [
        (["pause"], JobCommand.PAUSE, JobState.PAUSED),
        (["pause", "--now"], JobCommand.LEAVE, JobState.PAUSED),
        (["cancel"], JobCommand.CANCEL, JobState.CANCELLED),
        (["pause"], JobCommand.PAUSE, JobState.FINISHED),
        (["stop"], JobCommand.STOP, JobState.FINISHED),
    ],
)
def test_the_program_at_work_hears_it_and_is_waited_for(
    tmp_path: Path, words: list[str], wish: JobCommand, state: JobState
) -> None:
    folder = make_job(tmp_path, JobState.RUNNING, kept=2)
    heard: list[JobCommand] = []
    ready = threading.Event()

    def work() -> None:
        with folder.held():
            ready.set()
            while not heard:
                if said := take(folder.path):
                    heard.append(said)
                time.sleep(0.01)
            folder.write(msgspec.structs.replace(folder.read(), state=state, kept_round=3))

    program = threading.Thread(target=work)
    program.start()
    ready.wait(10)
    said = axon(*words, "line", "--json", home=tmp_path)
    program.join(10)
    assert heard == [wish]
    assert json.loads(said)["state"] == state


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.PAUSED, JobState.FAILED])
def test_a_job_without_a_program_is_ended_with_what_is_kept(tmp_path: Path, state: JobState) -> None:
    job = KeptJob(tmp_path)
    for rounds in (1, 2):
        job.train(rounds)
    if state is not JobState.RUNNING:
        job.leave(state)
    said = axon("stop", "line", home=tmp_path)
    assert f"Stopped line-1 after 2 rounds.  Weights: axon fetch line-1 -o OUT --home {tmp_path}" in said
    assert job.record.state is JobState.FINISHED
    assert job.folder.model.exists()
    assert "2 rounds of 40 trained" in job.folder.report.read_text()
    assert "Stopped line-1 after 2 rounds." in axon("stop", "line", home=tmp_path)  # said twice it is no mistake


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.PAUSED, JobState.FAILED])
def test_without_a_round_there_is_nothing_to_stop_with(tmp_path: Path, state: JobState) -> None:
    make_job(tmp_path, state)
    with pytest.raises(JobFailed, match="cannot be stopped: no round is done yet") as caught:
        axon("stop", "line", home=tmp_path)
    assert f"axon cancel line-1 --home {tmp_path}" in caught.value.fix


def test_a_cancelled_job_is_not_stopped_and_says_what_is_kept(tmp_path: Path) -> None:
    job = KeptJob(tmp_path)
    job.train(1)
    assert f"What is kept of it stays in {job.folder.path}" in axon("cancel", "line", home=tmp_path)
    assert job.kept == [1]
    with pytest.raises(JobOver, match="cannot be stopped: it is cancelled") as caught:
        axon("stop", "line", home=tmp_path)
    assert "axon fetch line-1 --round last" in caught.value.fix
    said = axon("fetch", "line", "--round", "last", "-o", str(tmp_path / "out"), home=tmp_path)
    assert "model.safetensors" in said
    assert "the last that is kept: axon fetch line-1 --round last" in axon("status", "line", home=tmp_path)


def test_a_round_is_a_number_or_a_name(tmp_path: Path) -> None:
    for said in ("first", "0", "-1"):
        done = CliRunner().invoke(cli, ["fetch", "line", "--round", said, "-o", "x", "--home", str(tmp_path)])
        assert "say a number from 1 on, last or best" in done.output
