"""Members whose weights differ after a round: whose word is not to be trusted, when that can be told. Pure.

Every member reports, signed by its daemon, the hash of each owner's results as it applied them, and the state that it
came to. Two members *contradict* each other where one owns a slice of which the other had different results, or where
they had the same results of all slices and came to different states. Honest members never contradict each other; so
the liars touch every contradiction, and one who is in more of them than others can account for is a liar itself. With
at most f liars that is who contradicts d members while the contradictions that touch neither it nor these d need more
than f - d liars besides (`sure_liars`).

The rejected way counted accusers against each owner, and two liars of ten had every honest owner dropped at once.

A member in doubt only loses its slices: the round is redone with slices of members that nobody contradicts. Each
redoing costs the liars a contradiction more, of which they have no more than f each. When redoing brings nothing new,
most members' state counts, and the others are left behind: they come back with that state. Where there is no majority
it cannot be told who is wrong, and nobody is accused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from axonp2p.jobs.aggregation import Rule, may_lie
from axonp2p.verification.claims import RoundDone

Pair = frozenset[int]

MOST_UNDECIDED = 2
"""How often a round is redone although it brings nothing new, before it is given up: memory errs once, not for ever."""


@dataclass(frozen=True)
class DivergenceVerdict:
    """The verdict on one attempt in which members differ."""

    gone: Mapping[int, str] = field(default_factory=dict)
    """The members that have lied, or have a broken machine, and go."""
    behind: Mapping[int, str] = field(default_factory=dict)
    """The members that have another state than most; the others can go on without them for now."""
    redo: str = ""
    """Why the round has to be redone."""
    spoilt: bool = False
    """Whether a slice was handed out that its owner, who goes, did not apply itself: even where all others agree."""
    undecided: str = ""
    """Why it is not told who is wrong, when redoing told nothing new."""


class Divergences:
    """Those of one job."""

    def __init__(self) -> None:
        self._pairs: dict[Pair, str] = {}
        self._allowed = 0
        self._dropped = 0
        self._undecided = 0

    def judge(
        self,
        reports: Mapping[int, RoundDone],
        members: Sequence[int],
        owners: Collection[int],
        names: Mapping[int, str],
        rule: Rule,
    ) -> DivergenceVerdict:
        """`reports` of an attempt differ in their state; `members` are all of that attempt, in order.

        Of `owners` alone slices are looked at: whatever is said of an empty one, its hash is no news.
        """
        after = f"after round {next(iter(reports.values())).round + 1}"
        by_slice = _by_slice(reports, members, owners, names, after)
        by_state = _by_state(reports, members, owners, names, after)
        said = {pair: reason for pairs in (by_state, *by_slice.values()) for pair, reason in pairs.items()}
        new = said.keys() - self._pairs.keys()
        self._pairs |= said
        liars = self._liars({pair for pair in self._pairs if pair <= reports.keys()}, may_lie(rule, len(members)))
        if liars:
            self._dropped += len(liars)
            self._undecided = 0
            gone = {rank: self._why(rank, by_slice.get(rank, {}), by_state, after) for rank in liars}
            return DivergenceVerdict(
                gone, redo=next(iter(gone.values())), spoilt=any(by_slice.get(rank) for rank in liars)
            )
        if new:
            return DivergenceVerdict(redo=said[min(new, key=sorted)])
        return self._nothing_new(reports, len(members), next(iter(said.values()), f"they differ {after}"), after)

    def not_owners(self, members: Collection[int], cut: Collection[Pair]) -> list[Pair]:
        """The members that are to own nothing, beside those in `cut`: those in more contradictions than the fewest."""
        free = set(members).difference(*cut)
        counted = Counter(rank for pair in self._pairs if pair <= set(members) for rank in pair)
        fewest = min((counted[rank] for rank in free), default=0)
        return [frozenset((rank,)) for rank in sorted(free) if counted[rank] > fewest]

    def round_ended(self) -> None:
        """A round was accepted."""
        self._undecided = 0

    def _nothing_new(
        self, reports: Mapping[int, RoundDone], members: int, reason: str, after: str
    ) -> DivergenceVerdict:
        state, votes = Counter(report.state for report in reports.values()).most_common(1)[0]
        if 2 * votes > members:
            why = f"its weights differed from most others' {after}"
            return DivergenceVerdict(behind={rank: why for rank, report in reports.items() if report.state != state})
        self._undecided += 1
        return DivergenceVerdict(redo=reason, undecided=reason if self._undecided >= MOST_UNDECIDED else "")

    def _liars(self, pairs: Collection[Pair], most: int) -> list[int]:
        """Those that are sure, but in one job no more than may be liars at all."""
        self._allowed = max(self._allowed, most)
        left = max(most, self._allowed - self._dropped)
        return sure_liars(pairs, left)[: self._allowed - self._dropped]

    def _why(self, rank: int, own: Mapping[Pair, str], by_state: Mapping[Pair, str], after: str) -> str:
        if own:
            return f"the others had different results of its slice {after}"
        if any(rank in pair for pair in by_state):
            return f"its weights differed from the others' {after}"
        reasons = [reason for pair, reason in self._pairs.items() if rank in pair]
        return f"its word differed from that of {len(reasons)} others: {reasons[-1]}"


def _by_slice(
    reports: Mapping[int, RoundDone],
    members: Sequence[int],
    owners: Collection[int],
    names: Mapping[int, str],
    after: str,
) -> dict[int, dict[Pair, str]]:
    """By owner: with whom it contradicts itself about the results of its slice."""
    found: dict[int, dict[Pair, str]] = {}
    for place, owner in enumerate(members):
        if owner in owners and owner in reports:
            ours = reports[owner].slices[place]
            found[owner] = {
                frozenset((owner, rank)): (
                    f"{names[owner]} and {names[rank]} had different results of {names[owner]}'s slice {after}"
                )
                for rank, report in reports.items()
                if report.slices[place] != ours
            }
    return found


def _by_state(
    reports: Mapping[int, RoundDone],
    members: Sequence[int],
    owners: Collection[int],
    names: Mapping[int, str],
    after: str,
) -> dict[Pair, str]:
    """The pairs that had the same results of all slices, and came to different states."""
    places = [place for place, owner in enumerate(members) if owner in owners]
    applied = {rank: [report.slices[place] for place in places] for rank, report in reports.items()}
    return {
        frozenset((one, other)): f"{names[one]} and {names[other]} had different weights of the same results {after}"
        for one in reports
        for other in reports
        if one < other and applied[one] == applied[other] and reports[one].state != reports[other].state
    }


def sure_liars(pairs: Collection[Pair], most: int) -> list[int]:
    """The members that lied for sure, when of all members, of which these pairs are at odds, at most `most` lie.

    Nobody when the pairs show that more lie: then nothing is sure. Liars are a vertex cover of the pairs. How many a
    cover needs is bounded from below by a matching, and the greedy one will do: it accuses nobody too many.
    """
    found: list[int] = []
    left = set(pairs)
    while left:
        if _matching(left) > most:
            return []
        counted = Counter(rank for pair in left for rank in pair)
        sure = [rank for rank in counted if liars_needed(rank, left) > most]
        if not sure:
            break
        worst = max(sure, key=lambda rank: (counted[rank], rank))
        found.append(worst)
        left = {pair for pair in left if worst not in pair}
        most -= 1
    return found


def liars_needed(rank: int, pairs: Collection[Pair]) -> int:
    """How many liars there are at least, if this one is honest."""
    accused = {other for pair in pairs if rank in pair for other in pair - {rank}}
    return len(accused) + _matching({pair for pair in pairs if not pair & accused})


def _matching(pairs: Collection[Pair]) -> int:
    """Of how many pairs no two have a member in common; not always the most."""
    taken: set[int] = set()
    for pair in sorted(pairs, key=sorted):
        if not pair & taken:
            taken |= pair
    return len(taken) // 2
