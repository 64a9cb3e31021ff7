"""The readings that the idle policy gets of the machine, and its decisions (pure).

One look is half a second. A page that loads is no reason to stop, a compiler is. So jobs stop after two looks over the
limit or one far over it, and go on by the average of the last seconds: a short burst then does not make them wait anew,
or a machine whose mail program wakes up every ten seconds would never work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Readings:
    """One look at the machine. Our own use, of daemon and workers, is never counted as somebody else's."""

    others_cpu: float = 0.0
    """Share of all cores, 0 to 1, that other programs used since the last look."""
    busiest: tuple[str, ...] = ()
    """Names of the programs that used the most of it, at most three, most first; empty where nobody used much."""
    memory_free_mb: int | None = None
    """The memory that programs could still get without swapping, in MiB."""
    memory_pressure: float | None = None
    """Percent of the last ten seconds in which some program waited for memory (PSI)."""
    workers_memory_mb: int = 0
    """The memory that all workers use together, in MiB."""
    disk_free_mb: int | None = None
    """Where jobs have their folders, in MiB."""
    on_battery: bool | None = None
    battery_percent: float | None = None
    temperature_c: float | None = None
    """The hottest sensor of the processor."""
    metered: bool | None = None
    """Whether the network is said to cost by the byte."""
    others_mbit: float | None = None
    """The traffic that other programs sent and received, in Mbit/s, loopback left out."""
    input_idle_s: float | None = None
    """Since somebody touched keyboard or mouse, in seconds."""
    full_screen: bool | None = None
    """Whether a program keeps the screen for itself, as films, talks and games do."""
    programs: frozenset[str] = frozenset()
    """Those of the programs that the owner named that run now."""


class Act(StrEnum):
    """The action to take with the workers."""

    RUN = "run"
    WAIT = "wait"
    """Freeze them, take no new work."""
    HAND_BACK = "hand back"
    """End them, so that their memory is free; their clients get the work back."""


class Why(StrEnum):
    """The reason, in one word for programs; people read the sentence."""

    FREE = "free"
    BUSY = "busy"
    """Other programs want the CPU."""
    PROGRAM = "program"
    """A program runs that the owner wants to have the machine for itself."""
    IN_USE = "in use"
    """Somebody sits at the machine, and the owner lends it only when nobody does."""
    FULL_SCREEN = "full screen"
    MEMORY = "memory"
    DISK = "disk"
    BATTERY = "battery"
    HOT = "hot"
    HOURS = "hours"
    METERED = "metered"
    NETWORK = "network"
    PAUSED = "paused"
    """The owner said so."""
    FINISHING = "finishing"
    """The owner said so: the present round is done first."""
    NO_SANDBOX = "no sandbox"


@dataclass(frozen=True)
class Decision:
    """The action, and one true sentence that says why ("another program uses 87 % CPU (limit 25 %): firefox")."""

    act: Act
    why: Why
    sentence: str
    cores: int = 0
    """How many cores each job may use now; 0: as many as it has."""


_AVERAGE_S = 3.0
_LOOKS = 2
RESUME_BELOW = 0.8
"""Of a limit: jobs go on below it."""


class OtherPrograms:
    """The share of the processor that other programs used, remembered as far as it matters."""

    def __init__(self) -> None:
        self._average = 0.0
        self._looks_over = 0
        self._last: float | None = None

    def look(self, now: float, share: float, limit: float) -> None:
        """`share` of all cores was used since the last look; `now` is monotonic, in seconds."""
        passed = _AVERAGE_S * 4 if self._last is None else max(0.0, now - self._last)
        self._last = now
        self._average += (share - self._average) * (1 - math.exp(-passed / _AVERAGE_S))
        self._looks_over = self._looks_over + 1 if share > limit else 0

    def stops(self, share: float, limit: float) -> bool:
        """Whether jobs that run are to stop; `share` is that of the last look."""
        far_over = min(2 * limit, (1 + limit) / 2)
        return limit < 1 and (self._looks_over >= _LOOKS or (share > limit and share >= far_over))

    def keeps(self, limit: float) -> float | None:
        """The average, if it is too much for jobs that wait to go on."""
        return self._average if limit < 1 and self._average >= RESUME_BELOW * limit else None
