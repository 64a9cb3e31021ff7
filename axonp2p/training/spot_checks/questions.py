"""Who is asked to do which steps again, and until when it is waited for. Pure; chance is passed in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from axonp2p.training.deadlines import SLOWEST_BYTES_S
from axonp2p.training.round_messages import SegmentHeard, Tell
from axonp2p.training.spot_checks.answering import IN_TURN, MOST_S, AnswerTimes
from axonp2p.training.spot_checks.open_checks import PENDING_ROUNDS, OpenCheck, one_of
from axonp2p.training.spot_checks.same_device import ComparableDevices

PATIENT_ROUNDS = 1
"""A case that nobody could be asked about for so many rounds is given up: its places are not kept for ever."""


class CheckQuestions:
    """Those of one life of a job, whose rounds have `steps` local steps."""

    def __init__(self, chance: Callable[[], float], steps: int, devices: ComparableDevices) -> None:
        self._chance = chance
        self._devices = devices
        self._steps = steps
        self._times = AnswerTimes()
        self.cases: list[OpenCheck] = []
        """All that are open, in the order in which somebody is asked about them."""
        self.closing = False
        """Whether no other round comes."""

    @property
    def asked_of_own(self) -> set[int]:
        """Who is asked about steps of its own now."""
        return {case.asked for case in self.cases if case.own and case.asked is not None}

    def orders(self, awake: Collection[int], first: Collection[int], now: float) -> Iterator[Tell]:
        """Ask whoever can be asked: those that are `awake`, and rather those in `first`."""
        for case in self.cases:
            if case.asked is None and (free := self._free(case, awake, first)):
                case.asked = free[one_of(free, self._chance)]
                case.tried.add(case.asked)
                case.asked_at, case.until = now, now + self._may_take(case)
                yield Tell(case.asked, case.order(self._steps))

    def deadline(self) -> float | None:
        """When somebody is late with its opinion."""
        return min((case.until for case in self.cases if case.asked is not None), default=None)

    def due(self, now: float) -> None:
        """Who is late is not waited for."""
        for case in self.cases:
            if case.asked is not None and case.until <= now:
                case.asked = None

    def answered(self, event: SegmentHeard) -> OpenCheck | None:
        """What an opinion is about, of which nobody is asked now; None when it was not asked for."""
        place = event.redone.of, event.redone.round, event.redone.attempt, event.redone.step
        case = next((case for case in self.cases if case.asked == event.rank and case.place == place), None)
        if case is not None:
            case.asked = None
        return case

    def took(self, case: OpenCheck, now: float) -> None:
        """So long it took to do its steps again."""
        self._times.note(now - case.asked_at)

    def forget_old(self, present: Collection[int], round: int) -> None:
        """Cases of members that are gone, and whom that is gone was asked: somebody else may be."""
        self.cases = [case for case in self.cases if case.of in present and not _too_old(case, round)]
        for case in self.cases:
            if case.asked not in present:
                case.asked = None

    def goes_on(self, awake: Collection[int], first: Collection[int]) -> bool:
        """Whether anybody is asked, or can be."""
        return any(case.asked is not None or bool(self._free(case, awake, first)) for case in self.cases)

    def could_show(self, rank: int) -> bool:
        """Whether it is asked about steps of another, or may still be."""
        others = (case for case in self.cases if not case.own)
        return any(case.asked == rank or rank in self.left(case, [rank]) for case in others)

    def left(self, case: OpenCheck, ranks: Iterable[int]) -> set[int]:
        """Those of them that can do its steps again and were not asked."""
        others = set(ranks) - case.tried - {case.of}
        return {rank for rank in others if self._devices.alike(rank, case.of)}

    def close(self, disputed: Iterable[OpenCheck], now: float) -> float:
        """No other round comes; for how many seconds open cases, and those in dispute, are worth waiting for."""
        self.closing = True
        for case in self.cases:
            case.until = min(case.until, now + self._may_take(case))
        return IN_TURN * max((self._may_take(case) for case in [*self.cases, *disputed]), default=0.0)

    def _may_take(self, case: OpenCheck) -> float:
        """Seconds for an opinion."""
        size = case.claim.start.size
        return self._times.at_the_end(size) if self.closing else MOST_S + size / SLOWEST_BYTES_S

    def _free(self, case: OpenCheck, awake: Collection[int], first: Collection[int]) -> list[int]:
        busy = {other.asked for other in self.cases}
        if case.own:
            return sorted({case.of}.intersection(awake) - busy - case.tried)
        free = self.left(case, awake) - busy
        return sorted(free.intersection(first) or free)


def _too_old(case: OpenCheck, round: int) -> bool:
    # Once somebody has begun to fetch a place it is kept for those that are asked next.
    patience = PENDING_ROUNDS if case.opinions else PATIENT_ROUNDS
    spent = case.own and case.of in case.tried
    return case.asked is None and (spent or case.round + patience < round)
