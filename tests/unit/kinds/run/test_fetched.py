"""What `Job.fetch` gives and copies of a job that runs copies of a command."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from axonp2p.client.job import Job
from axonp2p.client.storage.event_feed import EventFeed
from axonp2p.client.storage.job_record import new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import JobFailed
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.run.results import CopyResult, ResultsFile
from axonp2p.kinds.run.section import RunJob, RunSection


def finished(home: Path, state: JobState = JobState.FINISHED) -> JobFolder:
    spec = RunJob(name="sweep", kind="run", run=RunSection(command="python w.py", copies=2))
    folder = JobStore(home).create(new_record("sweep-1", spec, "/s", 1.0))
    folder.write(msgspec.structs.replace(folder.read(), state=state))
    results = ResultsFile(folder.path / "results.csv", 2)
    results.add(CopyResult(1, "wren", 5, 1.0, 0))
    results.add(CopyResult(0, "otter", 0, 2.0, 3))
    (folder.path / "out" / "0" / "deep").mkdir(parents=True)
    (folder.path / "out" / "0" / "deep" / "x.txt").write_text("abc")
    folder.add_log("otter", b"hello\n")
    return folder


def test_the_results_are_given_in_the_order_of_their_indices(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    first, second = Job(folder, EventFeed.of([])).fetch()
    assert (first.index, first.peer, first.code, first.seconds) == (0, "otter", 0, 2.0)
    assert first.files == [folder.path / "out" / "0" / "deep" / "x.txt"]
    assert (second.index, second.code, second.files) == (1, 5, [])


def test_files_results_and_logs_are_copied(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    out = Job(folder, EventFeed.of([])).fetch(tmp_path / "OUT")
    copied = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert copied == ["logs/otter.log", "out/0/deep/x.txt", "results.csv"]


def test_a_job_that_is_not_over_has_none(tmp_path: Path) -> None:
    folder = finished(tmp_path, JobState.PAUSED)
    with pytest.raises(JobFailed, match="sweep-1 has no result: it is paused"):
        Job(folder, EventFeed.of([])).fetch()
