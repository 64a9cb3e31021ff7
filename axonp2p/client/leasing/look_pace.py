"""When the table is asked again while a job waits for peers. Pure."""

from __future__ import annotations

from collections.abc import Callable

PATIENT_AFTER_S = 600.0
LONGEST_PATIENT_S = 60.0
"""A job that has waited for so long asks once in so many seconds."""


class LookPace:
    """The pauses of one job: from `first_s` on each is twice as long as the one before, up to `longest_s`.

    `chance` gives numbers from 0 to 1. Each pause is up to a quarter shorter or longer by it: several jobs that wait
    for the same peers then do not ask at the same moment, again and again.
    """

    def __init__(self, first_s: float, longest_s: float, chance: Callable[[], float]) -> None:
        self._next_s = first_s
        self._longest_s = longest_s
        self._chance = chance
        self._waited_s = 0.0

    def pause(self, left_s: float) -> float:
        """Seconds until the next question, at most those that are left."""
        pause = min(self._next_s * (0.75 + 0.5 * self._chance()), left_s)
        self._waited_s += pause
        longest = self._longest_s if self._waited_s < PATIENT_AFTER_S else LONGEST_PATIENT_S
        self._next_s = min(2 * self._next_s, longest)
        return pause
