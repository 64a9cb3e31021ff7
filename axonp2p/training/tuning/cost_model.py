"""How well a way to exchange fits the members' links and steps. Pure.

A way is local steps between exchanges, bits a value, and whether steps go on meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from axonp2p.jobs.aggregation import Rule
from axonp2p.tensors.coding import Bits, Coding
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.tuning.costs import (
    ExchangeFacts,
    bits_a_value,
    dense_bytes,
    exchange_bytes,
    exchange_s,
    upload_bytes,
    vector_bytes,
    waiting_s,
)
from axonp2p.training.tuning.loss_table import loss_of

OVERLAPPED, NOT_OVERLAPPED = 0.8, 0.25
"""The part of a leg's computing time that an exchange may take, when the next leg goes on meanwhile and when not.

Then a round becomes longer by it. Members whose own links are the reason that it takes more send less.
"""
SHORT = 0.05
"""An exchange that takes no more of a leg is always waited for: then members begin their legs with the same weights."""
FEW_VALUES = 4096
"""They fit a few packets whatever their bits: there headers are what costs."""
FEWER_BYTES = 110
"""By how much a job sends that is sparing, with a margin for headers: a hundredth of dense training's bytes is kept."""
SAMPLES_A_LOSS = 6
"""By which share more samples make good for the share of what was learnt that is missing (`loss_table`): what takes
longer than that is weighed by it. Dense training of `examples/text` with 1 M parameters learns the last 5.6 % in the
last quarter of 480 steps."""
DENSITIES = (1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""The densities with which a member with a slow link may send; SparseLoCo still learns well at the last one."""
LEAST_GAIN = 1.25
"""The choice made before is kept until another one is better by this factor: steps and lines of small jobs are
measured with much noise."""
LEAST_TIME_GAIN = 1.05
"""The same for the time in which a loss is reached."""


@dataclass(frozen=True)
class Draft:
    """One way to exchange that may be chosen, and how well it fits."""

    every: int
    overlap: bool
    gather: Mapping[int, Coding]
    result: Coding
    seconds: float
    waited: float
    """By how much a round takes longer than its computing alone, as a share of that."""
    fits: bool
    """Whether an exchange is over in time where others' steps go on meanwhile."""
    too_large: float
    """By how much its bytes are more than they should be, as a share; 0 when they are not."""
    loss: float

    @property
    def later(self) -> float:
        """The time in which a loss is reached, over that of dense training without lines; 1 for all in good time."""
        return 1.0 if self.waited <= NOT_OVERLAPPED else (1 + self.waited) * (1 + SAMPLES_A_LOSS * self.loss)

    @property
    def rank(self) -> tuple[float, bool, float, float, int]:
        """The least is the best: what loses least in good time, or else reaches a loss first."""
        return (round(self.too_large, 2), not self.fits, round(self.later, 2), self.loss, self.every)

    def nearly_as_good_as(self, best: Draft) -> bool:
        """Whether a change to `best` would gain less than it takes to change."""
        if self.too_large > best.too_large + LEAST_TIME_GAIN - 1 or (best.fits and not self.fits):
            return False
        if best.later > 1:
            return self.later <= LEAST_TIME_GAIN * best.later
        return self.waited <= LEAST_GAIN * NOT_OVERLAPPED and self.loss <= LEAST_GAIN * best.loss


@dataclass(frozen=True)
class Scales:
    """The options that every pair is weighed against."""

    options: ExchangeOptions
    facts: ExchangeFacts
    share: Mapping[int, float]
    usual: Mapping[int, Coding]
    """How members sent their values before."""

    def weigh(self, every: int, bits: Bits, *, overlap: bool) -> Draft:
        facts, members = self.facts, self.facts.members
        exchanges = math.ceil(facts.steps / every)
        computing_s = leg_s(self.options, facts, exchanges)
        allowed_s = computing_s * (OVERLAPPED if overlap else NOT_OVERLAPPED)
        wished = Coding(bits, self.options.density)
        # The members' large values lie at different places, mostly.
        result = _not_larger(Coding(bits, min(1.0, wished.density * len(members))))
        gather = {rank: self._thinned(rank, wished, result, allowed_s) for rank in members}
        if 2 * sum(coding != wished for coding in gather.values()) > len(members):
            # It is not a few slow members that it does not fit, it fits none.
            gather = dict.fromkeys(members, wished)
        seconds = exchange_s(facts, gather, result, self.share)
        return Draft(
            every=every,
            overlap=overlap,
            gather=gather,
            result=result,
            seconds=seconds,
            waited=_waited(exchanges, computing_s, seconds, at_once=overlap) + facts.marks_s() / computing_s,
            fits=SHORT * computing_s < seconds <= allowed_s or not overlap,
            too_large=self._too_large(exchanges * exchange_bytes(facts, gather, result, self.share)),
            loss=loss_of(every, bits, late=overlap),
        )

    def _thinned(self, rank: int, wished: Coding, result: Coding, allowed_s: float) -> Coding:
        """How the member sends its values so that its own link carries them in time, or as nearly so as may be."""
        facts = self.facts
        if Rule(self.options.aggregation).value_by_value:
            return wished  # what it does not send would count as a vote for 0
        thin = [Coding(wished.bits, density) for density in DENSITIES if density < wished.density]
        ladder = [wished, *(coding for coding in thin if bits_a_value(coding) < bits_a_value(wished))]
        mean, share = vector_bytes(facts, result), self.share[rank]
        needs = [upload_bytes(facts, vector_bytes(facts, coding), mean, share) for coding in ladder]
        carries = facts.up(rank) * max(0.0, allowed_s - waiting_s(facts))
        usual = self.usual.get(rank)
        if usual in ladder:
            place = ladder.index(usual)
            if needs[place] <= carries * LEAST_GAIN and (place == 0 or needs[place - 1] * LEAST_GAIN > carries):
                return ladder[place]
        return next((coding for coding, need in zip(ladder, needs, strict=True) if need <= carries), ladder[-1])

    def _too_large(self, round_bytes: float) -> float:
        """By how much a round's bytes are more than they should be, where it is ours to choose."""
        facts = self.facts
        if self.options.bytes == "line" or len(facts.members) == 1 or facts.moving <= FEW_VALUES:
            return 0.0
        dense = dense_bytes(facts.moving, len(facts.members)) * facts.steps
        return max(0.0, round_bytes * FEWER_BYTES / dense - 1)


def _waited(exchanges: int, computing_s: float, seconds: float, *, at_once: bool) -> float:
    """By how much a round takes longer than its computing alone, as a share of that."""
    computing = exchanges * computing_s
    if at_once:
        return max(seconds, computing_s - computing + exchanges * seconds) / computing
    return exchanges * seconds / computing


def leg_s(options: ExchangeOptions, facts: ExchangeFacts, exchanges: int) -> float:
    """Seconds of computing between two exchanges."""
    return min(facts.steps * facts.slowest_step_s, options.seconds or math.inf) / exchanges


def _not_larger(coding: Coding) -> Coding:
    """With many values their places cost more than the values that stay behind save."""
    every = Coding(coding.bits)
    return coding if bits_a_value(coding) < bits_a_value(every) else every
