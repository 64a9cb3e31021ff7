"""The phases of a job's training and every legal step between them. Pure.

NEW         nobody was told anything
PREPARING   every member loads the task and builds its model
AGREEING    members whose state differs get it from another member
TRAINING    rounds, attempt after attempt; one is accepted when all members report the same state
CHECKING    every round is accepted; checks of the last one are waited for
TRAINED     every round is accepted, and nothing is checked any more
LEFT        too few members stay, their owners took the machines back; others may go on another day
GIVEN_UP    the job cannot go on
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Phase(Enum):
    """Where a job's training is."""

    NEW = "new"
    PREPARING = "preparing"
    AGREEING = "agreeing"
    TRAINING = "training"
    CHECKING = "checking"
    TRAINED = "trained"
    LEFT = "left"
    GIVEN_UP = "given up"


LEGAL: Mapping[Phase, frozenset[Phase]] = {
    Phase.NEW: frozenset({Phase.PREPARING}),
    Phase.PREPARING: frozenset({Phase.AGREEING, Phase.LEFT, Phase.GIVEN_UP}),
    Phase.AGREEING: frozenset({Phase.TRAINING, Phase.LEFT, Phase.GIVEN_UP}),
    Phase.TRAINING: frozenset({Phase.CHECKING, Phase.LEFT, Phase.GIVEN_UP}),
    Phase.CHECKING: frozenset({Phase.TRAINED}),
    Phase.TRAINED: frozenset(),
    Phase.LEFT: frozenset(),
    Phase.GIVEN_UP: frozenset(),
}
"""Every legal step from one phase to another; any other is a mistake of ours."""

AT_REST = frozenset({Phase.NEW, Phase.TRAINED, Phase.LEFT, Phase.GIVEN_UP})
"""Phases in which nothing is awaited."""


def advance(phase: Phase, to: Phase) -> Phase:
    """`to`, when it may follow `phase`; raises ValueError when not."""
    if to not in LEGAL[phase]:
        raise ValueError(f"a job that is {phase.value} cannot become {to.value}")
    return to
