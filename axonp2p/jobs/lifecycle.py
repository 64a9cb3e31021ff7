"""The states of a job, in the words that every program, page and event uses, and the steps between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from axonp2p.errors import AxonError


class JobState(StrEnum):
    """Where a job is in its life."""

    SUBMITTED = "submitted"
    """Nothing is done for it yet."""
    FINDING = "finding"
    """Peers are looked for and their round-trip times measured."""
    RESERVING = "reserving"
    """A tracker is asked for a token, and peers for leases."""
    SENDING = "sending"
    """The bundle is on its way."""
    RUNNING = "running"
    """Its driver works."""
    FINISHED = "finished"
    """The result is here."""
    FAILED = "failed"
    PAUSED = "paused"
    """Stopped, to be resumed: its owner paused or left it, or too few peers stayed."""
    CANCELLED = "cancelled"
    WAITING = "waiting"
    """Seen, and never written down: it works, and waits for peers without which it cannot go on."""
    INTERRUPTED = "interrupted"
    """Seen, and never written down: it is not over, and no program works on it."""


_OVER_ANY_TIME = frozenset({JobState.FAILED, JobState.PAUSED, JobState.CANCELLED})
_STOPPED = frozenset({JobState.FINISHED})
"""Its owner stopped it: what is kept of it is its result."""

LEGAL: Mapping[JobState, frozenset[JobState]] = {
    JobState.SUBMITTED: _OVER_ANY_TIME | {JobState.FINDING},
    # At once to sending: enough peers have waited for the job.
    JobState.FINDING: _OVER_ANY_TIME | _STOPPED | {JobState.RESERVING, JobState.SENDING},
    # Back to finding: chosen peers were busy, and others are looked for.
    JobState.RESERVING: _OVER_ANY_TIME | _STOPPED | {JobState.FINDING, JobState.SENDING},
    JobState.SENDING: _OVER_ANY_TIME | _STOPPED | {JobState.FINDING, JobState.RUNNING},
    # Back to finding: too few peers were left.
    JobState.RUNNING: _OVER_ANY_TIME | {JobState.FINISHED, JobState.FINDING},
    # Resumed: it finds its peers anew.
    JobState.PAUSED: _STOPPED | {JobState.FINDING, JobState.CANCELLED},
    JobState.FAILED: _STOPPED | {JobState.FINDING, JobState.CANCELLED},
    JobState.FINISHED: frozenset(),
    JobState.CANCELLED: frozenset(),
    JobState.WAITING: frozenset(),
    JobState.INTERRUPTED: frozenset(),
}
"""Every legal step from one state that is written down to another."""


def step(state: JobState, to: JobState) -> JobState:
    """`to`, when a job in `state` may go there. Raises `AxonError`: who asks for another step has made a mistake."""
    if to not in LEGAL[state]:
        raise AxonError(f"a job that is {state} cannot become {to}")
    return to


def seen_state(state: JobState, *, at_work: bool, waits: bool) -> JobState:
    """The state that people are told: what is written down, with what is known of the programs and peers at work."""
    if is_over(state):
        return state
    if not at_work:
        return JobState.INTERRUPTED
    return JobState.WAITING if waits else state


def is_over(state: JobState) -> bool:
    """Whether no program works on a job in this state."""
    return state in (JobState.FINISHED, JobState.FAILED, JobState.PAUSED, JobState.CANCELLED)
