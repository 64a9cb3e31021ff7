"""How much a host takes on, which jobs it takes, which of them give way to others, and when each is forgotten (pure).

Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from axonp2p.errors import Busy, LimitReached, Refused, SettingsError, TooOften
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.lifecycle import JobState
from axonp2p.plain_text import bytes_text

DAY_S = 24 * 3600.0
_MIB = 2**20


@dataclass(frozen=True)
class HostLimits:
    """One host's."""

    jobs: int = 4
    """Held at once, whether they run or are over; 0: none."""
    jobs_of_one: int = 2
    """The same of one client, and of all clients at one IP address (or IPv6 household)."""
    disk_bytes: int = 4096 * _MIB
    """Of each job: bundle, states, weights, logs."""
    keep_s: float = 14 * DAY_S
    """For how long a job may run, and again for how long it is kept when it is over."""


def limits_of(jobs: int, jobs_of_one: int, disk_mb: int, days: float) -> HostLimits:
    """As an operator sets them. Raises `SettingsError` for numbers that cannot be meant."""
    if min(jobs, jobs_of_one) < 0 or disk_mb < 1 or days <= 0:
        told = f"hosted-jobs {jobs}, hosted-jobs-of-one {jobs_of_one}, hosted-disk-mb {disk_mb}, hosted-days {days:g}"
        raise SettingsError(
            f"these limits of hosting cannot be meant: {told}", fix="hosted-jobs = 0 to host no job; else more than 0"
        )
    return HostLimits(jobs, jobs_of_one, disk_mb * _MIB, days * DAY_S)


ARRIVAL_IDLE_S = 60.0
"""A bundle of which nothing came for so long gives way to another ..."""
ARRIVAL_STALLED_S = 600.0
"""... and after so long it is forgotten: time for the client to find a better line and go on sending it."""
ARRIVAL_BEGINS_S = 300.0
LEAST_BYTES_S = 32 * 1024
"""How fast a bundle comes at least, once it has had so long to begin."""
FAILED_S = 3600.0
"""For so long a job that failed after some rounds or results keeps its place, when others want it."""
UNBEGUN_S = 3600.0
ROUNDLESS_S = 6 * 3600.0
"""For so long a job may run without a first (or another) round or result, and keep its place when others want it."""
TRY_AGAIN_S = 600.0


@dataclass(frozen=True)
class HeldJob:
    """One job that the host holds."""

    owner: PeerId
    job: str
    source: str
    """The IP address (or IPv6 household) that it came from."""
    began: float
    """When it came."""
    arrived: bool
    """Whether its bundle is whole."""
    over_since: float = 0.0
    """Since when nothing works on it; 0: something does."""
    came_bytes: int = 0
    """Of its bundle, while that is not whole."""
    stirred: float = 0.0
    """When a piece of its bundle, or a new round or result, came last."""
    state: JobState | None = None
    """As its process wrote it down; None before that."""
    done: int = 0
    """Rounds that are accepted, results that are kept."""
    fetched: bool = False
    """Its owner has what came of it."""
    is_copy: bool = False
    """Another host carries it on, and a copy of that is kept here; it stirs when it is copied."""


@dataclass(frozen=True)
class Applicant:
    """A job that somebody wants to be hosted."""

    owner: PeerId
    job: str
    source: str
    size: int
    """Bytes of its bundle."""
    is_copy: bool = False
    """Another host has it, and a copy of that is to be kept."""


def may_go(held: HeldJob, now: float) -> bool:
    """Whether it gives way to another job: it only waits, or its owner loses nothing."""
    if not held.arrived:
        return now - held.stirred >= ARRIVAL_IDLE_S or now - held.began >= arrives_within(held.came_bytes)
    if held.is_copy:
        gone = held.fetched or held.state is JobState.CANCELLED
        return gone or (not held.done and now - held.began >= UNBEGUN_S)
    if not held.over_since:
        return now - held.stirred >= (ROUNDLESS_S if held.done else UNBEGUN_S)
    if held.fetched or held.state is JobState.CANCELLED:
        return True
    if held.state is JobState.FINISHED:
        return False
    failed = held.state is not JobState.PAUSED
    return not held.done or (failed and now - held.over_since >= FAILED_S)


def give_way(held: Iterable[HeldJob], now: float) -> list[HeldJob]:
    """Those that may be forgotten when their place is needed, the first one first: failed ones, the longest over."""

    def order(one: HeldJob) -> tuple[bool, float]:
        return not (one.over_since and one.state not in (JobState.FINISHED, JobState.PAUSED)), one.over_since or now

    return sorted((one for one in held if may_go(one, now)), key=order)


def admit(applicant: Applicant, held: Sequence[HeldJob], limits: HostLimits, now: float) -> list[HeldJob]:
    """Which arriving jobs to forget so that this one may begin to arrive.

    Those that arrive are counted apart: who only says that a job will come keeps nobody out.
    Raises `Refused`, `LimitReached`, `TooOften` or `Busy`, the latter also when it would find no place once it is here.
    """
    if not limits.jobs or not limits.jobs_of_one:
        raise Refused("this host carries no jobs on", fix="name another tracker with --tracker")
    if applicant.size > limits.disk_bytes:
        held_to = bytes_text(limits.disk_bytes)
        raise LimitReached(f"a bundle of {bytes_text(applicant.size)}; a job may take at most {held_to} at this host")
    settle(applicant, held, limits, now)
    return _make_room(applicant, [one for one in held if not one.arrived], limits, now)


def settle(applicant: Applicant, held: Sequence[HeldJob], limits: HostLimits, now: float) -> list[HeldJob]:
    """Which jobs to forget so that this one, which is here now, may stay. Raises `TooOften` or `Busy`.

    Copies are counted apart, as many at once again: they take disk, and no processes.
    """
    alike = [one for one in held if one.arrived and one.is_copy == applicant.is_copy]
    return _make_room(applicant, alike, limits, now)


def _make_room(applicant: Applicant, held: Sequence[HeldJob], limits: HostLimits, now: float) -> list[HeldJob]:
    others = [one for one in held if (one.owner, one.job) != (applicant.owner, applicant.job)]
    going: list[HeldJob] = []
    what = "copies of jobs" if applicant.is_copy else "jobs"
    for same, most, error in (
        (lambda one: one.owner == applicant.owner, limits.jobs_of_one, _too_many_of_one(limits, what)),
        (lambda one: one.source == applicant.source, limits.jobs_of_one, _too_many_of_one(limits, what)),
        (lambda one: True, limits.jobs, _full(limits, what)),
    ):
        counted = [one for one in others if one not in going and same(one)]
        surplus = len(counted) + 1 - most
        leaving = give_way(counted, now)[: max(0, surplus)]
        if surplus > len(leaving):
            raise error
        going += leaving
    return going


def _too_many_of_one(limits: HostLimits, what: str) -> TooOften:
    return TooOften(
        f"this host holds {limits.jobs_of_one} {what} of yours, which is as many as it holds for one client",
        fix="fetch or cancel one that is over: axon jobs, axon fetch JOB -o OUT",
        wait_s=TRY_AGAIN_S,
    )


def _full(limits: HostLimits, what: str) -> Busy:
    return Busy(
        f"this host holds {limits.jobs} {what}, and has no room for another",
        fix="name another tracker with --tracker, or try again later",
        wait_s=TRY_AGAIN_S,
    )


def why_forgotten(held: HeldJob, limits: HostLimits, now: float) -> str:
    """Why this job is to be forgotten now, or an empty text when it is not."""
    days = limits.keep_s / 86400
    if not held.arrived:
        stalled = now > held.stirred + ARRIVAL_STALLED_S
        return f"nothing of its bundle came for {ARRIVAL_STALLED_S / 60:g} minutes" if stalled else ""
    if held.is_copy:
        return f"it was not copied for {days:g} days" if now > held.stirred + limits.keep_s else ""
    if not held.over_since:
        return f"it ran for {days:g} days" if now > held.began + limits.keep_s else ""
    return f"it has been over for {days:g} days" if now > held.over_since + limits.keep_s else ""


def arrives_within(size: int) -> float:
    """Seconds in which so many bytes come, at least."""
    return ARRIVAL_BEGINS_S + size / LEAST_BYTES_S
