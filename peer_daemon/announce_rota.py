"""Which tracker is announced to, and when (pure).

Trackers are preferred in the order of the settings. The row is kept with the first two that answer; a tracker that is
away is asked again after 1, 2, 4 ... 60 seconds, and is preferred again when it is back.
"""

from __future__ import annotations

from dataclasses import dataclass

WANTED = 2
_FIRST_RETRY_S = 1.0
_LONGEST_RETRY_S = 60.0


@dataclass
class _Turn:
    due: float = 0.0
    """When to announce next; monotonic seconds."""
    failures: int = 0
    answered: bool = False
    """Whether its last word was a yes."""
    may_know_us: bool = False
    """Whether it ever had the row: to be told when the peer leaves."""


class Rota:
    """The turns of `count` trackers. Times are monotonic seconds, passed in."""

    def __init__(self, count: int) -> None:
        self._turns = [_Turn() for _ in range(count)]

    def due(self, now: float) -> list[int]:
        """The trackers to announce to now, by index, in order of preference."""
        return [index for index in self._wanted() if self._turns[index].due <= now]

    def wait(self, now: float) -> float:
        """Seconds until the next one is due."""
        return max(0.0, min((self._turns[index].due for index in self._wanted()), default=now + 3600) - now)

    def answered(self, index: int, again_in: float, now: float) -> bool:
        """The tracker has the row and wants it again in `again_in` seconds. True when it was away before."""
        turn = self._turns[index]
        was_away = turn.failures > 0
        self._turns[index] = _Turn(due=now + again_in, answered=True, may_know_us=True)
        return was_away

    def failed(self, index: int, now: float, chance: float) -> bool:
        """The tracker did not take the row; `chance` is a random number from 0 to 1.

        True when it is the first time in a row: worth a line in the log.
        """
        turn = self._turns[index]
        wait = min(_LONGEST_RETRY_S, _FIRST_RETRY_S * 2 ** min(turn.failures, 10))
        # Up to half as long again, so that peers do not all come back in the same moment as their tracker.
        turn.due = now + wait * (1 + chance / 2)
        turn.failures += 1
        turn.answered = False
        return turn.failures == 1

    def changed(self) -> None:
        """The row says something new: those who have it are to hear it at once."""
        for turn in self._turns:
            if turn.answered:
                turn.due = 0.0

    def may_know_us(self) -> list[int]:
        """The trackers that were ever given a row."""
        return [index for index, turn in enumerate(self._turns) if turn.may_know_us]

    def _wanted(self) -> list[int]:
        """The most preferred ones, until two of them are not known to be away."""
        wanted: list[int] = []
        hopeful = 0
        for index, turn in enumerate(self._turns):
            if hopeful >= WANTED:
                break
            wanted.append(index)
            hopeful += turn.failures == 0
        return wanted
