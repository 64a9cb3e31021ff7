"""What the idle policy decides (pure values)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Act(StrEnum):
    """What becomes of the workers."""

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
    """What to do, and one true sentence that says why ("another program uses 87 % CPU (limit 25 %): firefox")."""

    act: Act
    why: Why
    sentence: str
    cores: int = 0
    """How many cores each job may use now; 0: as many as it has."""
