"""A job whose members are honest, lazy, copying or lying, and the coordinator's checks of it: no time passes, no torch.

Weights are the 32 numbers of their sketches. Where a segment leads is its true end, from the start that was committed
to, plus what the machine's own arithmetic adds: machines of one class agree to the bit, classes lie apart by a few
thousandths of the movement, up to a few hundredths (`shared/notes`: within 50 steps). A seed fixes everything.
"""

from __future__ import annotations

import hashlib
import math
import random
import struct
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from axonp2p.training.messages import RedoSegment
from axonp2p.training.round_messages import CheckEnded, ChecksImpossible, SegmentHeard, Tell
from axonp2p.training.spot_checks.open_checks import CaseOutcome, Finished
from axonp2p.training.spot_checks.scheduler import CheckSettings, SpotChecks
from axonp2p.verification.claims import Mark, RoundDone, SegmentRedone
from axonp2p.verification.judgement import Outcome
from axonp2p.verification.rates import Trust
from tests.fakes import SIGNED

STEPS, LEG, BATCH, VALUES = 48, 8, 4, 1000
Vector = list[float]


@dataclass(frozen=True)
class Nature:
    """What a member is like."""

    machine: int = 0
    """Its class; 0 adds nothing to the true ends."""
    skips: float = 0.0
    """In which share of its segments it leaves steps out."""
    leaves_out: int = 8
    """How many of a segment's steps it then leaves out."""
    copies: bool = False
    """Whether it commits to what another did on other data."""
    begins: int = 0
    """The round in which it begins to cheat."""
    lies: float = 0.0
    """How often it says of others' steps that they lead elsewhere."""
    stands_by: bool = True
    """Whether a cheat that is asked about steps of its own says of them what it said before, or takes them."""
    keeps: bool = False
    """Whether its task keeps something between steps, by which they led elsewhere than they lead anybody again."""

    @property
    def honest(self) -> bool:
        return not (self.skips or self.copies or self.lies)

    @property
    def cheats(self) -> bool:
        """Whether its own work is false."""
        return bool(self.skips or self.copies)


@dataclass
class Result:
    """What came of a job."""

    gone: dict[int, str] = field(default_factory=dict)
    convicted: set[int] = field(default_factory=set)
    off: list[str] = field(default_factory=list)
    """Why nothing is checked any more."""
    checks_until_gone: dict[int, int] = field(default_factory=dict)
    checks: Counter[int] = field(default_factory=Counter)
    """How often each member's work was checked."""
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    honest_rounds: int = 0
    steps_redone: int = 0
    steps_taken: int = 0


class CheckedJob:
    """`trust` is what is known of each key before."""

    def __init__(
        self, natures: list[Nature], seed: int, *, wished: float = 0.05, trust: Trust | None = None, noise: float = 0.01
    ) -> None:
        self._natures = dict(enumerate(natures))
        self._random = random.Random(seed)
        self._noise = noise
        self._round = 0
        self._ends: dict[tuple[int, int, int], tuple[Vector, Vector]] = {}
        self._marks: dict[tuple[int, int, int], Mark] = {}
        """What each committed to, by the step."""
        settings = CheckSettings(wished, 2**30, lambda _: trust or Trust(), self._random.random)
        self._checks = SpotChecks(settings, steps=STEPS, batch=BATCH, from_the_start=True)
        self.result = Result()

    def run(self, rounds: int) -> Result:
        """Train so many rounds, or until fewer than two are left."""
        for _ in range(rounds):
            if len(self._natures) < 2:
                break
            self._one_round()
        self._checks.close(0.0)
        while self._checks.goes_on(self._natures, self._natures):
            self._ask()
        self._settle(self._checks.end())
        return self.result

    def _one_round(self) -> None:
        result, members = self.result, dict(self._natures)
        cut = self._checks.cut(VALUES, LEG, len(members))
        if not cut.every:
            self._round += 1
            return  # nothing is committed to, so nothing can be checked
        reports = {rank: self._report(rank, nature, cut.every) for rank, nature in members.items()}
        signed = dict.fromkeys(reports, SIGNED)
        shards, upload = {rank: [rank] for rank in members}, dict.fromkeys(members, 1e9)
        done = Finished(self._round, 0, cut.every, STEPS // LEG, False, shards, reports, signed, (), 10.0, upload)
        self._drop(self._checks.breaches(done))
        result.off += [action.reason for action in self._checks.draw(done) if isinstance(action, ChecksImpossible)]
        result.honest_rounds += sum(nature.honest for nature in members.values())
        result.steps_taken += STEPS * len(members)
        while self._ask():
            pass
        self._round += 1

    def _ask(self) -> bool:
        """All that can be asked are, and answer; whether there was anybody."""
        asked = list(self._checks.orders(self._natures, self._natures, 0.0))
        for action in asked:
            assert isinstance(action, Tell)
            assert isinstance(action.message, RedoSegment)
            if action.rank in self._natures:
                self._hear(action.rank, action.message)
        return bool(asked)

    def _hear(self, rank: int, order: RedoSegment) -> None:
        redone = self._redo(self._natures[rank], order)
        if rank == order.of and self._natures[rank].cheats and self._natures[rank].stands_by:
            claimed = self._marks[rank, order.round, order.start.step + order.steps]
            redone = msgspec.structs.replace(redone, end=claimed)
        self.result.steps_redone += order.steps
        self._settle(self._checks.heard(SegmentHeard(rank, redone, signed=SIGNED), self._natures, 0.0))

    def _settle(self, found: CaseOutcome) -> None:
        result = self.result
        for action in found.said:
            assert isinstance(action, CheckEnded)
            result.outcomes[action.judgement.outcome] += 1
            result.checks[action.of] += 1
            result.convicted.update(action.convicted)
        self._drop(found.gone)

    def _drop(self, gone: dict[int, str]) -> None:
        for rank, reason in gone.items():
            if self._natures.pop(rank, None):
                self.result.gone[rank] = reason
                self.result.checks_until_gone[rank] = self.result.checks[rank]

    # --- what members do ---

    def _report(self, rank: int, nature: Nature, every: int) -> RoundDone:
        marks = []
        for leg in range(STEPS // LEG):
            start = [float(leg + self._round)] * 32
            place = leg * LEG
            marks.append(_mark(leg, place, start, "start"))
            while place < (leg + 1) * LEG:
                before, end = self._truth(rank, place, start)
                skips = nature.copies or self._random.random() < nature.skips
                skips = skips and self._round >= nature.begins
                start, name = self._as_computed(nature, rank, self._round, place, end)
                if skips:
                    start = self._without(rank, place, end, before, nature)
                    name = f"false {rank} {self._round} {place}"
                if nature.keeps:
                    start, name = [value + self._random.gauss(0, 1) for value in end], f"kept {rank} {name}"
                place += every
                marks.append(_mark(leg, place, start, name))
                self._marks[rank, self._round, place] = marks[-1]
        return RoundDone(
            round=self._round, attempt=0, state=bytes(32), loss=1.0, samples=STEPS * BATCH, flops=STEPS,
            train_seconds=1.0, exchange_seconds=0.0, exchanges=STEPS // LEG, left_out=[], kept_back=0, slices=[],
            sent_bytes=0, received_bytes=0, metrics={}, test_samples=0, marks=marks,
        )  # fmt: skip

    def _redo(self, nature: Nature, order: RedoSegment) -> SegmentRedone:
        before, end = self._ends[order.of, order.round, order.start.step]
        ended, name = self._as_computed(nature, order.of, order.round, order.start.step, end)
        if self._random.random() < nature.lies and self._natures.get(order.of) is not nature:
            ended = [value + self._random.gauss(0, 1) for value in before]
            name = f"lie {self._random.random()}"
        return SegmentRedone(
            of=order.of, round=order.round, attempt=0, step=order.start.step, start=order.start.name,
            end=_mark(order.start.leg, order.start.step + order.steps, ended, name),
            before_last=struct.pack("<32d", *before), flops=order.steps,
        )  # fmt: skip

    def _truth(self, rank: int, place: int, start: Vector) -> tuple[Vector, Vector]:
        """Where the steps from here lead: before the last of them, and after it."""
        gauss = self._random.gauss
        drift = [gauss(0, 1) for _ in range(32)]
        before = [value + 0.7 * pull + 0.5 * gauss(0, 1) for value, pull in zip(start, drift, strict=True)]
        end = [value + 0.1 * pull + 0.2 * gauss(0, 1) for value, pull in zip(before, drift, strict=True)]
        self._ends[rank, self._round, place] = before, end
        return before, end

    def _as_computed(self, nature: Nature, of: int, round: int, place: int, end: Vector) -> tuple[Vector, str]:
        name = f"true {of} {round} {place} on {nature.machine}"
        if not nature.machine:
            return end, name
        own = random.Random(name)
        size = self._noise * own.random()
        return [value + size * own.gauss(0, 1) for value in end], name

    def _without(self, rank: int, place: int, end: Vector, before: Vector, nature: Nature) -> Vector:
        """As if the last of the steps had been left out, or as many as it leaves out."""
        share = (nature.leaves_out - 1) / (LEG - 1)
        start = [float(place // LEG + self._round)] * 32
        return [share * first + (1 - share) * last for first, last in zip(start, before, strict=True)]


def _mark(leg: int, step: int, weights: Vector, name: str) -> Mark:
    named = hashlib.sha256(name.encode()).digest()
    return Mark(leg=leg, step=step, name=named, size=100, sketch=struct.pack("<32d", *weights), memory=[])


def checks_until_found(skipped: float, certainty: float) -> int:
    """After how many checks one is found, that certainly, who skips work in this share of its segments."""
    if not 0 < skipped <= 1 or not 0 < certainty < 1:
        raise ValueError("shares lie between 0 and 1")
    return 1 if skipped == 1 else math.ceil(math.log(1 - certainty) / math.log(1 - skipped))


def rounds_until_found(skipped: float, certainty: float, chance: float) -> int:
    """The same in rounds, in each of which it is checked with that chance."""
    return checks_until_found(skipped * chance, certainty)
