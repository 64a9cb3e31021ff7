"""The folders of a home, looked at again and again: what changed is read, what is damaged is a row."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from axonp2p.client.hosted.hosted_mark import HostedMark, write_mark
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.jobs.lifecycle import JobState
from client_cli.jobs_page.home_view import HomeView
from client_cli.jobs_page.listed import ROWS, ListedJobs
from client_cli.report.folder_view import FolderView
from tests.fakes import key_of
from tests.laboratory import paper_home
from tests.laboratory.paper_home import DAMAGED, FAILED, FINISHED, RUNNING


def command(*words: str) -> str:
    return " ".join(["axon", *words])


@pytest.fixture
def view(tmp_path: Path) -> HomeView:
    return HomeView(tmp_path, command)


def words(listed: ListedJobs) -> dict[str, str]:
    return {row.job: row.word for row in listed.rows}


class Reads:
    """Which job folders were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.records: list[str] = []
        self.events: list[str] = []
        read, look = JobFolder.read, FolderView.look
        monkeypatch.setattr(JobFolder, "read", lambda one: (self.records.append(one.path.name), read(one))[1])
        monkeypatch.setattr(FolderView, "look", lambda one: (self.events.append(one._folder.path.name), look(one))[1])

    @contextmanager
    def none(self) -> Iterator[None]:
        self.records.clear()
        self.events.clear()
        yield
        assert (self.records, self.events) == ([], [])


def test_an_empty_home_has_no_rows(view: HomeView) -> None:
    listed = view.look()
    assert (listed.rows, listed.total, listed.page, listed.pages, listed.said) == ([], 0, 1, 1, "no job yet")


def test_each_job_is_a_row_and_the_one_at_work_is_the_first(tmp_path: Path, view: HomeView) -> None:
    job = paper_home.all_of(tmp_path)
    with job.folder.held():
        listed = view.look()
    assert listed.at_work == 1
    assert list(words(listed).items()) == [
        (RUNNING, "RUNNING"), (DAMAGED, "UNREADABLE"), (FINISHED, "FINISHED"), (FAILED, "FAILED"),
        ("sums-4444", "INTERRUPTED"),
    ]  # fmt: skip


def test_nothing_is_read_again_until_it_changes(
    tmp_path: Path, view: HomeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper_home.finished(tmp_path)
    failed = paper_home.failed(tmp_path)
    reads = Reads(monkeypatch)
    first = view.look()
    assert sorted(reads.events) == [FINISHED, FAILED]
    before = view.trace()
    with reads.none():
        assert view.look().rows == first.rows
        assert view.trace() == before
    failed.journal.enter(JobState.CANCELLED)
    assert view.trace() != before
    assert words(view.look())[FAILED] == "CANCELLED"
    assert set(reads.records + reads.events) == {FAILED}


def test_events_are_read_of_the_jobs_on_the_page_alone(
    tmp_path: Path, view: HomeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = paper_home.finished(tmp_path).folder.read()
    store = JobStore(tmp_path)
    for number in range(2 * ROWS):
        store.create(msgspec.structs.replace(record, id=f"job-{number:03}", created=record.created - 1 - number))
    reads = Reads(monkeypatch)
    listed = view.look()
    assert (listed.total, listed.pages, len(listed.rows), listed.rows[0].job) == (2 * ROWS + 1, 3, ROWS, FINISHED)
    assert len(reads.events) == ROWS
    reads.events.clear()
    assert [row.job for row in view.look("3").rows] == [f"job-{2 * ROWS - 1:03}"]
    assert reads.events == [f"job-{2 * ROWS - 1:03}"]


def test_jobs_come_and_go(tmp_path: Path, view: HomeView) -> None:
    job = paper_home.finished(tmp_path)
    assert list(words(view.look())) == [FINISHED]
    before = view.trace()
    paper_home.copies(tmp_path)
    after = view.trace()
    assert after != before
    assert list(words(view.look())) == [FINISHED, "sums-4444"]
    shutil.rmtree(job.folder.path)
    assert view.trace() != after
    assert list(words(view.look())) == ["sums-4444"]


def test_a_running_job_is_followed_event_by_event(tmp_path: Path, view: HomeView) -> None:
    job = paper_home.running(tmp_path)
    with job.folder.held():
        assert view.look().rows[0].sentence == "trains round 14 of 20 on 4 peers"
        before = view.trace()
        job.train(1)
        assert view.trace() != before
        assert view.look().rows[0].sentence == "trains round 15 of 20 on 4 peers"
        job.train(6)
        job.finish()
    row = view.look().rows[0]
    assert (row.word, row.done) == ("FINISHED", 20)
    assert row.sentence.startswith("20 rounds trained in ")


def test_events_that_others_took_the_place_of_are_read_from_their_beginning(tmp_path: Path, view: HomeView) -> None:
    job = paper_home.running(tmp_path)
    with job.folder.held():
        view.look()
        events = job.folder.events.read_bytes()
        job.folder.events.write_bytes(b"")
        assert view.look().rows[0].sentence == "looks for peers"
        job.folder.events.write_bytes(events)
        assert view.look().rows[0].sentence == "trains round 14 of 20 on 4 peers"


def test_damage_of_any_file_is_a_row_and_ends_nothing(tmp_path: Path, view: HomeView) -> None:
    paper_home.damaged(tmp_path)
    torn = paper_home.finished(tmp_path)
    torn.folder.events.unlink()
    torn.folder.events.mkdir()
    lent = paper_home.running(tmp_path)
    (lent.folder.path / "hosted.json").write_text("{")
    os.mkdir(b"%s/jobs/odd-\xff" % os.fsencode(tmp_path))
    Path(os.fsdecode(b"%s/jobs/odd-\xff/job.json" % os.fsencode(tmp_path))).write_text("no json")
    (tmp_path / "jobs" / "no-record").mkdir()
    (tmp_path / "jobs" / "a-file").write_text("")
    listed = view.look()
    assert words(listed) == dict.fromkeys([DAMAGED, FINISHED, RUNNING, "odd-?"], "UNREADABLE")
    assert listed.said == "4 jobs: 4 unreadable" == view.look().said
    before = view.trace()
    assert view.trace() == before
    for row in listed.rows:
        assert row.sentence
        assert row.or_else
    (lent.folder.path / "hosted.json").unlink()
    assert words(view.look())[RUNNING] == "INTERRUPTED"


def test_a_hosted_job_is_as_it_was_last_told(tmp_path: Path, view: HomeView, monkeypatch: pytest.MonkeyPatch) -> None:
    job = paper_home.running(tmp_path)
    mark = HostedMark(tracker="https://127.0.0.1:1#" + "a" * 52, host=key_of("host").peer_id, asked=job.clock.time)
    write_mark(job.folder, mark)
    row = view.look().rows[0]
    assert row.word == "RUNNING"
    assert row.told.startswith("as told by 127.0.0.1:1, asked ")
    assert row.told.endswith(" ago; axon jobs --hosted asks it now")
    asked = time.time()
    write_mark(job.folder, msgspec.structs.replace(mark, at_work=False, asked=asked))
    listed = view.look()
    assert (listed.at_work, listed.rows[0].word) == (0, "INTERRUPTED")
    assert "asked 0 s ago" in listed.rows[0].told
    monkeypatch.setattr(time, "time", lambda: asked + 300)
    with Reads(monkeypatch).none():
        assert "asked 5 min ago" in view.look().rows[0].told
