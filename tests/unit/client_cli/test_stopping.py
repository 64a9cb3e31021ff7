"""`axon pause` and `axon cancel` where no program works on the job, or one does that hears."""

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
from axonp2p.errors import JobFailed
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.kinds.train.section import TrainJob
from client_cli.main import cli


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
    assert "No program worked on line-1; 3 rounds are kept." in said
    assert f"axon resume line-1 --home {tmp_path}" in said
    assert folder.read().state is JobState.LEFT


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.LEFT, JobState.FAILED, JobState.CANCELLED])
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
    with pytest.raises(JobFailed, match="line-1 has finished"):
        axon("cancel", "line", home=tmp_path)


@pytest.mark.parametrize(
    ("words", "wish", "state"),
    [
        (["pause"], JobCommand.PAUSE, JobState.LEFT),
        (["pause", "--now"], JobCommand.LEAVE, JobState.LEFT),
        (["cancel"], JobCommand.CANCEL, JobState.CANCELLED),
        (["pause"], JobCommand.PAUSE, JobState.FINISHED),
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
