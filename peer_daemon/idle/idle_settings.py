"""The limits that the owner sets, in the units of the policy (pure values); `read_idle_settings` makes them."""

from __future__ import annotations

from dataclasses import dataclass

from peer_daemon.idle.hours import ANY_TIME, Hours


@dataclass(frozen=True)
class UseRules:
    """The rules while somebody uses the machine, or while nobody does."""

    run: bool = True
    cores: int = 0
    """For each job; 0: as many as it has."""
    memory_mb: int = 0
    """For all jobs together, in MiB; 0: as each job's own limit says."""
    others_cpu: float = 0.25
    """Share of all cores, above 0 and at most 1; 1: other programs are not looked at."""


@dataclass(frozen=True)
class IdleSettings:
    """All that the policy asks of its owner. The defaults are those of the settings."""

    hours: Hours = ANY_TIME
    on_battery: bool = False
    idle_s: float = 180.0
    yield_to: frozenset[str] = frozenset()
    """Names of programs in small letters."""
    others_mbit: int = 0
    metered: bool = False
    hottest_c: int = 90
    gpu_power_percent: int = 0
    """Of what a card usually may draw, while a job has it; 0: as it is."""
    keep_memory_free_mb: int = 512
    keep_disk_free_mb: int = 1024
    hand_back_s: float = 120.0
    standby: bool = True
    """Whether a worker may stand by for the next job."""
    in_use: UseRules = UseRules()
    not_in_use: UseRules = UseRules()
