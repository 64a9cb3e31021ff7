"""How often the members exchange, and in how many bits: chosen from their links and the time of their steps. Pure.

Few exchanges, few bits and late results cost loss (`loss_table`), and waiting for an exchange costs time. Of all ways
to exchange (local steps between exchanges, bits a value, whether steps go on meanwhile) the one is taken that loses
least, among those that fit:

- rounds become longer by a quarter of their computing time at most; where nothing is so quick, the way is taken with
  which a loss is reached first;
- an exchange during which steps go on takes at most 0.8 of their time, so that a line is never filled more than that;
- a job that is sparing sends at most a hundredth of the bytes of dense data-parallel training: that comes first;
- members can keep the ends of the legs, so that work can be checked, where there are such legs.

A member whose own link is too slow for that sends only its large values, the others keep theirs: one slow member does
not make all the others' exchanges rare.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from axonp2p.jobs.aggregation import rule_for
from axonp2p.tensors.coding import EXACT, Bits, Coding
from axonp2p.training.exchange.terms import shares_for
from axonp2p.training.messages import LEAST_PART, MOST_PART, ExchangeSettings
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.tuning.cost_model import NOT_OVERLAPPED, Draft, Scales, leg_s
from axonp2p.training.tuning.costs import ExchangeFacts, bits_a_value, dense_bytes, exchange_bytes
from axonp2p.training.tuning.loss_table import BITS, outer_step_for

LEGS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 60, 100, 200, 500)
"""Local steps between two exchanges that are weighed."""
PART_BYTES = 16 * 1024
"""A part that takes less on the wire is not worth its header."""
PART_S = 0.01
"""A part that takes less time on every line is not worth the work that each one makes."""
MOST_PARTS, FEW_PARTS = 16, 4
"""Of a slice: more do not overlap better (there are more where a frame holds no larger one), fewer do not overlap."""
LEAST_PATIENCE_S, FIRST_PATIENCE_S = 5.0, 60.0
"""So long owners wait for the slowest, at the least; and before any step was measured."""


@dataclass(frozen=True)
class ExchangeChoice:
    """How the members of a round exchange. Ranks as keys are those of its members."""

    settings: ExchangeSettings
    shares: Mapping[int, int]
    gather: Mapping[int, Coding]
    result: Mapping[int, Coding]
    bytes_a_round: int
    """Among the members, as far as it can be foreseen."""
    dense_bytes_a_round: int
    """The bytes that a dense exchange after every step would take."""
    why: str
    """One sentence, for people."""

    @property
    def bits(self) -> Bits:
        """A value's."""
        return next(iter(self.result.values())).bits

    def same_terms(self, other: ExchangeChoice) -> bool:
        """Whether the other differs in nothing but slices, or in who there is."""
        ours, theirs = (msgspec.structs.replace(one.settings, part=LEAST_PART, patience=0.0) for one in (self, other))
        return (ours, self.bits) == (theirs, other.bits) and all(
            coding == other.gather.get(rank, coding) for rank, coding in self.gather.items()
        )


def choose(
    options: ExchangeOptions,
    facts: ExchangeFacts,
    *,
    cut: Collection[frozenset[int]] = (),
    before: ExchangeChoice | None = None,
) -> ExchangeChoice:
    """The best that fits `facts`; what was chosen `before` is kept unless something else is better by a quarter.

    `cut` are pairs of members that cannot reach each other: neither owns a slice. Raises ValueError when everybody has
    such a pair.
    """
    members = facts.members
    shares = shares_for(
        {rank: facts.up(rank) for rank in members}, {rank: facts.down(rank) for rank in members}, cut=cut
    )
    if len(members) == 1 and not facts.listeners:
        return _alone(options, facts, shares)
    scales = Scales(options, facts, _fractions(shares), before.gather if before else {})
    drafts = [scales.weigh(every, bits, overlap=overlap) for every, bits, overlap in _ways(options, facts)]
    best = min(drafts, key=lambda draft: draft.rank)
    if before:
        usual = before.settings.exchange_every, before.bits, before.settings.overlap
        for kept in drafts:
            if (kept.every, kept.result.bits, kept.overlap) == usual and kept.nearly_as_good_as(best):
                best = kept
    return _choice(options, facts, shares, best)


def _ways(options: ExchangeOptions, facts: ExchangeFacts) -> list[tuple[int, Bits, bool]]:
    widths = BITS if options.bits is None else (options.bits,)
    return [
        (every, bits, overlap)
        for every in _legs(options, facts)
        for bits in widths
        for overlap in ((False, True) if options.overlap and every < facts.steps else (False,))
    ]


def _legs(options: ExchangeOptions, facts: ExchangeFacts) -> list[int]:
    steps = facts.steps
    if options.exchange_every:
        return [min(options.exchange_every, steps)]
    # Legs of nearly the same length that fill a round.
    legs = {math.ceil(steps / math.ceil(steps / every)) for every in LEGS if every < steps} | {steps}
    kept = {every for every in legs if facts.checkable(every)} or legs
    return sorted(kept)


def _fractions(shares: Mapping[int, int]) -> dict[int, float]:
    whole = sum(shares.values())
    return {rank: share / whole for rank, share in shares.items()}


def _choice(options: ExchangeOptions, facts: ExchangeFacts, shares: Mapping[int, int], draft: Draft) -> ExchangeChoice:
    exchanges = math.ceil(facts.steps / draft.every)
    computing_s = leg_s(options, facts, exchanges)
    dense = all(coding.density == 1 for coding in draft.gather.values())
    # A member that is alone, but for listeners, goes where its own steps lead.
    past = facts.rounds * exchanges
    learning_rate, momentum = outer_step_for(draft.every, past, dense=dense and len(facts.members) > 1)
    patience = LEAST_PATIENCE_S + 3 * computing_s + 4 * draft.seconds
    settings = ExchangeSettings(
        exchange_every=draft.every,
        overlap=draft.overlap,
        part=_part(facts, shares, draft.result),
        patience=patience if facts.step_s else max(patience, FIRST_PATIENCE_S),
        outer_learning_rate=learning_rate if options.outer_learning_rate is None else options.outer_learning_rate,
        outer_momentum=momentum if options.outer_momentum is None else options.outer_momentum,
        rule=rule_for(options.aggregation, options.hostile, len(facts.members)),
    )
    return ExchangeChoice(
        settings=settings,
        shares=shares,
        gather=draft.gather,
        result=dict.fromkeys(facts.members, draft.result),
        bytes_a_round=round(exchanges * exchange_bytes(facts, draft.gather, draft.result, _fractions(shares))),
        dense_bytes_a_round=dense_bytes(facts.moving, len(facts.members)) * facts.steps,
        why=_why(facts, draft, computing_s),
    )


def _part(facts: ExchangeFacts, shares: Mapping[int, int], result: Coding) -> int:
    """Values a part: small enough that sending, adding up and handing back go on at once."""
    largest = facts.values * max(_fractions(shares).values())
    a_byte = 8 / bits_a_value(result)
    quick = min(map(facts.up, facts.members)) * PART_S * a_byte
    values = max(largest / MOST_PARTS, PART_BYTES * a_byte, min(quick, largest / FEW_PARTS))
    return min(MOST_PART, max(LEAST_PART, math.ceil(values / LEAST_PART) * LEAST_PART))


def _alone(options: ExchangeOptions, facts: ExchangeFacts, shares: Mapping[int, int]) -> ExchangeChoice:
    (rank,) = facts.members
    settings = ExchangeSettings(
        exchange_every=min(options.exchange_every or facts.steps, facts.steps),
        overlap=False,
        part=MOST_PART,
        patience=FIRST_PATIENCE_S,
        outer_learning_rate=1.0 if options.outer_learning_rate is None else options.outer_learning_rate,
        outer_momentum=options.outer_momentum or 0.0,
        rule=rule_for(options.aggregation, options.hostile, 1),
    )
    return ExchangeChoice(
        settings=settings,
        shares=shares,
        gather={rank: EXACT},
        result={rank: EXACT},
        bytes_a_round=0,
        dense_bytes_a_round=0,
        why="there is nobody to exchange with",
    )


def _why(facts: ExchangeFacts, draft: Draft, computing_s: float) -> str:
    slowest = min(facts.up(rank) for rank in facts.members) * 8 / 1e6
    measured = any(facts.upload.get(rank) for rank in facts.members)
    link = f"a slowest upload of {slowest:.3g} Mbit/s" + ("" if measured else ", which is assumed")
    steps = f"{draft.every} local steps about {computing_s:.2g} s"
    told = f"an exchange takes about {draft.seconds:.2g} s over {link}, {steps}"
    if draft.waited > NOT_OVERLAPPED:
        return f"{told}; a round takes {draft.waited:.0%} longer by it"
    return told
