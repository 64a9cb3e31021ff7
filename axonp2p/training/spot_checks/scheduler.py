"""The coordinator's checks: whose steps are done again by whom, and what comes of it. Pure; chance is passed in.

    a round counts ------> its members' commitments fit together, or who broke them goes
                           some (member, segment) are drawn, after the fact, by chance that nobody else knows
    a case is open ------> a member is asked that was not asked before and has nothing else to redo
    an opinion comes ----> it is judged (`judgement`): passed, another one is asked, or found to be false
    found to be false ---> convicted, once it has itself been led where others were: so its machine can be

A member whose machine never is led where others are goes too, and is not called a cheat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from axonp2p.training.round_messages import Action, ChecksImpossible, MemberUnchecked, SegmentHeard
from axonp2p.training.spot_checks.accused import Accused
from axonp2p.training.spot_checks.commitments import Commitments, jumps, why_marks_missing, why_not_repeated
from axonp2p.training.spot_checks.open_checks import CaseOutcome, Finished, OpenCheck, PendingConviction, one_of
from axonp2p.training.spot_checks.pace import MarkPace
from axonp2p.training.spot_checks.questions import CheckQuestions, ComparableDevices
from axonp2p.verification.judgement import Judgement, Opinion, Outcome, claims_of, judge
from axonp2p.verification.rates import Cut, Trust, chance_of_check, cut_for

MOST_UNDECIDED = 5
"""After so many cases in which nobody was led where another was, and fewer others, checks are of no use."""
MOST_WITHHELD = 3
"""A member that does not hand over what it committed to, in so many cases, to nobody who asked, has to go."""
MOST_SHOWN = 2
"""After the last round: about the steps of so many others one is asked whose claim was found to be false."""


@dataclass(frozen=True)
class CheckSettings:
    """How a job is to be checked."""

    wished: float
    """About which share of the work is to be done again."""
    memory_bytes: int
    """That the job asks of each peer."""
    trust_of: Callable[[int], Trust]
    """The client's record of the key behind a rank."""
    chance: Callable[[], float]
    """From 0 to 1, from a source that no peer can foresee."""
    cards: bool = False
    """Whether its peers compute on cards, which are checked like by like."""


class SpotChecks:
    """Those of one life of a job, whose rounds have `steps` local steps of `batch` samples."""

    def __init__(self, settings: CheckSettings, *, steps: int, batch: int, from_the_start: bool) -> None:
        self._settings = settings
        self._steps = steps
        self._values = 0
        self._pace = MarkPace(batch)
        self._commitments = Commitments(batch=batch, from_the_start=from_the_start)
        self._passed: dict[int, int] = {}
        """Checks in a row, by rank: those of the key before this job and those of this job."""
        self._withheld: Counter[int] = Counter()
        self.devices = ComparableDevices(cards=settings.cards)
        self._questions = CheckQuestions(settings.chance, steps, self.devices)
        self._accused = Accused(settings.chance)
        self._outcomes: Counter[Outcome] = Counter()
        self._round = 0
        self._shown: Counter[int] = Counter()
        """How many cases were opened after the last round for one that has to show what its machine can."""
        self._off = ""

    def cut(self, values: int, exchange_every: int, members: int) -> Cut:
        """How the next round is cut into segments, of whose members so many can be checked."""
        self._values = values
        if members < 2 or self._off:
            return Cut(0)
        leg = min(exchange_every, self._steps)
        cut = cut_for(values, self._steps, exchange_every, self._settings.memory_bytes)
        return replace(cut, every=self._pace.widen(cut.every, leg))

    def joins(self, rank: int) -> None:
        """A new member."""
        self._commitments.joins(rank)

    def off(self, reason: str) -> Iterator[Action]:
        """This job cannot be checked: said once. Nobody is accused any more."""
        if reason and reason != self._off:
            self._off = reason
            self._questions.cases.clear()
            for pending in self._accused.pending.values():
                yield self._undecided(pending)
            self._accused.pending.clear()
            yield ChecksImpossible(reason)

    def breaches(self, done: Finished) -> dict[int, str]:
        """The members whose commitments do not fit together, and how."""
        return self._commitments.breaches(done, self._values)

    def draw(self, done: Finished) -> Iterator[Action]:
        """Choose what is done again of a round that counts."""
        self._round = done.round
        self._accused.finished.append(done)
        self._pace.note(done.reports.values())
        for rank, why in self.devices.newly_alone(done.reports).items():
            yield MemberUnchecked(rank, why)
        if not done.every:
            return
        if self._off:
            return
        if self._nobody_agrees or self._accused.proofs.mostly_fail(done.reports):
            yield from self.off("the same steps hardly ever lead to the same end twice")
            return
        for rank, report in done.reports.items():
            if report.not_repeated:
                self._accused.proofs.fails(rank)
        missing = why_marks_missing(done.reports) or why_not_repeated(done.reports)
        if why := missing or (self._why_spoilt(done) if self._commitments.spoilt else ""):
            yield from self.off(why)
            return
        chance = self._settings.chance
        cases, pending = self._questions.cases, self._accused.pending
        drawn = len(cases)
        odd = jumps(done.reports)
        for rank in self.devices.checkable(done.reports):
            if rank in odd and rank not in pending:
                self._open(done, rank, odd[rank])
                continue
            if rank not in pending and chance() < self._rate(done, rank):
                self._open(done, rank)
        others = self._not_accused(done, pending)
        if others and len(cases) == drawn:
            self._open(done, others[one_of(others, chance)])  # for those who have to show that they can

    def _not_accused(self, done: Finished, accused: Collection[int]) -> list[int]:
        """The members that took part in a round, and are led where some of the accused should be."""
        others = sorted(done.reports.keys() - set(accused))
        return [rank for rank in others if any(self.devices.alike(rank, one) for one in accused)]

    def _why_spoilt(self, done: Finished) -> str:
        nobody_signs = not done.reports.keys() & done.signed.keys()
        return "no peer's daemon signs reports" if nobody_signs else "what peers commit to does not fit"

    def _rate(self, done: Finished, rank: int) -> float:
        claims = claims_of(done.reports[rank])
        place_s = max((claim.start.size for claim in claims), default=0) / done.upload[rank]
        trust, wished = self.trust_in(rank), self._settings.wished
        return chance_of_check(trust, wished, len(claims), place_s=place_s, round_s=done.seconds)

    def _open(self, done: Finished, rank: int, place: int | None = None) -> None:
        if claims := claims_of(done.reports[rank]):
            claim = claims[one_of(claims, self._settings.chance) if place is None else place]
            self._questions.cases.append(done.case(rank, claim))

    def trust_in(self, rank: int) -> Trust:
        """The client's record of its key by now."""
        if rank not in self._passed:
            self._passed[rank] = self._settings.trust_of(rank).passed
        return Trust(self._passed[rank])

    # --- asking ---

    def orders(self, awake: Collection[int], present: Collection[int], now: float) -> Iterator[Action]:
        """Ask whoever can be asked. `awake` may redo steps; of those that are not `present` nothing is asked."""
        self._questions.forget_old(present, self._round)
        self._open_own(present)
        yield from self._questions.orders(awake, self._accused.pending, now)

    def deadline(self) -> float | None:
        """When somebody is late with its opinion."""
        return self._questions.deadline()

    def due(self, now: float) -> None:
        """A member that is late is not waited for."""
        self._questions.due(now)

    def heard(self, event: SegmentHeard, awake: Collection[int], now: float) -> CaseOutcome:
        """An opinion. One that was not asked for is passed over."""
        case, found = self._questions.answered(event), CaseOutcome()
        if case is None:
            return found
        if not event.signed:
            found.gone[event.rank] = "it broke the protocol: its daemon did not sign what it said of others' steps"
            return found
        found.taken = True
        case.opinions.append(Opinion(event.rank, event.redone, event.signed))
        if event.redone.end:
            self._questions.took(case, now)
        if case.own:
            self._questions.cases.remove(case)
            self._accused.proofs.note(case.claim, case.opinions[0], case.segments, case.report)
            self._settle_pending(found)
            return found
        more = bool(self._questions.left(case, awake)) and not (self._questions.closing and case.withheld)
        judgement = judge(case.claim, case.opinions, more=more)
        if judgement.outcome is not Outcome.ASK_ANOTHER:
            self._questions.cases.remove(case)
            if judgement.outcome is not Outcome.UNDECIDED or any(one.redone.end for one in case.opinions):
                self._outcomes[judgement.outcome] += 1
            self._accused.note(case, judgement)
            self._settle(case, judgement, found)
        self._settle_pending(found)
        return found

    # --- what comes of it ---

    @property
    def _nobody_agrees(self) -> bool:
        undecided = self._outcomes[Outcome.UNDECIDED]
        return undecided >= MOST_UNDECIDED and 2 * undecided > self._outcomes.total()

    def _settle(self, case: OpenCheck, judgement: Judgement, found: CaseOutcome) -> None:
        for rank in (*judgement.contradicted, *judgement.false_accusers):
            self._passed[rank] = 0
        match judgement.outcome:
            case Outcome.PASSED:
                self._passed[case.of] = self.trust_in(case.of).passed + 1
                self._withheld[case.of] = 0
            # Another claim of a member that is accused already is only told: evidence is about one of them.
            case Outcome.CONVICTED if case.of not in self._accused.pending:
                self._accused.pending[case.of] = PendingConviction(case.of, case, judgement, self._round)
                return
            case Outcome.WITHHELD:
                self._passed[case.of] = 0
                self._withheld[case.of] += 1
                if self._withheld[case.of] >= MOST_WITHHELD:
                    found.gone[case.of] = f"it did not hand over what it had committed to, {MOST_WITHHELD} times"
        accusers = [rank for rank in judgement.false_accusers if rank not in self._accused.pending]
        for rank in accusers:
            self._accused.pending[rank] = PendingConviction(rank, case, judgement, self._round)
        if not accusers:
            found.said.append(case.told(judgement, []))

    def _settle_pending(self, found: CaseOutcome) -> None:
        """Those who are accused, once it is known what their machines can, and whether who speaks comes to own ends."""
        asked = self._questions.asked_of_own
        for rank, pending in list(self._accused.pending.items()):
            outcome = self._accused.outcome_of(pending, asked, self._round)
            if outcome is None:
                continue
            del self._accused.pending[rank]
            if outcome is Outcome.CONVICTED:
                found.gone[rank] = pending.why
                proofs = self._accused.proofs_of(pending, asked)
                found.said.append(pending.case.told(pending.judgement, [rank], proofs))
            elif outcome is Outcome.UNLIKE:
                self._unlike(pending, found)
            else:
                found.said.append(self._undecided(pending))

    def _unlike(self, pending: PendingConviction, found: CaseOutcome) -> None:
        if not pending.lazy:
            found.gone[pending.accused] = pending.why
            found.said.append(pending.case.told(pending.judgement, []))
            return
        found.gone[pending.accused] = f"{pending.case.what} lead others elsewhere, and it is not led where others are"
        found.said.append(pending.case.told(replace(pending.judgement, outcome=Outcome.UNLIKE), []))

    def _undecided(self, pending: PendingConviction) -> Action:
        """Those who accuse have not come to ends of their own again: nobody is believed."""
        self._outcomes[Outcome.UNDECIDED] += 1
        return pending.case.told(Judgement(Outcome.UNDECIDED, pending.judgement.distance, pending.judgement.step), [])

    def _open_own(self, present: Collection[int]) -> None:
        """Ask all who speak where somebody is accused about steps of their own."""
        questions = self._questions
        busy = {case.of for case in questions.cases if case.own}
        for case in self._accused.own_cases(present, busy, questions.asked_of_own):
            questions.cases.insert(0, case)  # somebody who is accused may go on with it until then

    # --- after the last round ---

    @property
    def open_cases(self) -> int:
        """How many claims are not judged yet, or have come to nothing yet."""
        return len(self._questions.cases) + len(self._accused.pending)

    def close(self, now: float) -> float:
        """No other round comes; for how many seconds open cases are worth waiting for."""
        return self._questions.close([pending.case for pending in self._accused.pending.values()], now)

    def goes_on(self, awake: Collection[int], present: Collection[int]) -> bool:
        """Whether more can come of it. Opens cases for those that have to show that their machines can."""
        questions, pending = self._questions, self._accused.pending
        questions.forget_old(present, self._round)
        self._open_own(present)
        for rank in sorted(pending.keys() & set(awake)):
            if not questions.could_show(rank):
                self._open_for(rank, present)
        return questions.goes_on(awake, pending)

    def end(self) -> CaseOutcome:
        """Nobody is waited for any longer: whose claim was found to be false has not shown what its machine can."""
        found = CaseOutcome()
        for pending in self._accused.pending.values():
            if self._accused.is_believed(pending, self._questions.asked_of_own):
                self._unlike(pending, found)
            else:
                found.said.append(self._undecided(pending))
        self._accused.pending.clear()
        return found

    def _open_for(self, rank: int, present: Collection[int]) -> None:
        finished, pending = self._accused.finished, self._accused.pending
        if finished and self._shown[rank] < MOST_SHOWN:
            last = finished[-1]
            others = [other for other in present if other not in pending and self.devices.alike(other, rank)]
            claimed = sorted(other for other in others if other in last.reports)
            if claimed:
                self._shown[rank] += 1
                self._open(last, claimed[one_of(claimed, self._settings.chance)])
