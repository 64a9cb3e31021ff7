"""A job that waits for peers: who holds the slots that it lacks, and when the table is asked again. Pure.

This client's own jobs are named before others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from axonp2p.errors import NobodyFits
from axonp2p.identity.peer_id import PeerId

PATIENT_AFTER_S = 600.0
LONGEST_PATIENT_S = 60.0
"""A job that has waited for so long asks once in so many seconds."""


class LookPace:
    """The pauses of one job: from `first_s` on each is twice as long as the one before, up to `longest_s`.

    `chance` gives numbers from 0 to 1. Each pause is up to a quarter shorter or longer by it: several jobs that wait
    for the same peers then do not ask at the same moment, again and again.
    """

    def __init__(self, first_s: float, longest_s: float, chance: Callable[[], float]) -> None:
        self._next_s = first_s
        self._longest_s = longest_s
        self._chance = chance
        self._waited_s = 0.0

    def pause(self, left_s: float) -> float:
        """Seconds until the next question, at most those that are left."""
        pause = min(self._next_s * (0.75 + 0.5 * self._chance()), left_s)
        self._waited_s += pause
        longest = self._longest_s if self._waited_s < PATIENT_AFTER_S else LONGEST_PATIENT_S
        self._next_s = min(2 * self._next_s, longest)
        return pause


@dataclass(frozen=True)
class SlotHolder:
    """A job of this client that holds leases, as far as its folder tells."""

    job: str
    peers: frozenset[PeerId]
    """Where."""
    runs: bool
    """Whether a program works on it. One that was killed holds its slots until its peers have waited long enough."""


def with_holders(error: NobodyFits, taken: Collection[PeerId], holders: Sequence[SlotHolder]) -> NobodyFits:
    """The error that names the jobs of this client which hold some of the `taken` slots, and what gives them back."""
    ours = [(holder, len(holder.peers.intersection(taken))) for holder in holders]
    ours = sorted((one for one in ours if one[1]), key=lambda one: (one[0].runs, one[0].job))
    if not ours:
        return error
    held = " and ".join(
        f"{count} by your own job {holder.job}, {'which runs' if holder.runs else 'whose program is dead'}"
        for holder, count in ours
    )
    return NobodyFits(error.message, cause=f"{error.cause}; of the slots {held}", fix=_fix([one[0] for one in ours]))


def _fix(holders: Sequence[SlotHolder]) -> str:
    first = holders[0]
    if first.runs:
        return f"axon watch {first.job} shows how far it is; axon submit DIR --wait 10min waits for it"
    return f"axon resume {first.job} continues it, axon cancel {first.job} gives its slots back at once"
