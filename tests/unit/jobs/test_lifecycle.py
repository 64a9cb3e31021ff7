"""Every step of a job's life: the legal ones, and all the others."""

from __future__ import annotations

import pytest

from axonp2p.errors import AxonError
from axonp2p.jobs.lifecycle import LEGAL, JobState, is_over, step


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("to", JobState)
def test_only_steps_in_the_table_are_taken(state: JobState, to: JobState) -> None:
    if to in LEGAL[state]:
        assert step(state, to) is to
    else:
        with pytest.raises(AxonError, match=f"that is {state} cannot become {to}"):
            step(state, to)


def test_a_job_goes_from_waiting_to_finished() -> None:
    state = JobState.WAITING
    for to in ("finding", "reserving", "finding", "reserving", "sending", "running", "left", "finding"):
        state = step(state, JobState(to))
    for to in ("reserving", "sending", "running", "finished"):
        state = step(state, JobState(to))
    assert is_over(state)


def test_every_state_that_is_not_over_can_fail_and_be_cancelled() -> None:
    for state in JobState:
        if not is_over(state):
            assert {JobState.FAILED, JobState.CANCELLED, JobState.LEFT} <= LEGAL[state]


def test_what_is_finished_or_cancelled_stays_so() -> None:
    assert not LEGAL[JobState.FINISHED]
    assert not LEGAL[JobState.CANCELLED]
