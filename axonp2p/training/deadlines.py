"""How long members are waited for: learned from the others where there are others, generous where there are none. Pure.

Machines that volunteers lend differ by orders of magnitude, so no fixed number of seconds is right for a round. What
half of the members needed says what the rest may need.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection
from dataclasses import dataclass

LEAST_REST_S = 10.0
"""Who is slower than half of the members has at least this long more."""
REST_FACTOR = 3.0
"""... or this many times what that half needed."""
GRACE_S = 10.0
"""After a mistake, or a broken link, this long is waited for what the others have to say."""
LEAST_STALL_S = 300.0
STALL_FACTOR = 10.0
"""A round in which nobody finishes is taken for stuck after this many times what a round usually takes."""
SLOWEST_BYTES_S = 125_000
"""1 Mbit/s: a link that moves a model more slowly than this is of no use for training it."""
TRAVELLING_BYTES_A_VALUE = 8
"""What travels for each value: float32 there and back in an exchange, weights and momentum in a state."""


@dataclass(frozen=True)
class Patience:
    """How long to wait where nothing can be learned yet, in seconds."""

    start_s: float = 300.0
    """For a member to load the task and build the model, and again for a state to be passed on."""
    first_round_s: float = 3600.0
    """For the first of the members to finish its local steps, and for all to finish the exchange."""


def rest_deadline(started: float, reported: Collection[float], expected: int) -> float | None:
    """Until when the rest of `expected` members may report, once half have (at the times in `reported`); else None."""
    half = (expected + 1) // 2
    if len(reported) < half or not reported:
        return None
    first_half = sorted(reported)[:half]
    usual = statistics.median(first_half) - started
    return first_half[-1] + rest_s(usual)


def rest_s(usual_s: float) -> float:
    """How long the rest has when others needed `usual_s`."""
    return max(LEAST_REST_S, REST_FACTOR * usual_s)


def stall_deadline(since: float, usual_s: float | None, patience: Patience) -> float:
    """When a wait that began at `since` is taken for stuck; `usual_s` is what the like took before, if known."""
    if usual_s is None:
        return since + patience.first_round_s
    return since + max(LEAST_STALL_S, STALL_FACTOR * usual_s)


def transfer_s(values: int) -> float:
    """Seconds that an exchange, or passing a state on, may take for a model of `values` float32 numbers."""
    return values * TRAVELLING_BYTES_A_VALUE / SLOWEST_BYTES_S
