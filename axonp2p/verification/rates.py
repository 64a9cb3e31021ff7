"""How much of whose work is done again, how it is cut for that, and how soon a cheat is found. Pure.

The rate follows BOINC's adaptive replication: a key is checked much until it has passed some checks in a row, then
the rarer the more it has passed; one failure and it begins anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from axonp2p.verification.claims import MOST_MARKS, MOST_SEGMENT_STEPS

PROBATION = 10
"""Checks in a row that a key must pass before it is checked less; BOINC's number."""
FRESH = 4.0
"""How many times the wished share of its work is done again until then."""
TRUSTED = 0.25
"""The least, in parts of the wished share: nobody is ever left unchecked."""
LINE_SHARE = 0.02
"""Of the time of a member's line, at most, for the places from which its work is done again, which are large."""
SEGMENT_STEPS = (8, 12, 16, 20, 30, 40, 50)
"""How long segments may be, the best first. Within 50 steps honest ends of different machines lie near each other."""
BYTES_A_MARKED_VALUE = 16
"""Weights, step lengths, and the two moments of Adam, in float32: at most, for most optimisers."""
TRIALS = 4
"""Rounds at the start in which a member takes some of its own steps again: the first steps of a job may repeat where
later ones do not, and the other way.

Fewer miss tasks that count: with two of them 5 of 30 kinds of hidden state went otherwise than they should
(`scripts/bench/checks --hidden --swarm`). The trainer waits for each, whose process reads the data of its shards anew.
"""
KEPT_ROUNDS = 2
"""Finished ones, of which members hold what they committed to. The coordinator draws when a round counts, and asks at
once."""
ROUNDS_IN_MEMORY = KEPT_ROUNDS + 1
"""With the one that goes on."""
MEMORY_SHARE = 0.25
"""Of the memory that a job asks for, for what is committed to."""


@dataclass(frozen=True)
class Trust:
    """The record that a client has of a key from its own checks."""

    passed: int = 0
    """In a row, since the last that failed."""


def share_redone(trust: Trust, wished: float) -> float:
    """Which share of its work is done again, so that on the whole it is about `wished` or less."""
    if trust.passed < PROBATION:
        return min(1.0, FRESH * wished)
    return wished * max(TRUSTED, PROBATION / trust.passed)


def chance_of_check(trust: Trust, wished: float, segments: int, *, place_s: float = 0.0, round_s: float = 0.0) -> float:
    """How likely one of a member's `segments` of a round is done again.

    A round takes `round_s`, and the place at which a segment begins is on its way for `place_s`.
    """
    by_work = share_redone(trust, wished) * segments
    by_line = LINE_SHARE * round_s / place_s if place_s else math.inf
    return min(1.0, by_work, by_line)


@dataclass(frozen=True)
class Cut:
    """How a round's legs are cut into segments."""

    every: int
    """Steps; 0: they are not."""
    why_not: str = ""


def cut_for(values: int, steps: int, exchange_every: int, memory_bytes: int) -> Cut:
    """How to cut rounds of so many local steps, in legs of `exchange_every`, of a model with so many values."""
    leg = min(exchange_every, steps)
    legs = -(-steps // leg)
    room = int(memory_bytes * MEMORY_SHARE) // (ROUNDS_IN_MEMORY * BYTES_A_MARKED_VALUE * max(1, values))
    for length in SEGMENT_STEPS:
        segments = legs * -(-leg // length)
        if segments <= room and segments + legs <= MOST_MARKS:
            return Cut(min(length, leg, MOST_SEGMENT_STEPS))
    if legs * -(-leg // SEGMENT_STEPS[-1]) + legs > MOST_MARKS:
        return Cut(0, f"a round of {steps} steps with {legs} exchanges has too many parts to commit to each")
    size = ROUNDS_IN_MEMORY * BYTES_A_MARKED_VALUE * values * legs * -(-leg // SEGMENT_STEPS[-1])
    needed = math.ceil(size / MEMORY_SHARE / 2**20)
    return Cut(0, f'what peers would have to keep for it needs memory = "{needed} MiB", or fewer exchanges a round')
