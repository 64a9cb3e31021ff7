"""How long members are waited for: learnt from how long they took, generous where nothing is learnt yet. Pure.

Machines that volunteers lend differ by orders of magnitude, so no fixed number of seconds is right for a round. The
time that the members needed says what they may need: a usual time (the median), and how far they are from it (the
median of the differences).
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

LEAST_REST_S = 1.0
SPREADS = 4.0
SHARE = 0.5
"""Late is who needs longer than usual by the largest of: a second, four times the spread, half of what is usual."""
UNKNOWN_REST_S = 10.0
UNKNOWN_FACTOR = 3.0
"""A member that was never measured has at least so long more than the others needed, or so many times as much."""
GRACE_S = 10.0
"""After a mistake of the task this long is waited for what the others have to say."""
LEAST_STALL_S = 60.0
STALL_FACTOR = 10.0
"""In a first round, this long or this many times its longest silence so far, before it is taken for stuck."""
ROUNDS_KEPT = 8
SLOWEST_BYTES_S = 125_000
"""1 Mbit/s: a link that moves a model more slowly than this is of no use for training it."""
STATE_BYTES_A_VALUE = 8
"""Weights and momentum."""


@dataclass(frozen=True)
class Patience:
    """How long to wait where nothing can be learned yet, in seconds."""

    start_s: float = 300.0
    """For a member to load the task and build the model, and again for a state to be passed on."""
    first_round_s: float = 3600.0
    """For every member's first steps, with `data()` before them: `step-timeout` under `[train]`."""


def late_after(times: Collection[float]) -> float:
    """A member that needs longer than this is late, when `times` are what is usual."""
    usual = statistics.median(times)
    spread = statistics.median(abs(time - usual) for time in times)
    return usual + max(LEAST_REST_S, SPREADS * spread, SHARE * usual)


def transfer_s(values: int) -> float:
    """Seconds that passing on the state of a model of `values` float32 numbers may take."""
    return bytes_s(values * STATE_BYTES_A_VALUE)


def bytes_s(size: int) -> float:
    """The same of so many bytes."""
    return size / SLOWEST_BYTES_S


class Learnt:
    """The times of the accepted rounds of a job: each member, and the longest time in which nobody got any further."""

    def __init__(self) -> None:
        self._took: dict[int, deque[float]] = {}
        self._silences: deque[float] = deque(maxlen=ROUNDS_KEPT)
        self._other_terms = False

    def note(self, took: Mapping[int, float], silence: float) -> None:
        """A round was accepted; `took` are seconds from its start to each member's report."""
        for rank, seconds in took.items():
            self._took.setdefault(rank, deque(maxlen=ROUNDS_KEPT)).append(seconds)
        self._silences.append(silence)
        self._other_terms = False

    def missed(self, rank: int, waited: float) -> None:
        """The others went on without a member after so many seconds of a round: it may need that long from now on."""
        self._took[rank] = deque([waited], maxlen=ROUNDS_KEPT)

    def terms_changed(self) -> None:
        """The next round is not like those before: what they took is a hint only."""
        self._other_terms = True

    def may_take(self, rank: int, others: Collection[float]) -> float:
        """Seconds from the start of a round that the member may take, when the first half of all needed `others`."""
        own = self._took.get(rank)
        usual = late_after(others)
        if own is None or self._other_terms:
            known = statistics.median(others)
            usual = max(usual, known + max(UNKNOWN_REST_S, UNKNOWN_FACTOR * known))
        return max(usual, late_after(own)) if own else usual

    @property
    def known(self) -> bool:
        """Whether anything is."""
        return bool(self._silences)

    def silence(self, *, known_who: bool) -> float | None:
        """After so many seconds in which nobody got any further a round is stuck; None before anything is learnt.

        Longer when it is not known who holds the others up: to begin again with all costs the whole attempt.
        """
        if not self._silences:
            return None
        usual = late_after(self._silences)
        if known_who and not self._other_terms:
            return usual
        return max(UNKNOWN_REST_S, UNKNOWN_FACTOR * usual)
