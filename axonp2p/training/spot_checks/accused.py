"""The accused members, and what is known of the machines of all who speak: their ends, of others and of their own.

Pure; chance is passed in.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator

from axonp2p.training.spot_checks.open_checks import PENDING_ROUNDS, Finished, OpenCheck, PendingConviction, one_of
from axonp2p.verification.judgement import Claim, Judgement, Outcome, claims_of, supports
from axonp2p.verification.own_proofs import OWN_SEGMENTS, WITNESSES, OwnProof, OwnProofs, enough_shown
from axonp2p.verification.rates import KEPT_ROUNDS


class Accused:
    """Those of one life of a job."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self.pending: dict[int, PendingConviction] = {}
        """By whom it is that is accused."""
        self.proofs = OwnProofs()
        self.finished: deque[Finished] = deque(maxlen=KEPT_ROUNDS)
        """The last ones: their members still hold what they committed to."""
        self._own_asked: dict[int, set[tuple[int, int, int]]] = {}
        """About which of its own steps each was asked: rounds, attempts, and where in these they begin."""
        self._led_alike: Counter[int] = Counter()
        """How often each member, asked to redo steps, was led where others were: what its machine can is measured."""
        self._led_elsewhere: Counter[int] = Counter()

    def note(self, case: OpenCheck, judgement: Judgement) -> None:
        """Take in the words of a judgement on the machines of those that were asked."""
        for opinion in case.opinions:
            if opinion.redone.end is None:
                continue
            with_it = judgement.outcome is Outcome.PASSED and supports(case.claim, opinion)
            against_it = judgement.outcome is Outcome.CONVICTED and opinion.by in judgement.against
            (self._led_alike if with_it or against_it else self._led_elsewhere)[opinion.by] += 1

    def outcome_of(self, pending: PendingConviction, asked: Collection[int], round: int) -> Outcome | None:
        """None while it is not known yet. Those in `asked` have not answered yet about steps of their own."""
        rank, late = pending.accused, pending.since + PENDING_ROUNDS + OWN_SEGMENTS < round
        if not self.is_believed(pending, asked):
            hopeful = [witness for witness in pending.witnesses if not self.proofs.failed(witness)]
            return Outcome.UNDECIDED if late or len(hopeful) < WITNESSES else None
        can, cannot = self._led_alike[rank] > 0, False
        if pending.lazy:
            can, cannot = self._led_alike[rank] > 2 * self._led_elsewhere[rank], self._led_elsewhere[rank] > 0
        if can and self._has_shown(rank, pending, asked):
            return Outcome.CONVICTED
        return Outcome.UNLIKE if late or (cannot and not can) or self.proofs.failed(rank) else None

    def is_believed(self, pending: PendingConviction, asked: Collection[int]) -> bool:
        """Whether enough of those who accuse have come to ends of their own again."""
        return len(self._proven(pending, asked)) >= WITNESSES

    def proofs_of(self, pending: PendingConviction, asked: Collection[int]) -> list[OwnProof]:
        """The proofs that the accused, and as many of its accusers as it takes, have shown."""
        ranks = (pending.accused, *self._proven(pending, asked)[:WITNESSES])
        return [proof for rank in ranks for proof in self._own_of(rank, pending)]

    def own_cases(self, present: Collection[int], busy: set[int], asked: Collection[int]) -> Iterator[OpenCheck]:
        """About steps of their own, for all who speak where somebody is accused and that are not `busy` with such."""
        for pending in self.pending.values():
            for rank in {pending.accused, *pending.witnesses}.intersection(present) - busy:
                if self.proofs.failed(rank) or self._has_shown(rank, pending, asked):
                    continue
                if found := self._own_claim(rank, pending):
                    busy.add(rank)
                    done, claim = found
                    self._own_asked.setdefault(rank, set()).add((done.round, done.attempt, claim.start.step))
                    yield done.case(rank, claim, own=True)

    def _proven(self, pending: PendingConviction, asked: Collection[int]) -> list[int]:
        """Witnesses that have shown it."""
        return [rank for rank in pending.witnesses if self._has_shown(rank, pending, asked)]

    def _own_of(self, rank: int, pending: PendingConviction) -> list[OwnProof]:
        """Steps of its own that it has done again, about as old as those in dispute, and none of these."""
        disputed = pending.case
        return [
            proof
            for proof in self.proofs.of(rank, disputed.round - KEPT_ROUNDS)
            if (rank, proof.round, proof.attempt, proof.step) != disputed.place
        ]

    def _has_shown(self, rank: int, pending: PendingConviction, asked: Collection[int]) -> bool:
        """Whether it came to all ends of its own again that it was, and could be, asked about, as evidence shows it."""
        proofs, disputed = self._own_of(rank, pending), pending.case
        committed = {(proof.round, proof.attempt): proof.segments for proof in proofs}
        if rank == disputed.of:
            committed[disputed.round, disputed.attempt] = disputed.segments
        if not enough_shown(len(proofs), sum(committed.values()) - (rank == disputed.of)):
            return False  # what was asked and not answered shows nothing: later rounds are asked about
        return len(proofs) >= OWN_SEGMENTS or (rank not in asked and self._own_claim(rank, pending) is None)

    def _own_claim(self, rank: int, pending: PendingConviction) -> tuple[Finished, Claim] | None:
        """Steps of its own that it was not asked about yet, and that are not in dispute."""
        disputed = pending.case.round, pending.case.attempt, pending.case.claim.start.step
        known = self._own_asked.get(rank, set()) | ({disputed} if rank == pending.case.of else set())
        shown = {(round, attempt) for round, attempt, _ in known}
        # Rather of reports that evidence shows already, which are tens of KiB each: a ledger takes so many only.
        for done in sorted(self.finished, key=lambda done: ((done.round, done.attempt) not in shown, -done.round)):
            claims = claims_of(done.reports[rank]) if rank in done.reports else []
            if new := [claim for claim in claims if (done.round, done.attempt, claim.start.step) not in known]:
                return done, new[one_of(new, self._chance)]
        return None
