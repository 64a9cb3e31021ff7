"""What was seen of the machine at one moment (pure values). None: this machine does not tell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Readings:
    """One look at the machine. What is ours, daemon and workers, is never counted as somebody else's."""

    others_cpu: float = 0.0
    """Share of all cores, 0 to 1, that other programs used since the last look."""
    busiest: tuple[str, ...] = ()
    """Names of the programs that used the most of it, at most three, most first; empty where nobody used much."""
    memory_free_mb: int | None = None
    """What programs could still get without swapping, in MiB."""
    memory_pressure: float | None = None
    """Percent of the last ten seconds in which some program waited for memory (PSI)."""
    workers_memory_mb: int = 0
    """What all workers use together, in MiB."""
    disk_free_mb: int | None = None
    """Where jobs have their folders, in MiB."""
    on_battery: bool | None = None
    battery_percent: float | None = None
    temperature_c: float | None = None
    """The hottest sensor of the processor."""
    metered: bool | None = None
    """Whether the network is said to cost by the byte."""
    others_mbit: float | None = None
    """What other programs sent and received a second, in Mbit/s, loopback left out."""
    input_idle_s: float | None = None
    """Since somebody touched keyboard or mouse, in seconds."""
    full_screen: bool | None = None
    """Whether a program keeps the screen for itself, as films, talks and games do."""
    programs: frozenset[str] = frozenset()
    """Those of the programs that the owner named that run now."""
