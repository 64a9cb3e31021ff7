"""Nobody is convicted before the accused and two accusers have done steps of their own again, to the same end. Pure.

Two who redo steps in fresh processes come to the same end, and may both be wrong: a task that keeps something between
its steps leads its trainer elsewhere than it leads them. Then no redo of anybody's own steps leads where it had led.
These show that training and redoing are the same here, for those who speak.

State that a task keeps may change some steps only, so one segment is not enough: each is asked about all that it still
holds, `OWN_SEGMENTS` at most, and one that leads elsewhere is one too many.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from axonp2p.verification.judgement import Claim, Opinion, repeats
from axonp2p.verification.signed_frames import SignedFrame

WITNESSES = 2
"""So many who accuse must have shown it."""
OWN_SEGMENTS = 4


def enough_shown(shown: int, committed: int) -> bool:
    """Whether so many own segments suffice of those committed to, but for the disputed one, in the reports shown."""
    return shown >= max(1, min(OWN_SEGMENTS, committed))


@dataclass(frozen=True)
class OwnProof:
    """Which of its own steps a member has done again, to the same end."""

    by: int
    round: int
    attempt: int
    step: int
    """Of the round, where they began."""
    segments: int
    """How many there are in that report of its own."""
    report: SignedFrame | None = None
    """That report, as its daemon signed it."""
    said: SignedFrame | None = None
    """Where they led again, as its daemon signed it."""


class OwnProofs:
    """Of one job: what came of it where members were asked for steps of their own, by rank."""

    def __init__(self) -> None:
        self._proven: dict[int, list[OwnProof]] = {}
        self._led_elsewhere: set[int] = set()
        self._say_so: set[int] = set()

    def note(self, claim: Claim, opinion: Opinion, segments: int, report: SignedFrame | None = None) -> None:
        """It has done these steps of its own again, one of so many segments of a report, or says that it cannot.

        Where it no longer held what they begin from, it was asked too late: that shows nothing.
        """
        redone = opinion.redone
        if redone.failed == "not handed over":
            return
        if repeats(claim, opinion):
            place = redone.round, redone.attempt, redone.step
            proof = OwnProof(opinion.by, *place, segments, report, opinion.signed)
            self._proven.setdefault(opinion.by, []).append(proof)
        else:
            self._led_elsewhere.add(opinion.by)

    def fails(self, rank: int) -> None:
        """It says itself that its own steps do not lead where they led."""
        self._say_so.add(rank)

    def failed(self, rank: int) -> bool:
        """Whether any of its own steps led elsewhere, or could not be done."""
        return rank in self._led_elsewhere or rank in self._say_so

    def of(self, rank: int, since: int) -> list[OwnProof]:
        """The proofs that it has shown of rounds from this one on; nothing once it has failed."""
        return [proof for proof in self._proven.get(rank, []) if proof.round >= since and not self.failed(rank)]

    def mostly_fail(self, members: Collection[int]) -> bool:
        """Whether two members and more than half of those asked come to no own ends: that is the task, and not they."""
        failed = self._led_elsewhere.intersection(members)
        return len(failed) > max(1, len(self._proven.keys() & set(members) - failed))
