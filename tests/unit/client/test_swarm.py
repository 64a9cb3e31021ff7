"""The Python face, as far as it needs no swarm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import JobEndedBadly, JobSubmitted
from axonp2p.client.hosted_run import begin
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import (
    AlreadyRunning,
    JobFailed,
    JobFileWrong,
    NotFound,
    PackagesWrong,
    SettingsError,
    TrackerUnreachable,
)
from axonp2p.jobs.bundle import collect
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import read_spec

NOBODY = "https://127.0.0.1:1"

ALONE = """
import sys, axonp2p
assert not any(name.startswith("axonp2p.client") for name in sys.modules)
axonp2p.Swarm
heavy = [name for name in sys.modules if name.split(".")[0] in ("torch", "safetensors", "numpy")]
assert not heavy, heavy
asked_for = ("axonp2p.table.dht.node", "axonp2p.client.hosted.hosts", "axonp2p.client.packages.resolving")
asked_for += ("axonp2p.client.queries", "axonp2p.client.ledger.held_evidence", "kademlia.network")
early = [name for name in asked_for if name in sys.modules]
assert not early, early
maps = open("/proc/self/maps").read()
assert "libtorch" not in maps
"""


def write_job(folder: Path) -> Path:
    folder.mkdir()
    (folder / "task.py").write_text("class Task: pass\n")
    (folder / "job.toml").write_text('name = "line"\n[train]\nrounds = 3\n')
    return folder


def test_the_front_door_is_loaded_late_and_without_torch() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True)
    with pytest.raises(AttributeError):
        _ = axonp2p.nothing_of_that_name


def test_without_a_tracker_nothing_is_written(tmp_path: Path) -> None:
    with axonp2p.Swarm(home=tmp_path / "home") as swarm:
        with pytest.raises(SettingsError, match="no tracker is known"):
            swarm.submit(write_job(tmp_path / "job"))
        assert swarm.jobs() == []


def test_a_folder_without_a_job_is_told_before_a_missing_tracker(tmp_path: Path) -> None:
    with axonp2p.Swarm(home=tmp_path / "home") as swarm:
        for submit in (swarm.submit, swarm.hand_over):
            with pytest.raises(JobFileWrong, match=r"job\.toml"):
                submit(tmp_path)


def test_a_wrong_job_file_is_told_at_once(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job")
    (folder / "task.py").unlink()
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home") as swarm:
        with pytest.raises(JobFileWrong, match=r"task\.py"):
            swarm.submit(folder)
        assert swarm.jobs() == []


def test_a_job_that_finds_no_tracker_fails_and_may_be_resumed(tmp_path: Path) -> None:
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home") as swarm:
        job = swarm.submit(write_job(tmp_path / "job"), peers=2)
        with pytest.raises(TrackerUnreachable):
            job.wait()
        record = swarm.status("line")
        assert (record.id, record.state, record.peers_wanted) == (job.id, JobState.FAILED, 2)
        assert record.error is not None
        assert record.error.code == "AX-302"
        with pytest.raises(TrackerUnreachable):
            swarm.resume(job.id).wait()
        kinds = [type(event) for event in swarm.job(job.id)._folder.read_events()]
        assert kinds == [JobSubmitted, JobEndedBadly] * 2

    with axonp2p.Swarm(home=tmp_path / "home") as swarm:  # what lies on the disk needs no tracker
        assert [found.id for found in swarm.jobs()] == [job.id]
        on_disk = swarm.job(job.id)
        assert [type(event) for event in on_disk.events()] == kinds
        with pytest.raises(JobFailed, match="has no result: it is failed"):
            on_disk.fetch(tmp_path / "out")
        with pytest.raises(NotFound):
            swarm.job("other")


def test_who_names_no_tracker_goes_on_with_the_one_of_the_last_life(tmp_path: Path) -> None:
    """As `axon resume JOB` is told to people: it has no more words than that."""
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home") as swarm:
        job = swarm.submit(write_job(tmp_path / "job"))
        with pytest.raises(TrackerUnreachable):
            job.wait()
    with axonp2p.Swarm(home=tmp_path / "home") as swarm:
        with pytest.raises(TrackerUnreachable, match=r"the tracker does not answer") as caught:
            swarm.resume(job.id).wait()
        assert "127.0.0.1:1" in caught.value.cause
        assert swarm.status(job.id).named_trackers == [NOBODY]


def test_a_job_that_another_program_works_on_is_left_alone(tmp_path: Path) -> None:
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home") as swarm:
        job = swarm.submit(write_job(tmp_path / "job"))
        with pytest.raises(TrackerUnreachable):
            job.wait()
        with job._folder.held(), pytest.raises(AlreadyRunning):
            swarm.resume(job.id)


def test_the_copy_of_the_folder_is_what_is_resumed(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job")
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home") as swarm:
        job = swarm.submit(folder)
        with pytest.raises(TrackerUnreachable):
            job.wait()
        assert (job.folder / "bundle" / "task.py").read_text() == "class Task: pass\n"
        (job.folder / "bundle" / "task.py").unlink()
        with pytest.raises(JobFileWrong, match="the copy that was kept"):
            swarm.resume(job.id)


def test_questions_to_a_tracker_that_is_away(tmp_path: Path) -> None:
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home") as swarm:
        with pytest.raises(TrackerUnreachable):
            swarm.peers()
        with pytest.raises(TrackerUnreachable):
            swarm.credits()


def test_a_job_whose_packages_cannot_be_had_is_not_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    folder = write_job(tmp_path / "job")
    with (folder / "job.toml").open("a") as file:
        file.write('[packages]\ninstall = ["lark"]\n')
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home") as swarm:
        with pytest.raises(PackagesWrong, match="no wheel of lark"):
            swarm.hand_over(folder)
        assert swarm.jobs() == []


def test_a_host_resolves_no_packages_for_a_stranger(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job")
    with (folder / "job.toml").open("a") as file:
        file.write('[packages]\ninstall = ["lark"]\n')
    kept = JobFolder(tmp_path / "home" / "jobs" / "line-7f3a")
    collect(folder, read_spec(folder)).copy_to(kept.bundle)
    begin(kept)
    without = pytest.raises(PackagesWrong, match="handed over without its packages")
    with axonp2p.Swarm([NOBODY], home=tmp_path / "home", hosted=True) as swarm, without:
        swarm.resume("line-7f3a")
