"""Which jobs a host takes, which of them give way to others, and when each is forgotten (pure).

Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from axonp2p.errors import Busy, LimitReached, Refused, TooOften
from axonp2p.hosting.limits import HostLimits
from axonp2p.identity.peer_id import PeerId
from axonp2p.plain_text import bytes_text

ARRIVES_WITHIN_S = 24 * 3600.0
"""For how long a bundle that is not whole is kept for the client to go on sending it."""
TRY_AGAIN_S = 600.0


@dataclass(frozen=True)
class Held:
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
    may_go: bool = False
    """It is over, and its owner needs nothing of it any more."""


@dataclass(frozen=True)
class Applicant:
    """A job that somebody wants to be hosted."""

    owner: PeerId
    job: str
    source: str
    size: int
    """Bytes of its bundle."""


def give_way(held: Iterable[Held]) -> list[Held]:
    """Those that may be forgotten when their place is needed, the first one first."""
    return sorted((one for one in held if one.may_go), key=lambda one: one.over_since)


def admit(applicant: Applicant, held: Sequence[Held], limits: HostLimits) -> list[Held]:
    """Which held jobs to forget so that this one may come. Raises `Refused`, `LimitReached`, `TooOften` or `Busy`."""
    if not limits.jobs or not limits.jobs_of_one:
        raise Refused("this host carries no jobs on", fix="name another tracker with --tracker")
    if applicant.size > limits.disk_bytes:
        held_to = bytes_text(limits.disk_bytes)
        raise LimitReached(f"a bundle of {bytes_text(applicant.size)}; a job may take at most {held_to} at this host")
    others = [one for one in held if (one.owner, one.job) != (applicant.owner, applicant.job)]
    going: list[Held] = []
    for same, most, error in (
        (lambda one: one.owner == applicant.owner, limits.jobs_of_one, _too_many_of_one(limits)),
        (lambda one: one.source == applicant.source, limits.jobs_of_one, _too_many_of_one(limits)),
        (lambda one: True, limits.jobs, _full(limits)),
    ):
        counted = [one for one in others if one not in going and same(one)]
        surplus = len(counted) + 1 - most
        leaving = give_way(counted)[: max(0, surplus)]
        if surplus > len(leaving):
            raise error
        going += leaving
    return going


def _too_many_of_one(limits: HostLimits) -> TooOften:
    return TooOften(
        f"this host holds {limits.jobs_of_one} jobs of yours, which is as many as it holds for one client",
        fix="fetch or cancel one that is over: axon jobs, axon fetch JOB -o OUT",
        wait_s=TRY_AGAIN_S,
    )


def _full(limits: HostLimits) -> Busy:
    return Busy(
        f"this host holds {limits.jobs} jobs, and has no room for another",
        fix="name another tracker with --tracker, or try again later",
        wait_s=TRY_AGAIN_S,
    )


def why_forgotten(held: Held, limits: HostLimits, now: float) -> str:
    """Why this job is to be forgotten now, or an empty text when it is not."""
    days = limits.keep_s / 86400
    if not held.arrived:
        return "its bundle never came" if now > held.began + ARRIVES_WITHIN_S else ""
    if not held.over_since:
        return f"it ran for {days:g} days" if now > held.began + limits.keep_s else ""
    return f"it has been over for {days:g} days" if now > held.over_since + limits.keep_s else ""
