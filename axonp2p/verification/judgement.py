"""The judgement on several members' redoing of the same steps. Pure.

Nothing here is a tolerance that somebody guessed. Every opinion brings a measure of its own: how much it makes to leave
one of the steps out. An end that is nearer than half of that to what was committed to supports it. A conviction takes
two opinions more against it than for it, and those must be honest repeats of each other: four times nearer to each
other than to what was committed to. So what machines, threads and libraries make of the same steps is measured on the
very steps that are in dispute, and a task that no machine can repeat convicts nobody. Whether the accused's own machine
comes to the ends of others is asked before (`scheduler`): it must have supported somebody itself. And whether who
speaks comes to ends of its own again: `own_proofs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from axonp2p.verification.claims import Mark, RoundDone, SegmentRedone
from axonp2p.verification.distances import relative, same_memory
from axonp2p.verification.signed_frames import SignedFrame

MOST_OPINIONS = 5
LEAD = 2
"""Opinions that there must be more on one side than on the other before anybody is convicted."""
GAP = 4.0
"""How many times nearer to each other those must be who accuse."""
OWN_GAP = 40.0
"""How many times nearer than one step makes a machine must come to an end of its own again. Different machines come a
thousand times nearer (docs/trust.md); what a task keeps between its steps may do less than a step does."""
MEMORY_FACTOR = 2.0
"""An optimiser's memories must be as large but for this: it keeps out memories that drown every gradient."""


@dataclass(frozen=True)
class Opinion:
    """Where one member was led by the steps."""

    by: int
    redone: SegmentRedone
    signed: SignedFrame | None = None
    """As its daemon signed it, where that was shown."""


@dataclass(frozen=True)
class Claim:
    """The claim of a member about some of its steps."""

    start: Mark
    end: Mark


def legs_of(marks: Sequence[Mark]) -> list[list[Mark]]:
    """The marks of each leg, in order."""
    found: dict[int, list[Mark]] = {}
    for mark in marks:
        found.setdefault(mark.leg, []).append(mark)
    return list(found.values())


def claims_of(report: RoundDone) -> list[Claim]:
    """The segments that can be done again."""
    return [Claim(start, end) for leg in legs_of(report.marks) for start, end in pairwise(leg)]


class Outcome(Enum):
    """The outcome of a claim."""

    ASK_ANOTHER = auto()
    PASSED = auto()
    CONVICTED = auto()
    UNLIKE = auto()
    """False as others find it, but of a machine that is not led where others are either: no cheat, and of no use."""
    UNDECIDED = auto()
    """Nobody is believed: those who were asked do not agree with each other either, or too few are left to ask."""
    WITHHELD = auto()
    """It did not hand over what it had committed to, to nobody who asked."""


@dataclass(frozen=True)
class Judgement:
    """The outcome, and what is known of those that took part."""

    outcome: Outcome
    distance: float = 0.0
    """Of what was committed to from where the first opinion led, as a share of the movement; 0: equal to the bit."""
    step: float = 0.0
    """The distance that leaving one of the steps out makes, measured alike."""
    against: tuple[int, ...] = ()
    """The members that were led elsewhere, and to the same place."""
    false_accusers: tuple[int, ...] = ()
    """The members that said of a claim that it is false, against at least two more that say it is true, and were led
    four times further away than would still have supported it."""
    alike: tuple[int, ...] = ()
    """The members that were led where the member said."""
    contradicted: tuple[int, ...] = ()
    """The members that were in the minority, by less."""


def judge(claim: Claim, opinions: Sequence[Opinion], *, more: bool) -> Judgement:
    """The judgement of these opinions. `more`: whether there is another member to be asked."""
    said = [opinion for opinion in opinions if opinion.redone.end is not None]
    for_it = [opinion for opinion in said if supports(claim, opinion)]
    against = _repeats(claim, [opinion for opinion in said if opinion not in for_it])
    alone = [opinion for opinion in said if opinion not in for_it and opinion not in against]
    distance, step = (_distance(claim, said[0]), _step(claim, said[0])) if said else (0.0, 0.0)

    def ends(outcome: Outcome, false: Sequence[Opinion] = (), minority: Sequence[Opinion] = ()) -> Judgement:
        sides = _ranks(against), _ranks(false), _ranks(for_it), _ranks(minority)
        return Judgement(outcome, distance, step, *sides)

    if len(against) >= max(2, len(for_it) + LEAD):
        return ends(Outcome.CONVICTED, minority=[*for_it, *alone])
    accusers = [*against, *alone]
    if for_it and not accusers:
        return ends(Outcome.PASSED)
    if len(for_it) >= max(2, len(accusers) + LEAD):
        far = [accuser for accuser in accusers if all(_far(claim, one, accuser) for one in for_it)]
        return ends(Outcome.PASSED, far, [accuser for accuser in accusers if accuser not in far])
    if more and len(opinions) < MOST_OPINIONS:
        return ends(Outcome.ASK_ANOTHER)
    if not said:
        # One alone may say so of a member that handed it everything.
        withheld = len(opinions) > 1 and all(opinion.redone.failed != "cannot be done" for opinion in opinions)
        return ends(Outcome.WITHHELD if withheld else Outcome.UNDECIDED)
    if len(for_it) > len(accusers):
        return ends(Outcome.PASSED, minority=accusers)
    return ends(Outcome.UNDECIDED)


def supports(claim: Claim, opinion: Opinion) -> bool:
    """Whether it led where the member said that it did."""
    end = opinion.redone.end
    if end is None:
        return False
    if end.name == claim.end.name:
        return True
    near = _distance(claim, opinion) <= _step(claim, opinion) / 2
    return near and same_memory(end.memory, claim.end.memory, MEMORY_FACTOR)


def repeats(claim: Claim, opinion: Opinion) -> bool:
    """Whether it, who made the claim, came to the same end again: on the same machine far less than a step is lost."""
    end = opinion.redone.end
    if end is None:
        return False
    near = OWN_GAP * _distance(claim, opinion) <= _step(claim, opinion)
    return end.name == claim.end.name or (near and same_memory(end.memory, claim.end.memory, MEMORY_FACTOR))


def _repeats(claim: Claim, opinions: Sequence[Opinion]) -> list[Opinion]:
    """The most of them that are repeats of each other, and far from what was committed to."""
    best: list[Opinion] = []
    for opinion in opinions:
        group = [opinion, *(other for other in opinions if other is not opinion and _repeat(claim, opinion, other))]
        if len(group) > max(1, len(best)):
            best = group
    return best


def _repeat(claim: Claim, one: Opinion, other: Opinion) -> bool:
    assert one.redone.end
    assert other.redone.end
    if one.redone.end.name == other.redone.end.name:
        return True
    between = relative(one.redone.end.sketch, other.redone.end.sketch, claim.start.sketch)
    return GAP * between <= min(_distance(claim, one), _distance(claim, other))


def _far(claim: Claim, supporter: Opinion, accuser: Opinion) -> bool:
    assert supporter.redone.end
    assert accuser.redone.end
    between = relative(supporter.redone.end.sketch, accuser.redone.end.sketch, claim.start.sketch)
    return between >= GAP * _step(claim, supporter) / 2


def _distance(claim: Claim, opinion: Opinion) -> float:
    """From where it led to what was committed to."""
    end = opinion.redone.end
    assert end
    return 0.0 if end.name == claim.end.name else relative(end.sketch, claim.end.sketch, claim.start.sketch)


def _step(claim: Claim, opinion: Opinion) -> float:
    """The distance that leaving one step out makes."""
    end, before = opinion.redone.end, opinion.redone.before_last
    assert end
    return relative(end.sketch, before, claim.start.sketch) if len(before) == len(end.sketch) else 0.0


def _ranks(opinions: Sequence[Opinion]) -> tuple[int, ...]:
    return tuple(sorted(opinion.by for opinion in opinions))
