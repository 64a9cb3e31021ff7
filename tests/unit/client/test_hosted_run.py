"""The process in which a host carries a job on, as far as it needs no swarm."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.client import hosted_run
from axonp2p.client.events.events import JobEndedBadly
from axonp2p.client.hosted_run import begin, end_as
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import JobFileWrong
from axonp2p.hosting.host import Host
from axonp2p.hosting.hosted_folder import HostedFolder, HostedRecord
from axonp2p.hosting.process import JobProcess, Program, RunOrders
from axonp2p.jobs.lifecycle import JobState
from axonp2p.transport.address import PinnedAddress
from tests.fakes import NOW, key_of
from tests.unit.kinds.train.kept_job import KeptJob

ADA = key_of("ada")
JOB = "line-7f3a"


def write_bundle(bundle: Path) -> None:
    bundle.mkdir(parents=True)
    (bundle / "task.py").write_text("class Task: pass\n")
    (bundle / "job.toml").write_text('name = "line"\n[need]\npeers = 3\n[train]\nrounds = 7\n')


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    write_bundle(tmp_path / JOB / "bundle")
    return JobFolder(tmp_path / JOB)


def test_the_record_is_made_of_the_bundle_alone_and_once(folder: JobFolder) -> None:
    begin(folder)
    record = folder.read()
    assert (record.id, record.name, record.state) == (JOB, "line", JobState.SUBMITTED)
    assert (record.rounds, record.peers_wanted, record.spec["need"]["peers"]) == (7, 3, 3)
    (folder.bundle / "job.toml").write_text("nonsense")
    begin(folder)
    assert folder.read() == record


def test_a_bundle_that_is_no_job_is_told(folder: JobFolder) -> None:
    (folder.bundle / "job.toml").write_text("nonsense")
    with pytest.raises(JobFileWrong):
        begin(folder)


def test_a_job_that_was_given_up_says_why(folder: JobFolder) -> None:
    end_as(folder, JobState.FAILED, "it died five times")
    record = folder.read()
    assert record.state is JobState.FAILED
    assert record.error is not None
    assert record.error.message == "it died five times"
    (event,) = folder.read_events()
    assert isinstance(event, JobEndedBadly)
    assert event.at > 0


def test_what_is_over_stays_what_it_is(folder: JobFolder) -> None:
    for first, then, last in (("paused", "failed", "paused"), ("paused", "cancelled", "cancelled")):
        end_as(folder, JobState(first), "")
        end_as(folder, JobState(then), "")
        assert folder.read().state == last
    (folder.path / "job.json").unlink()
    begin(folder)


def test_a_job_that_is_stopped_without_a_process_has_its_weights(tmp_path: Path) -> None:
    job = KeptJob(tmp_path)
    job.train(1)
    job.leave()
    end_as(job.folder, JobState.FINISHED, "")
    assert job.record.state is JobState.FINISHED
    assert job.folder.model.exists()


def test_a_job_that_is_stopped_before_its_first_round_is_left(folder: JobFolder) -> None:
    end_as(folder, JobState.FINISHED, "")
    assert folder.read().state is JobState.PAUSED


@pytest.mark.parametrize("more", [["--end-as", "cancelled"], ["--copy-from", "https://127.0.0.1:1"], []])
def test_whatever_is_done_for_a_client_the_host_s_own_work_comes_first(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    done: list[str] = []
    monkeypatch.setattr(sys, "argv", ["hosted_run", str(folder.path.parent), JOB, *more])
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(hosted_run, "threading", SimpleNamespace(Thread=lambda **_: SimpleNamespace(start=list)))
    monkeypatch.setattr(hosted_run, "configure_logs", lambda **_: None)
    monkeypatch.setattr(hosted_run, "run_program", lambda body, debug: done.append("work") or 0)
    monkeypatch.setattr(hosted_run.os, "nice", lambda by: done.append(f"nice {by}"))
    hosted_run.main()
    assert done == [f"nice {hosted_run.NICE}", "work"]


async def test_the_real_process_writes_it_down(tmp_path: Path) -> None:
    hosted = HostedFolder(tmp_path, ADA.peer_id, JOB)
    blob = Blob(Manifest(files=[BlobFile(path="task.py", size=0, blake3=b"")]))
    hosted.make(HostedRecord(job=JOB, owner=ADA.peer_id, source="here", blob="", began=NOW), blob, ADA.seed)
    hosted.bundle.rmdir()
    write_bundle(hosted.bundle)
    orders = RunOrders(JOB, 2**20, [])
    assert await Program().end_as(hosted, orders, "failed", "no luck"), hosted.log.read_text()
    progress = hosted.progress()
    assert progress is not None
    assert progress.state is JobState.FAILED


async def test_a_copy_from_a_host_that_is_away_is_told_in_the_log_and_is_no_harm(tmp_path: Path) -> None:
    hosted = HostedFolder(tmp_path, ADA.peer_id, JOB)
    blob = Blob(Manifest(files=[BlobFile(path="task.py", size=0, blake3=b"")]))
    hosted.make(HostedRecord(job=JOB, owner=ADA.peer_id, source="here", blob="", began=NOW), blob, ADA.seed)
    host = Host(PinnedAddress("127.0.0.1", 1, b"a" * 32), key_of("host").peer_id)
    assert not await Program().copy(hosted, RunOrders(JOB, 2**20, []), host)
    assert "127.0.0.1:1" in hosted.log.read_text()
    assert hosted.progress() is None


async def test_a_process_without_a_tracker_says_so_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXON_CLIENT_LAN", "false")
    hosted = HostedFolder(tmp_path, ADA.peer_id, JOB)
    blob = Blob(Manifest(files=[BlobFile(path="task.py", size=0, blake3=b"")]))
    hosted.make(HostedRecord(job=JOB, owner=ADA.peer_id, source="here", blob="", began=NOW), blob, ADA.seed)
    hosted.bundle.rmdir()
    write_bundle(hosted.bundle)
    process = await JobProcess.start(hosted, RunOrders(JOB, 2**20, []))
    try:
        assert await process.wait() == 9
    finally:
        await process.kill()
    assert "no tracker is known" in hosted.log.read_text()
