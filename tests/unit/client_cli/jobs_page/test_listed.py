"""The list of all jobs: which come first, which page shows them, and what each row says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from axonp2p.errors import SettingsError
from axonp2p.jobs.lifecycle import JobState
from client_cli.jobs_page.listed import (
    MOST_LETTERS,
    ROWS,
    JobRow,
    Standing,
    counts_text,
    cut,
    in_order,
    on_page,
    page_number,
    pages_of,
    row_of,
    unreadable_row,
)
from client_cli.report.folder_view import FolderView
from client_cli.report.job_summary import View
from tests.laboratory import paper_home
from tests.laboratory.paper_job import HOSTILE, STATES


def command(*words: str) -> str:
    return " ".join(["axon", *words])


def seen(home: Path, state: str, *, at_work: bool = True) -> View:
    job = STATES[state](home)
    return replace(FolderView(job.folder, ours=at_work).look(), now=job.clock.time)


def row(home: Path, state: str, *, at_work: bool = True) -> JobRow:
    return row_of(seen(home, state, at_work=at_work), command, {})


def test_those_at_work_come_first_and_the_newest_of_each() -> None:
    states = [
        Standing("old-running", 1, JobState.RUNNING),
        Standing("interrupted", 9, JobState.INTERRUPTED),
        Standing("unreadable", 8, None),
        Standing("waiting", 2, JobState.WAITING),
        Standing("finished", 10, JobState.FINISHED),
        Standing("paused", 7, JobState.PAUSED),
        Standing("finding", 3, JobState.FINDING),
    ]
    found = [one.job for one in in_order(states)]
    assert found == ["finding", "waiting", "old-running", "finished", "interrupted", "unreadable", "paused"]


def test_every_state_is_at_work_or_not() -> None:
    at_work = {state for state in JobState if Standing("a", 0, state).at_work}
    assert at_work == {
        JobState.SUBMITTED, JobState.FINDING, JobState.RESERVING, JobState.SENDING, JobState.RUNNING, JobState.WAITING
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "page"),
    [("", 1), ("1", 1), ("2", 2), ("0", 1), ("-1", 1), ("999", 3), ("9" * 5000, 1), ("x", 1), ("²", 1), ("٢", 1)],
)
def test_a_page_that_is_not_there_is_the_nearest_or_the_first(asked: str, page: int) -> None:
    assert page_number(asked, 2 * ROWS + 1) == page


def test_each_job_is_on_one_page() -> None:
    jobs = [Standing(f"job-{number}", number, JobState.FINISHED) for number in range(2 * ROWS + 1)]
    assert pages_of(len(jobs)) == 3
    assert pages_of(2 * ROWS) == 2
    assert pages_of(0) == 1
    assert [one for page in (1, 2, 3) for one in on_page(jobs, page)] == jobs
    assert len(on_page(jobs, 3)) == 1


def test_the_head_counts_states_in_the_order_of_a_life() -> None:
    states = [JobState.FAILED, None, JobState.RUNNING, JobState.FINISHED, JobState.FINISHED, JobState.WAITING]
    said = counts_text(Standing(str(place), 0, state) for place, state in enumerate(states))
    assert said == "6 jobs: 1 running, 2 finished, 1 failed, 1 waiting, 1 unreadable"
    assert counts_text([]) == "no job yet"


def test_a_running_job_says_how_far_it_is_and_needs_nothing(tmp_path: Path) -> None:
    one = row(tmp_path, "running")
    assert (one.look, one.word, one.kind, one.done, one.units, one.units_name) == (
        "running", "RUNNING", "train", 13, 20, "rounds"
    )  # fmt: skip
    assert one.sentence == "trains round 14 of 20 on 4 peers"
    assert one.so_far.startswith("loss 0.")
    assert one.peers == "4"
    assert one.took.endswith(" s")
    assert (one.fix, one.or_else, one.told) == ("", "", "")


@pytest.mark.parametrize(
    ("state", "word", "fix"),
    [
        ("finished", "FINISHED", "axon fetch digits-7f3a -o OUT"),
        ("paused", "PAUSED", "axon resume digits-7f3a"),
        ("failed", "FAILED", "axon resume digits-7f3a"),
        ("waiting", "WAITING", ""),
        ("lost", "RUNNING", ""),
    ],
)
def test_what_is_to_be_done_is_said_where_something_is(tmp_path: Path, state: str, word: str, fix: str) -> None:
    one = row(tmp_path, state)
    assert (one.word, one.fix) == (word, fix)


def test_a_job_that_nobody_works_on_is_interrupted_and_time_stands_still(tmp_path: Path) -> None:
    view = seen(tmp_path, "running", at_work=False)
    one = row_of(view, command, {})
    assert (one.word, one.fix) == ("INTERRUPTED", "axon resume digits-7f3a")
    assert row_of(replace(view, now=view.now + 5000), command, {}).took == one.took


def test_copies_say_their_own(tmp_path: Path) -> None:
    view = FolderView(paper_home.copies(tmp_path), ours=True).look()
    one = row_of(view, command, {})
    assert (one.kind, one.done, one.units, one.units_name, one.so_far) == ("run", 0, 8, "copies", "")
    assert (one.word, one.sentence, one.took, one.credits) == ("SUBMITTED", "is submitted", "", "0")


def test_what_a_host_told_is_told_with_its_age_until_the_job_is_over(tmp_path: Path) -> None:
    hosted = {"hosted": "lab.example:7070, asked 5 min ago", "hosted_at": "https://lab.example:7070"}
    told = "as told by lab.example:7070, asked 5 min ago; axon jobs --hosted asks it now"
    assert row_of(seen(tmp_path / "a", "running"), command, hosted).told == told
    assert row_of(seen(tmp_path / "b", "finished"), command, hosted).told == ""


def test_an_unreadable_job_says_why(tmp_path: Path) -> None:
    error = SettingsError("job.json is damaged", fix="put a copy of it back")
    one = unreadable_row(Standing("torn-\udcff", 5, None), error)
    assert (one.job, one.word, one.readable) == ("torn-?", "UNREADABLE", False)
    assert "job.json is damaged" in one.sentence
    assert one.or_else == "put a copy of it back"


def test_however_much_a_stranger_says_a_row_stays_a_row(tmp_path: Path) -> None:
    job = paper_home.failed(tmp_path, words=HOSTILE * 100)
    one = row_of(FolderView(job.folder, ours=False).look(), command, {})
    assert len(one.sentence) == MOST_LETTERS
    assert one.sentence.endswith("...")
    assert cut("a" * MOST_LETTERS) == "a" * MOST_LETTERS
