"""Checks that are open at the coordinator: claims that are being redone, and those found to be false. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from axonp2p.training.messages import RedoSegment
from axonp2p.training.round_messages import Action, CheckEnded
from axonp2p.verification.claims import RoundDone
from axonp2p.verification.judgement import Claim, Judgement, Opinion, claims_of
from axonp2p.verification.own_proofs import OwnProof
from axonp2p.verification.signed_frames import SignedFrame

PENDING_ROUNDS = 3
"""So long one whose claim was found to be false may take to show that its machine comes to the same ends as others."""


def one_of(several: Sequence[object], chance: Callable[[], float]) -> int:
    """The number of one of them, by chance from 0 to 1."""
    return min(int(chance() * len(several)), len(several) - 1)


@dataclass
class OpenCheck:
    """A claim on its way to a judgement."""

    of: int
    """The member whose claim it is."""
    round: int
    attempt: int
    claim: Claim
    shards: list[int]
    asked: int | None = None
    """The member that redoes it now."""
    asked_at: float = 0.0
    until: float = 0.0
    """When that one is late."""
    opinions: list[Opinion] = field(default_factory=list)
    tried: set[int] = field(default_factory=set)
    own: bool = False
    """Whether it is the member itself that does them again, to show that it can."""
    segments: int = 1
    """How many claims there are in the report that this one is of."""
    report: SignedFrame | None = None
    """That report, as its daemon signed it."""

    @property
    def what(self) -> str:
        """In words."""
        start, end = self.claim.start.step, self.claim.end.step
        return f"steps {start + 1} to {end} of round {self.round + 1}"

    @property
    def withheld(self) -> bool:
        """Whether what it begins from was handed over to none of two or more."""
        failed = [opinion.redone.failed for opinion in self.opinions]
        return len(failed) > 1 and all(reason and reason != "cannot be done" for reason in failed)

    @property
    def place(self) -> tuple[int, int, int, int]:
        """By which an opinion names it."""
        return self.of, self.round, self.attempt, self.claim.start.step

    def order(self, round_steps: int) -> RedoSegment:
        """To redo it, in a job whose rounds have so many steps."""
        start, end = self.claim.start, self.claim.end
        return RedoSegment(
            of=self.of,
            round=self.round,
            attempt=self.attempt,
            start=start,
            shards=self.shards,
            round_steps=round_steps,
            steps=end.step - start.step,
        )

    def told(self, judgement: Judgement, convicted: list[int], proofs: Sequence[OwnProof] = ()) -> CheckEnded:
        """The messages about its end."""
        return CheckEnded(
            of=self.of,
            by=[opinion.by for opinion in self.opinions],
            round=self.round,
            first=self.claim.start.step,
            last=self.claim.end.step,
            judgement=judgement,
            convicted=convicted,
            flops=sum(opinion.redone.flops for opinion in self.opinions),
            attempt=self.attempt,
            report=self.report,
            opinions=[opinion.signed for opinion in self.opinions if opinion.signed],
            proofs=proofs,
        )


@dataclass(frozen=True)
class Finished:
    """A round that counts, as far as checks need to know it."""

    round: int
    attempt: int
    every: int
    """Steps of a segment; 0: nothing was committed to."""
    exchanges: int
    alike: bool
    """Whether all begin each leg with the same weights, and not only the first one."""
    shards: Mapping[int, list[int]]
    reports: Mapping[int, RoundDone]
    signed: Mapping[int, SignedFrame]
    """The reports as their daemons signed them; others could not be shown to anybody later."""
    unheard: Collection[int]
    """The members that were told to train in it, and did not report."""
    seconds: float
    """The seconds that it took."""
    upload: Mapping[int, float]
    """The speed of each member's line, in bytes a second."""

    def case(self, rank: int, claim: Claim, *, own: bool = False) -> OpenCheck:
        """About that claim of a member."""
        return OpenCheck(
            of=rank,
            round=self.round,
            attempt=self.attempt,
            claim=claim,
            shards=list(self.shards[rank]),
            own=own,
            segments=len(claims_of(self.reports[rank])),
            report=self.signed.get(rank),
        )


@dataclass(frozen=True)
class PendingConviction:
    """Somebody is accused, and it is not known yet what its machine can, nor whether who speaks can be believed."""

    accused: int
    case: OpenCheck
    judgement: Judgement
    since: int

    @property
    def lazy(self) -> bool:
        """Whether its own claim was found to be false; else what it said of another's."""
        return self.accused == self.case.of

    @property
    def witnesses(self) -> tuple[int, ...]:
        """The members that speak against it."""
        return self.judgement.against if self.lazy else (self.case.of, *self.judgement.alike)

    @property
    def why(self) -> str:
        """In words."""
        if self.lazy:
            by = len(self.witnesses)
            return f"{self.case.what} were done again by {by} others, and do not lead where it said"
        return f"it said that {self.case.what} of another lead elsewhere, and others found that they do not"


@dataclass
class CaseOutcome:
    """The result of an opinion."""

    said: list[Action] = field(default_factory=list)
    gone: dict[int, str] = field(default_factory=dict)
    """The members that have to leave the job, and why."""
    taken: bool = False
    """Whether somebody had asked for it."""
