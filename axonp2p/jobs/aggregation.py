"""The rules by which values of several members become one, and how many liars each of them bears. Pure."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec

from axonp2p.wire.codec import Message
from axonp2p.wire.ranks import MOST_MEMBERS

Aggregation = Literal["mean", "median", "trimmed-mean", "centred-clipping", "multi-krum"]
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)
"""As a job file names them. `mean` bears no liar, the others do."""
QUARTER = 4
"""Where nobody says how many may lie, one of so many may."""


class Rule(Message, frozen=True):
    """How the owner of a slice makes one value of the members'."""

    name: Aggregation = "mean"
    hostile: Annotated[int, msgspec.Meta(ge=0, le=MOST_MEMBERS)] = 0
    """How many members may lie without harm."""

    @property
    def robust(self) -> bool:
        """Whether it bears liars at all."""
        return self.name != "mean"

    @property
    def value_by_value(self) -> bool:
        """Whether each value is judged by itself: then a value that is not sent would count as a vote for 0."""
        return self.name in ("median", "trimmed-mean")

    @property
    def least_members(self) -> int:
        """Of fewer members' values it makes nothing: so many liars could say what they want."""
        if not self.robust:
            return 1
        # Krum: Blanchard et al. 2017, 2 f + 2 < n. The others: the honest ones are more than half.
        return 2 * self.hostile + (3 if self.name == "multi-krum" and self.hostile else 1)


MEAN = Rule()


def rule_for(name: Aggregation, hostile: int | None, members: int) -> Rule:
    """The rule among so many members. `hostile` None: a quarter of them may lie, or as many as the rule bears."""
    if name == "mean":
        return MEAN
    if hostile is not None:
        return Rule(name, hostile)
    quarter = members // QUARTER
    return next(rule for few in range(quarter, -1, -1) if (rule := Rule(name, few)).least_members <= max(1, members))


def may_lie(rule: Rule, members: int) -> int:
    """How many of so many members may lie without that an honest one goes for it.

    As many as the rule bears; where it is said to bear none, whoever is in the majority is believed about whose word
    is wrong, though not about values.
    """
    return rule.hostile or (members - 1) // 2
