"""Members whose weights differ after a round: which slice it came from, and whose word is not to be trusted. Pure.

Every member reports the hash of each owner's results as it applied them. An owner whose results differ at two others
has handed out different ones. Where they differ at one only, it may be the owner who lied, or that member: the round
is redone with slices that neither of the two owns, and who is in a second dispute goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from axonp2p.training.agreement import majority
from axonp2p.training.messages import RoundDone


@dataclass(frozen=True)
class Verdict:
    """What comes of one attempt in which members differ: who goes, and between whom there is a dispute."""

    gone: Mapping[int, str] = field(default_factory=dict)
    disputes: Mapping[frozenset[int], str] = field(default_factory=dict)
    spoilt: bool = False
    """Whether a slice was handed out that its owner did not apply itself: even where all others have the same."""


class Disputes:
    """Those of one job."""

    def __init__(self) -> None:
        self._disputes: Counter[int] = Counter()

    def judge(self, reports: Mapping[int, RoundDone], members: Sequence[int], names: Mapping[int, str]) -> Verdict:
        """`reports` of an attempt differ in their state; `members` are all of that attempt, in order."""
        after = f"after round {next(iter(reports.values())).round + 1}"
        gone: dict[int, str] = {}
        disputes: dict[frozenset[int], str] = {}
        for place, owner in enumerate(members):
            if owner not in reports:
                continue
            ours = reports[owner].slices[place]
            odd = [rank for rank, report in reports.items() if report.slices[place] != ours]
            if len(odd) > 1:
                gone[owner] = f"the others had different results of its slice {after}"
            elif odd:
                who = f"{names[owner]} and {names[odd[0]]}"
                disputes[frozenset((owner, odd[0]))] = f"{who} had different results of {names[owner]}'s slice {after}"
        if gone:
            return Verdict(gone, spoilt=True)
        return self._second_time(disputes) if disputes else _odd_ones(reports, after)

    def _second_time(self, disputes: Mapping[frozenset[int], str]) -> Verdict:
        """Who was in a dispute of an earlier attempt already has to go, the one in most of them first."""
        involved = {rank for pair in disputes for rank in pair}
        before = {rank: self._disputes[rank] for rank in involved if self._disputes[rank]}
        self._disputes.update(involved)
        if not before:
            return Verdict(disputes=disputes)
        now = Counter(rank for pair in disputes for rank in pair)
        worst = max(before, key=lambda rank: (before[rank] + now[rank], rank))
        return Verdict({worst: next(reason for pair, reason in disputes.items() if worst in pair)})


def _odd_ones(reports: Mapping[int, RoundDone], after: str) -> Verdict:
    """They applied the same results and came to different weights: that is the doing of those that are odd."""
    states = {rank: report.state for rank, report in reports.items()}
    usual = majority(states)
    return Verdict(
        {rank: f"its weights differed from the others' {after}" for rank, state in states.items() if state != usual}
    )
