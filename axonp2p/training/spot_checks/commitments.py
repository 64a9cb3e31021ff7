"""Checks that cost nothing: whether a member's commitments fit together, and with what it reports. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from axonp2p.training.spot_checks.open_checks import Finished
from axonp2p.verification.claims import Mark, RoundDone
from axonp2p.verification.distances import same_memory, same_vector
from axonp2p.verification.judgement import claims_of, legs_of
from axonp2p.verification.rates import BYTES_A_MARKED_VALUE

SIZE_FACTOR = 4
"""Optimisers may remember more than Adam does, but not without end: what is fetched must fit the memory of others."""
LEAST_SIZE = 64 * 1024
JUMP = 10.0
"""How many times more than before, and than the others' median, an optimiser must remember to be looked at."""


def why_no_fit(report: RoundDone, *, every: int, exchanges: int, batch: int, values: int) -> str:
    """The fault of the marks of a report by themselves; empty when there is none."""
    legs = legs_of(report.marks)
    odd = any(leg[0].leg != number or len(leg) < 2 for number, leg in enumerate(legs))
    if odd or not legs or len(legs) != exchanges:
        return f"it committed to {len(legs)} of {exchanges} legs"
    if [mark for leg in legs for mark in leg] != list(report.marks) or legs[0][0].step:
        return "what it committed to is out of order"
    for before, after in pairwise(legs):
        if after[0].step != before[-1].step or not same_memory(after[0].memory, before[-1].memory):
            return "a leg did not begin where the one before it had ended"
    for leg in legs:
        steps = [end.step - start.step for start, end in pairwise(leg)]
        if any(length != every for length in steps[:-1]) or not 0 < steps[-1] <= every:
            return f"it did not commit to every {every} steps"
    if report.marks[-1].step * batch != report.samples:
        return f"it committed to {report.marks[-1].step} steps, and told of {report.samples} samples"
    most = SIZE_FACTOR * BYTES_A_MARKED_VALUE * values + LEAST_SIZE
    return "what it committed to is too large" if any(mark.size > most for mark in report.marks) else ""


def odd_starts(reports: Mapping[int, RoundDone], *, every_leg: bool) -> set[int]:
    """Members whose legs did not begin where those of most others did; of later legs only when all begin alike."""
    odd: set[int] = set()
    several = {rank: [leg[0] for leg in legs_of(report.marks)] for rank, report in reports.items()}
    for place in range(max(map(len, several.values()), default=0) if every_leg else 1):
        starts = {rank: firsts[place] for rank, firsts in several.items() if place < len(firsts)}
        like = {rank: _alike(mark, starts.values()) for rank, mark in starts.items()}
        most = max(like.values(), default=0)
        if 2 * most > len(starts):
            odd |= {rank for rank, count in like.items() if count < most}
    return odd


def jumps(reports: Mapping[int, RoundDone]) -> dict[int, int]:
    """Members whose optimiser came to remember far more in one segment than those of others: which one of theirs.

    A memory that drowns every gradient would make all later steps known without taking them, so the segment in which
    it came to be is looked at for certain.
    """
    ends = {rank: [claim.end.memory for claim in claims_of(report)] for rank, report in reports.items()}
    usual = [_medians(several) for several in zip(*ends.values(), strict=False)]
    found: dict[int, int] = {}
    for rank, report in reports.items():
        for place, (claim, others) in enumerate(zip(claims_of(report), usual, strict=False)):
            before = [*claim.start.memory, *([0.0] * len(others))]
            grown = zip(before, claim.end.memory, others, strict=False)
            if rank not in found and any(end > JUMP * max(start, other) for start, end, other in grown):
                found[rank] = place
    return found


def _medians(memories: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.median_low(norms) for norms in zip(*memories, strict=False)]


def why_marks_missing(reports: Mapping[int, RoundDone]) -> str:
    """Why nothing can be checked in this job, when half of its members or more cannot commit to anything."""
    unmarked = [report for report in reports.values() if not report.marks]
    return _reason_of_half([report.no_marks or "it gave no reason" for report in unmarked], reports)


def why_not_repeated(reports: Mapping[int, RoundDone]) -> str:
    """Why nobody can be led where others were in this job, when half of its members or more say so of themselves."""
    return _reason_of_half([report.not_repeated for report in reports.values() if report.not_repeated], reports)


def _reason_of_half(reasons: Sequence[str], reports: Mapping[int, RoundDone]) -> str:
    return Counter(reasons).most_common(1)[0][0] if reasons and 2 * len(reasons) >= len(reports) else ""


class Memories:
    """Does what each member's optimiser remembers at the start of a round follow from its rounds before?"""

    def __init__(self, *, from_the_start: bool) -> None:
        """`from_the_start`: nobody has trained yet, so all begin with nothing."""
        self._fresh = from_the_start
        self._known: dict[int, list[list[float]]] = {}
        self._unknown: set[int] = set()

    def joins(self, rank: int) -> None:
        """A new member has an optimiser that remembers nothing."""
        self._known[rank] = [[]]

    def unheard(self, ranks: Collection[int]) -> None:
        """These were told to train, and it was not heard where that led: they may go on from there or not."""
        self._unknown |= set(ranks)

    def why_not(self, rank: int, report: RoundDone) -> str:
        """The fault of where it began; notes where it ended."""
        first, last = report.marks[0].memory, report.marks[-1].memory
        known = self._known.get(rank, [[]] if self._fresh else [])
        follows = not known or rank in self._unknown or any(_as_before(first, one) for one in known)
        self._unknown.discard(rank)
        self._known[rank] = [first, last]
        return "" if follows else "its optimiser does not continue from where it was after its last round"


class Commitments:
    """Those of one life of a job: whose do not fit together."""

    def __init__(self, *, batch: int, from_the_start: bool) -> None:
        self._batch = batch
        self._memories = Memories(from_the_start=from_the_start)
        self.spoilt = False
        """Whether nobody's did in the last round: then it is not the members that are odd."""

    def joins(self, rank: int) -> None:
        """A new member."""
        self._memories.joins(rank)

    def breaches(self, done: Finished, values: int) -> dict[int, str]:
        """The members that broke them in a round, of a model of so many values, and how."""
        if not done.every or why_marks_missing(done.reports):
            self._memories.unheard([*done.reports, *done.unheard])
            return {}
        self._memories.unheard(done.unheard)
        found: dict[int, str] = {}
        good: dict[int, RoundDone] = {}
        for rank, report in done.reports.items():
            fault = why_no_fit(report, every=done.every, exchanges=done.exchanges, batch=self._batch, values=values)
            if rank not in done.signed:
                fault = "its daemon did not sign what it reported"
            elif not report.marks:
                fault = f"it committed to nothing, as the others did: {report.no_marks}"
            if fault := fault or self._memories.why_not(rank, report):
                found[rank] = fault
            else:
                good[rank] = report
        self.spoilt = not good
        if self.spoilt:
            return {}
        odd = odd_starts(good, every_leg=done.alike)
        return found | dict.fromkeys(odd, "its steps did not begin from the weights that the others began from")


def _as_before(now: list[float], before: list[float]) -> bool:
    # One that has remembered nothing yet may say so by noughts.
    return same_memory(now, before) or not (any(now) or any(before))


def _alike(mark: Mark, marks: Collection[Mark]) -> int:
    return sum(same_vector(mark.sketch, other.sketch) for other in marks)
