"""Nobody is convicted before the accused and two accusers have done steps of their own again, to the same end. Pure.

Two who redo steps in fresh processes come to the same end, and may both be wrong: a task that keeps something between
its steps leads its trainer elsewhere than it leads them. Then no redo of anybody's own steps leads where it had led.
What is shown by these: that training and redoing are the same here, for those who speak.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from axonp2p.training.checking.opinions import Claim, Opinion, repeats

WITNESSES = 2
"""So many who accuse must have shown it."""


@dataclass(frozen=True)
class OwnProof:
    """Which of its own steps a member has done again, to the same end."""

    by: int
    round: int
    attempt: int
    step: int
    """Of the round, where they began."""


class OwnProofs:
    """Of one job: what came of it where members were asked for steps of their own, by rank."""

    def __init__(self) -> None:
        self._proven: dict[int, OwnProof] = {}
        self._failed: set[int] = set()

    def note(self, claim: Claim, opinion: Opinion) -> None:
        """It has done these steps of its own again, or says that it cannot. What was shown once is not lost by it."""
        redone = opinion.redone
        if repeats(claim, opinion):
            proof = OwnProof(opinion.by, redone.round, redone.attempt, redone.step)
            self._proven[opinion.by] = proof
            self._failed.discard(opinion.by)
        else:
            self.fails(opinion.by)

    def fails(self, rank: int) -> None:
        """It says itself that its own steps do not lead where they led."""
        if rank not in self._proven:
            self._failed.add(rank)

    def of(self, rank: int) -> OwnProof | None:
        """What it has shown."""
        return self._proven.get(rank)

    def failed(self, rank: int) -> bool:
        """Whether its own steps led elsewhere, or could not be done."""
        return rank in self._failed

    def of_all(self, ranks: Collection[int]) -> list[OwnProof]:
        """What these have shown, as far as they have."""
        return [proof for rank in sorted(ranks) if (proof := self.of(rank))]

    @property
    def mostly_fail(self) -> bool:
        """Whether most who were asked do not come to their own ends: that is the task, and not its members."""
        return len(self._failed) > max(1, len(self._proven))
