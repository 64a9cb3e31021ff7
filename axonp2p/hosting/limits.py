"""How much a host takes on (pure numbers)."""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.errors import SettingsError

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
