"""The members that are asked to do which steps again, and how long is waited for it. Pure; chance is passed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator

from axonp2p.training.deadlines import SLOWEST_BYTES_S, late_after
from axonp2p.training.round_messages import SegmentHeard, Tell
from axonp2p.training.spot_checks.open_checks import PENDING_ROUNDS, OpenCheck, one_of
from axonp2p.verification.own_proofs import OWN_SEGMENTS

MOST_S = 300.0
"""A member that is asked is not waited for longer than this, beside what the way of a place may take."""
UNKNOWN_S = 30.0
"""At the end of a job in which nobody has answered yet."""
LONGEST_FACTOR = 2.0
"""At the end of a job: so many times what the slowest of them took. Then nobody trains any more, so all are quicker."""
HAND_OVER_S = 30.0
"""A member that takes longer than this, and the way at `SLOWEST_BYTES_S`, has not handed over what it committed to."""
KEPT = 32
IN_TURN = 3 + OWN_SEGMENTS
"""So many answers come one after the other before somebody is convicted: of two who are led elsewhere, and of the
accused about the steps of another, and about its own."""


def hand_over_s(size: int) -> float:
    """How long so many bytes may take from one member to another, beside a round's own traffic."""
    return HAND_OVER_S + size / SLOWEST_BYTES_S


class AnswerTimes:
    """How long those may take who do steps again, learnt from how long it took before: seconds to each answer."""

    def __init__(self) -> None:
        self._took: deque[float] = deque(maxlen=KEPT)

    def note(self, seconds: float) -> None:
        """Somebody has done steps again within so many seconds."""
        self._took.append(seconds)

    def at_the_end(self, size: int) -> float:
        """Seconds for one who is asked when all rounds are trained, about steps that begin from so many bytes.

        Never less than the way of these may take: to wait for less would excuse who does not hand them over.
        """
        usual = max(late_after(self._took), LONGEST_FACTOR * max(self._took)) if self._took else UNKNOWN_S
        return min(MOST_S, usual) + hand_over_s(size)


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
        """The members that are asked about steps of their own now."""
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
        """A member that is late is not waited for."""
        for case in self.cases:
            if case.asked is not None and case.until <= now:
                case.asked = None

    def answered(self, event: SegmentHeard) -> OpenCheck | None:
        """The check that an opinion is about, of which nobody is asked now; None when it was not asked for."""
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


class ComparableDevices:
    """The machines that the members of one job compute on, in their own words, as far as that counts.

    The steps of a member are done again by members that compute on the same kind of device. A processor and a card draw
    other numbers by chance from one seed, and so do two cards with other numbers of processors: dropout then leaves out
    other values, and honest steps lead elsewhere. No tolerance would tell that from a cheat.

    It counts in jobs that ask for cards. In all others a peer could keep out of checks by a made-up word.
    """

    def __init__(self, *, cards: bool) -> None:
        self._cards = cards
        self._devices: dict[int, str] = {}
        self._told: set[int] = set()

    def note(self, rank: int, device: str) -> None:
        """A member has built its model there."""
        self._devices[rank] = device

    def alike(self, rank: int, other: int) -> bool:
        """Whether the steps of one lead where those of the other do."""
        return not self._cards or self._devices.get(rank) == self._devices.get(other)

    def checkable(self, ranks: Collection[int]) -> list[int]:
        """Those of them whose steps another of them can do again."""
        return [rank for rank in sorted(ranks) if any(self.alike(rank, other) for other in ranks if other != rank)]

    def newly_alone(self, ranks: Collection[int]) -> dict[int, str]:
        """Those of several whose steps none of the others can do again, and why; each is told once."""
        alone = set(ranks) - set(self.checkable(ranks)) - self._told if len(ranks) > 1 else set()
        self._told |= alone
        return {rank: f"no other peer computes on what it does ({self._devices.get(rank)})" for rank in sorted(alone)}
