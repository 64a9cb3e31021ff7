"""Every step of a job's life: the legal ones, and all the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.errors import AxonError
from axonp2p.jobs.lifecycle import LEGAL, JobState, is_over, seen_state, step

SEEN_ONLY = (JobState.WAITING, JobState.INTERRUPTED)


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("to", JobState)
def test_only_steps_in_the_table_are_taken(state: JobState, to: JobState) -> None:
    if to in LEGAL[state]:
        assert step(state, to) is to
    else:
        with pytest.raises(AxonError, match=f"that is {state} cannot become {to}"):
            step(state, to)


def test_a_job_goes_from_submitted_to_finished() -> None:
    state = JobState.SUBMITTED
    for to in ("finding", "reserving", "finding", "reserving", "sending", "running", "paused", "finding"):
        state = step(state, JobState(to))
    for to in ("reserving", "sending", "running", "finished"):
        state = step(state, JobState(to))
    assert is_over(state)


def test_every_state_that_is_not_over_can_fail_and_be_cancelled() -> None:
    for state in JobState:
        if not is_over(state) and state not in SEEN_ONLY:
            assert {JobState.FAILED, JobState.CANCELLED, JobState.PAUSED} <= LEGAL[state]


def test_what_is_finished_or_cancelled_stays_so() -> None:
    assert not LEGAL[JobState.FINISHED]
    assert not LEGAL[JobState.CANCELLED]


def test_people_see_what_is_written_unless_nobody_works_or_peers_are_waited_for() -> None:
    for state in LEGAL:
        if is_over(state):
            assert seen_state(state, at_work=False, waits=True) is state
    assert seen_state(JobState.RUNNING, at_work=True, waits=False) is JobState.RUNNING
    assert seen_state(JobState.RUNNING, at_work=True, waits=True) is JobState.WAITING
    assert seen_state(JobState.FINDING, at_work=False, waits=True) is JobState.INTERRUPTED


def test_every_state_is_in_the_table_of_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()
    for state in JobState:
        assert f"| `{state}` |" in page, state
