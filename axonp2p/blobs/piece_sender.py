"""One member that pieces are asked of: how much may be under way with it, and when it is late. Pure; times in seconds.

How much: what it sends in half a second, by its measured rate, so that a fast line never runs dry and a slow one holds
no piece for long. Late: when it has been silent for longer than its arrivals lie apart, their mean and four mean
deviations (Jacobson, "Congestion Avoidance and Control", 1988). A late one rests, longer each time, and is then tried
with one piece: the last one that it owes, if it owes any. Answers keep the order of the asks, so if that one comes
first, the others were lost on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from axonp2p.blobs.messages import MOST_ASKED

MOST_UNDER_WAY = MOST_ASKED
"""Pieces under way with one sender: it may be asked for all of them at once."""
FIRST_UNDER_WAY = 2
AHEAD_S = 0.5
"""How much work a sender has before it."""
MEASURE_S = 0.25
"""Over at least how long a rate is measured."""
LEAST_SILENCE_S = 1.0
LONGEST_REST_S = 60.0


class PieceSender:
    """The facts known of one sender. `patience`: how long it may be silent while nothing is learnt of it."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._deviation = 0.0
        self._heard = 0.0
        self._measured_from = 0.0
        self._measured = 0
        self._silences = 0
        self._rests_until: float | None = None
        self._tried_with: int | None = None
        self.rate: float | None = None
        """Pieces a second, once measured."""
        self.pace: float | None = None
        """Seconds between two arrivals, once there was one: the mean, the last ones weighing more."""
        self.under_way: dict[int, None] = {}
        """Asked of it and not come yet, in order."""
        self.asked: set[int] = set()
        """All that it was ever asked for: such a piece may come at any time."""

    @property
    def resting(self) -> bool:
        """Whether it is late, and so is not asked now."""
        return self._rests_until is not None

    @property
    def silences(self) -> int:
        """How often it was late since it was last heard."""
        return self._silences

    @property
    def room(self) -> int:
        """How many more pieces it may be asked for now."""
        if self.resting:
            return 0
        if self._silences:
            return 0 if self.under_way else 1
        if self.rate is None:
            most = FIRST_UNDER_WAY
        else:
            most = min(max(round(self.rate * AHEAD_S), FIRST_UNDER_WAY), MOST_UNDER_WAY)
        return max(0, most - len(self.under_way))

    def expects(self, number: int) -> bool:
        """Whether this piece is on its way from it, as far as one can tell."""
        if self.resting or number not in self.under_way:
            return False
        return not self._silences or number == self._tried_with

    @property
    def needs(self) -> float:
        """Seconds that it is expected to need for all that is under way with it."""
        return self._patience if self.pace is None else len(self.under_way) * self.pace

    def ask(self, numbers: Sequence[int], now: float) -> None:
        """It is asked for these."""
        if not self.under_way or self._silences:
            self._heard = self._measured_from = now
            self._measured = 0
        if self._silences:
            self._tried_with = numbers[0]
        self.under_way.update(dict.fromkeys(numbers))
        self.asked.update(numbers)

    def to_try(self) -> list[int]:
        """The pieces that it is tried with now; nothing when it is not late, tried already, or owes nothing."""
        if self.resting or not self._silences or self._tried_with is not None:
            return []
        return list(self.under_way)[-1:]

    def heard(self, number: int, now: float, *, learn: bool) -> list[int]:
        """One came; gives those that will not come any more. `learn`: its time tells of others' times."""
        if learn:
            self._learn(now - self._heard)
            self._measured += 1
            if (span := now - self._measured_from) >= MEASURE_S:
                rate = self._measured / span
                self.rate = rate if self.rate is None else (self.rate + rate) / 2
                self._measured_from, self._measured = now, 0
        owed = list(self.under_way)
        lost = owed[: owed.index(number)] if number in self.under_way else []
        for one in [*lost, number]:
            self.under_way.pop(one, None)
        self._heard, self._silences, self._rests_until = now, 0, None
        return lost

    def reset(self) -> None:
        """All pieces under way may be lost: they are waited for no more."""
        self.under_way.clear()
        self._silences, self._rests_until = 0, None

    def due(self, now: float, missing: Collection[int]) -> bool:
        """Time has passed; True when it turns late now: what is under way with it should be asked elsewhere."""
        deadline = self.deadline()
        if deadline is None or now < deadline:
            return False
        if self.resting:
            self._rests_until = self._tried_with = None
            self.under_way = {number: None for number in self.under_way if number in missing}
            return False
        self._rests_until = now + self._silence
        self._silences += 1
        return True

    def deadline(self) -> float | None:
        """When to call `due` next."""
        if self._rests_until is not None:
            return self._rests_until
        waited_for = self._tried_with is not None if self._silences else bool(self.under_way)
        return self._heard + self._silence if waited_for else None

    @property
    def _silence(self) -> float:
        learnt = self._patience if self.pace is None else max(LEAST_SILENCE_S, self.pace + 4 * self._deviation)
        return min(learnt * 2.0 ** min(self._silences, 10), max(learnt, LONGEST_REST_S))

    def _learn(self, gap: float) -> None:
        if self.pace is None:
            self.pace, self._deviation = gap, gap / 2
            return
        self._deviation += (abs(gap - self.pace) - self._deviation) / 4
        self.pace += (gap - self.pace) / 8
