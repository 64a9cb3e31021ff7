"""The states of a job, as a person sees them, and every legal step between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from axonp2p.errors import AxonError


class JobState(StrEnum):
    """Where a job is in its life."""

    WAITING = "waiting"
    """Submitted; nothing is done for it yet."""
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
    LEFT = "left"
    """Stopped by its owner, to be resumed."""
    CANCELLED = "cancelled"


_OVER_ANY_TIME = frozenset({JobState.FAILED, JobState.LEFT, JobState.CANCELLED})
_STOPPED = frozenset({JobState.FINISHED})
"""Its owner stopped it: what is kept of it is its result."""

LEGAL: Mapping[JobState, frozenset[JobState]] = {
    JobState.WAITING: _OVER_ANY_TIME | {JobState.FINDING},
    # At once to sending: enough peers have waited for the job.
    JobState.FINDING: _OVER_ANY_TIME | _STOPPED | {JobState.RESERVING, JobState.SENDING},
    # Back to finding: chosen peers were busy, and others are looked for.
    JobState.RESERVING: _OVER_ANY_TIME | _STOPPED | {JobState.FINDING, JobState.SENDING},
    JobState.SENDING: _OVER_ANY_TIME | _STOPPED | {JobState.FINDING, JobState.RUNNING},
    # Back to finding: too few peers were left.
    JobState.RUNNING: _OVER_ANY_TIME | {JobState.FINISHED, JobState.FINDING},
    # Resumed: it finds its peers anew.
    JobState.LEFT: _STOPPED | {JobState.FINDING, JobState.CANCELLED},
    JobState.FAILED: _STOPPED | {JobState.FINDING, JobState.CANCELLED},
    JobState.FINISHED: frozenset(),
    JobState.CANCELLED: frozenset(),
}
"""Every legal step from one state to another."""


def step(state: JobState, to: JobState) -> JobState:
    """`to`, when a job in `state` may go there. Raises `AxonError`: who asks for another step has made a mistake."""
    if to not in LEGAL[state]:
        raise AxonError(f"a job that is {state} cannot become {to}")
    return to


def is_over(state: JobState) -> bool:
    """Whether no program works on a job in this state."""
    return state in (JobState.FINISHED, JobState.FAILED, JobState.LEFT, JobState.CANCELLED)
