"""At the start of a job each member takes some of its own steps again: do they lead where it says that they led? Pure.

Where they do not, the steps depend on something that whoever does them again cannot have: what the task keeps from step
to step, chance of its own, a clock. Nothing of such a job can be checked, and nobody may be accused in it.
"""

from __future__ import annotations

from axonp2p.training.messages import RedoSegment, StartRound
from axonp2p.training.trainer.marks import MarkBytes
from axonp2p.verification.claims import SegmentRedone
from axonp2p.verification.judgement import Claim, Opinion, repeats
from axonp2p.verification.rates import TRIALS

NOT_DONE = (
    "its own steps cannot be done again: in a process of its own, from the weights alone, the task fails "
    "or has too little memory, as the log of the job at that peer tells"
)
ELSEWHERE = "the same steps, done again, lead elsewhere: the task keeps something between steps that changes them"


class OwnTrials:
    """Those of one member."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._left = TRIALS

    def order(self, start: StartRound, places: tuple[MarkBytes, ...]) -> tuple[RedoSegment, memoryview, Claim] | None:
        """A segment of the leg of which these are the places, first the last one; None when no trial is due."""
        if not self._left or len(places) < 2:
            return None
        end = len(places) - 1 - (TRIALS - self._left) % (len(places) - 1)
        claim = Claim(places[end - 1].mark, places[end].mark)
        order = RedoSegment(
            of=self._rank,
            round=start.round,
            attempt=start.attempt,
            start=claim.start,
            shards=list(start.shards),
            round_steps=start.steps,
            steps=claim.end.step - claim.start.step,
        )
        return order, places[end - 1].file, claim

    def why_not(self, claim: Claim, redone: SegmentRedone) -> str:
        """Why others cannot come to its ends; empty when they can."""
        self._left -= 1
        if redone.end is None:
            return NOT_DONE
        return "" if repeats(claim, Opinion(self._rank, redone)) else ELSEWHERE
