"""The coordinator's checks: whose steps are done again by whom, and what comes of it. Pure; chance is passed in.

    a round counts ------> its members' commitments fit together, or who broke them goes
                           some (member, segment) are drawn, after the fact, by chance that nobody else knows
    a case is open ------> a member is asked that was not asked before and has nothing else to redo
    an opinion comes ----> it is judged (`opinions`): passed, another one is asked, or found to be false
    found to be false ---> convicted, once it has itself been led where others were: so its machine can be

Whose machine never is led where others are goes too, and is not called a cheat.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from axonp2p.training.checking.answering import IN_TURN, MOST_S, AnswerTimes
from axonp2p.training.checking.cases import Case, Found, Pending
from axonp2p.training.checking.commitments import (
    Memories,
    claims_of,
    jumps,
    odd_starts,
    why_marks_missing,
    why_no_fit,
    why_not_repeated,
)
from axonp2p.training.checking.opinions import Claim, Judgement, Opinion, Outcome, judge, supports
from axonp2p.training.checking.own_proofs import OWN_SEGMENTS, WITNESSES, OwnProof, OwnProofs
from axonp2p.training.checking.pace import MarkPace
from axonp2p.training.checking.rates import KEPT_ROUNDS, Cut, Trust, chance_of_check, cut_for
from axonp2p.training.deadlines import SLOWEST_BYTES_S
from axonp2p.training.messages import RoundDone
from axonp2p.training.round_messages import Action, ChecksOff, SegmentHeard, Tell

PATIENT_ROUNDS = 1
"""A case that nobody could be asked about for so many rounds is given up: its places are not kept for ever."""
PENDING_ROUNDS = 3
"""So long one whose claim was found to be false may take to show that its machine comes to the same ends as others."""
MOST_UNDECIDED = 5
"""After so many cases in which nobody was led where another was, and fewer others, checks are of no use."""
MOST_WITHHELD = 3
"""Who does not hand over what it committed to, in so many cases, to nobody who asked, has to go."""
MOST_SHOWN = 2
"""After the last round: about the steps of so many others one is asked whose claim was found to be false."""


@dataclass(frozen=True)
class Settings:
    """How a job is to be checked."""

    wished: float
    """About which share of the work is to be done again."""
    memory_bytes: int
    """That the job asks of each peer."""
    trust_of: Callable[[int], Trust]
    """What is known of the key behind a rank."""
    chance: Callable[[], float]
    """From 0 to 1, from a source that no peer can foresee."""


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
    unsigned: Collection[int]
    """Whose reports could not be shown to anybody later: their daemons did not sign them."""
    unheard: Collection[int]
    """Who was told to train in it, and did not report."""
    seconds: float
    """What it took."""
    upload: Mapping[int, float]
    """What each member's line carries, in bytes a second."""


class Checks:
    """Those of one life of a job, whose rounds have `steps` local steps of `batch` samples."""

    def __init__(self, settings: Settings, *, steps: int, batch: int, from_the_start: bool) -> None:
        self._settings = settings
        self._steps, self._batch = steps, batch
        self._values = 0
        self._pace = MarkPace(batch)
        self._memories = Memories(from_the_start=from_the_start)
        self._passed: dict[int, int] = {}
        """Checks in a row, by rank: those of the key before this job and those of this job."""
        self._withheld: Counter[int] = Counter()
        self._led_alike: Counter[int] = Counter()
        """How often each member, asked to redo steps, was led where others were: what its machine can is measured."""
        self._led_elsewhere: Counter[int] = Counter()
        self._pending: dict[int, Pending] = {}
        """By whom it is that is accused."""
        self._proofs = OwnProofs()
        self._own_asked: dict[int, set[tuple[int, int, int]]] = {}
        """About which of its own steps each was asked: rounds, attempts, and where in these they begin."""
        self._outcomes: Counter[Outcome] = Counter()
        self._cases: list[Case] = []
        self._round = 0
        self._finished: deque[Finished] = deque(maxlen=KEPT_ROUNDS)
        """The last ones: their members still hold what they committed to."""
        self._answers = AnswerTimes()
        self._closing = False
        self._shown: Counter[int] = Counter()
        """How many cases were opened after the last round for one that has to show what its machine can."""
        self._off = ""
        self._spoilt = False
        """Whether nobody's commitments fit together in the last round."""

    def cut(self, values: int, exchange_every: int, members: int) -> Cut:
        """How the next round is cut into segments. One member alone has nobody who could check it."""
        self._values = values
        if members < 2 or self._off:
            return Cut(0)
        leg = min(exchange_every, self._steps)
        cut = cut_for(values, self._steps, exchange_every, self._settings.memory_bytes)
        return replace(cut, every=self._pace.widen(cut.every, leg))

    def joins(self, rank: int) -> None:
        """A new member."""
        self._memories.joins(rank)

    def off(self, reason: str) -> Iterator[Action]:
        """This job cannot be checked: said once. Nobody is accused any more."""
        if reason and reason != self._off:
            self._off = reason
            self._cases.clear()
            for pending in self._pending.values():
                yield self._undecided(pending)
            self._pending.clear()
            yield ChecksOff(reason)

    def breaches(self, done: Finished) -> dict[int, str]:
        """Whose commitments do not fit together, and how."""
        if not done.every or why_marks_missing(done.reports):
            self._memories.unheard([*done.reports, *done.unheard])
            return {}
        self._memories.unheard(done.unheard)
        found: dict[int, str] = {}
        good: dict[int, RoundDone] = {}
        for rank, report in done.reports.items():
            fault = why_no_fit(
                report, every=done.every, exchanges=done.exchanges, batch=self._batch, values=self._values
            )
            if rank in done.unsigned:
                fault = "its daemon did not sign what it reported"
            elif not report.marks:
                fault = f"it committed to nothing, as the others did: {report.no_marks}"
            if fault := fault or self._memories.why_not(rank, report):
                found[rank] = fault
            else:
                good[rank] = report
        self._spoilt = not good
        if self._spoilt:
            return {}  # then it is not the members that are odd
        odd = odd_starts(good, every_leg=done.alike)
        return found | dict.fromkeys(odd, "its steps did not begin from the weights that the others began from")

    def draw(self, done: Finished) -> Iterator[Action]:
        """Choose what is done again of a round that counts."""
        self._round = done.round
        self._finished.append(done)
        self._pace.note(done.reports.values())
        if not done.every:
            return
        if self._off:
            return
        if self._nobody_agrees or self._proofs.mostly_fail(done.reports):
            yield from self.off("the same steps hardly ever lead to the same end twice")
            return
        for rank, report in done.reports.items():
            if report.not_repeated:
                self._proofs.fails(rank)
        missing = why_marks_missing(done.reports) or why_not_repeated(done.reports)
        if why := missing or (self._why_spoilt(done) if self._spoilt else ""):
            yield from self.off(why)
            return
        chance = self._settings.chance
        drawn = len(self._cases)
        odd = jumps(done.reports)
        for rank in sorted(done.reports):
            if rank in odd and rank not in self._pending:
                self._open(done, rank, odd[rank])
                continue
            if rank not in self._pending and chance() < self._rate(done, rank):
                self._open(done, rank)
        others = sorted(done.reports.keys() - self._pending.keys())
        if self._pending and others and len(self._cases) == drawn:
            self._open(done, others[self._one_of(others)])  # for those who have to show that they can

    def _why_spoilt(self, done: Finished) -> str:
        unsigned = done.reports.keys() <= set(done.unsigned)
        return "no peer's daemon signs reports" if unsigned else "what peers commit to does not fit"

    def _rate(self, done: Finished, rank: int) -> float:
        claims = claims_of(done.reports[rank])
        place_s = max((claim.start.size for claim in claims), default=0) / done.upload[rank]
        trust, wished = self.trust_in(rank), self._settings.wished
        return chance_of_check(trust, wished, len(claims), place_s=place_s, round_s=done.seconds)

    def _open(self, done: Finished, rank: int, place: int | None = None) -> None:
        if claims := claims_of(done.reports[rank]):
            claim = claims[self._one_of(claims) if place is None else place]
            self._cases.append(Case(rank, done.round, done.attempt, claim, list(done.shards[rank])))

    def _one_of(self, several: Sequence[object]) -> int:
        return min(int(self._settings.chance() * len(several)), len(several) - 1)

    def trust_in(self, rank: int) -> Trust:
        """What is known of its key by now."""
        if rank not in self._passed:
            self._passed[rank] = self._settings.trust_of(rank).passed
        return Trust(self._passed[rank])

    # --- asking ---

    def orders(self, awake: Collection[int], present: Collection[int], now: float) -> Iterator[Action]:
        """Ask whoever can be asked. `awake` may redo steps; of those that are not `present` nothing is asked."""
        self._forget_old(present)
        self._open_own(present)
        for case in self._cases:
            if case.asked is None and (free := self._free(case, awake)):
                case.asked = free[self._one_of(free)]
                case.tried.add(case.asked)
                case.asked_at, case.until = now, now + self._may_take(case)
                yield Tell(case.asked, case.order(self._steps))

    def deadline(self) -> float | None:
        """When somebody is late with its opinion."""
        return min((case.until for case in self._cases if case.asked is not None), default=None)

    def due(self, now: float) -> None:
        """Who is late is not waited for."""
        for case in self._cases:
            if case.asked is not None and case.until <= now:
                case.asked = None

    def heard(self, event: SegmentHeard, awake: Collection[int], now: float) -> Found:
        """An opinion. What was not asked for is passed over."""
        place = event.redone.of, event.redone.round, event.redone.attempt, event.redone.step
        case = next((case for case in self._cases if case.asked == event.rank and case.place == place), None)
        found = Found()
        if case is None:
            return found
        case.asked = None
        if not event.signed:
            found.gone[event.rank] = "it broke the protocol: its daemon did not sign what it said of others' steps"
            return found
        found.taken = True
        case.opinions.append(Opinion(event.rank, event.redone))
        if event.redone.end:
            self._answers.note(now - case.asked_at)
        if case.own:
            self._cases.remove(case)
            self._proofs.note(case.claim, case.opinions[0])
            self._settle_pending(found)
            return found
        more = bool(set(awake) - case.tried - {case.of}) and not (self._closing and case.withheld)
        judgement = judge(case.claim, case.opinions, more=more)
        if judgement.outcome is not Outcome.ASK_ANOTHER:
            self._cases.remove(case)
            self._note(case, judgement)
            self._settle(case, judgement, found)
        self._settle_pending(found)
        return found

    # --- what comes of it ---

    @property
    def _nobody_agrees(self) -> bool:
        undecided = self._outcomes[Outcome.UNDECIDED]
        return undecided >= MOST_UNDECIDED and 2 * undecided > self._outcomes.total()

    def _note(self, case: Case, judgement: Judgement) -> None:
        """What this tells of the machines of those that were asked."""
        self._outcomes[judgement.outcome] += 1
        for opinion in case.opinions:
            if opinion.redone.end is None:
                continue
            with_it = judgement.outcome is Outcome.PASSED and supports(case.claim, opinion)
            against_it = judgement.outcome is Outcome.CONVICTED and opinion.by in judgement.against
            (self._led_alike if with_it or against_it else self._led_elsewhere)[opinion.by] += 1

    def _can_repeat(self, rank: int) -> bool:
        """Whether its machine is usually led where others are."""
        return self._led_alike[rank] > 2 * self._led_elsewhere[rank]

    def _settle(self, case: Case, judgement: Judgement, found: Found) -> None:
        for rank in (*judgement.contradicted, *judgement.false_accusers):
            self._passed[rank] = 0
        match judgement.outcome:
            case Outcome.PASSED:
                self._passed[case.of] = self.trust_in(case.of).passed + 1
                self._withheld[case.of] = 0
            case Outcome.CONVICTED:
                self._pending[case.of] = Pending(case.of, case, judgement, self._round)
                return
            case Outcome.WITHHELD:
                self._withheld[case.of] += 1
                if self._withheld[case.of] >= MOST_WITHHELD:
                    found.gone[case.of] = f"it did not hand over what it had committed to, {MOST_WITHHELD} times"
        accusers = [rank for rank in judgement.false_accusers if rank not in self._pending]
        for rank in accusers:
            self._pending[rank] = Pending(rank, case, judgement, self._round)
        if not accusers:
            found.said.append(case.told(judgement, []))

    def _settle_pending(self, found: Found) -> None:
        """Those who are accused, once it is known what their machines can, and whether who speaks comes to own ends."""
        for rank, pending in list(self._pending.items()):
            outcome = self._outcome_of(pending)
            if outcome is None:
                continue
            del self._pending[rank]
            if outcome is Outcome.CONVICTED:
                proofs = [proof for one in (rank, *self._proven(pending)) for proof in self._own_of(one, pending)]
                found.gone[rank] = pending.why
                found.said.append(pending.case.told(pending.judgement, [rank], proofs))
            elif outcome is Outcome.UNLIKE:
                self._unlike(pending, found)
            else:
                found.said.append(self._undecided(pending))

    def _outcome_of(self, pending: Pending) -> Outcome | None:
        """None while it is not known yet."""
        rank, late = pending.accused, pending.since + PENDING_ROUNDS + OWN_SEGMENTS < self._round
        if len(self._proven(pending)) < WITNESSES:
            hopeful = [witness for witness in pending.witnesses if not self._proofs.failed(witness)]
            return Outcome.UNDECIDED if late or len(hopeful) < WITNESSES else None
        can, cannot = self._led_alike[rank] > 0, False
        if pending.lazy:
            can, cannot = self._can_repeat(rank), self._led_elsewhere[rank] > 0
        if can and self._has_shown(rank, pending):
            return Outcome.CONVICTED
        return Outcome.UNLIKE if late or (cannot and not can) or self._proofs.failed(rank) else None

    def _unlike(self, pending: Pending, found: Found) -> None:
        if not pending.lazy:
            found.gone[pending.accused] = pending.why
            found.said.append(pending.case.told(pending.judgement, []))
            return
        found.gone[pending.accused] = f"{pending.case.what} lead others elsewhere, and it is not led where others are"
        found.said.append(pending.case.told(replace(pending.judgement, outcome=Outcome.UNLIKE), []))

    def _undecided(self, pending: Pending) -> Action:
        """Those who accuse have not come to ends of their own again: nobody is believed."""
        self._outcomes[Outcome.UNDECIDED] += 1
        return pending.case.told(Judgement(Outcome.UNDECIDED, pending.judgement.distance, pending.judgement.step), [])

    def _own_of(self, rank: int, pending: Pending) -> list[OwnProof]:
        """Steps of its own that it has done again, about as old as those in dispute."""
        return self._proofs.of(rank, pending.case.round - KEPT_ROUNDS)

    def _has_shown(self, rank: int, pending: Pending) -> bool:
        """Whether it came to all ends of its own again that it was, and could be, asked about."""
        shown = len(self._own_of(rank, pending))
        asked = any(case.own and case.asked == rank for case in self._cases)  # what is not answered yet shows nothing
        return shown >= OWN_SEGMENTS or (shown > 0 and not asked and self._own_claim(rank, pending) is None)

    def _proven(self, pending: Pending) -> list[int]:
        """Witnesses that have."""
        return [rank for rank in pending.witnesses if self._has_shown(rank, pending)]

    def _open_own(self, present: Collection[int]) -> None:
        """Ask all who speak where somebody is accused about steps of their own."""
        busy = {case.of for case in self._cases if case.own}
        for pending in self._pending.values():
            for rank in {pending.accused, *pending.witnesses}.intersection(present) - busy:
                if self._proofs.failed(rank) or self._has_shown(rank, pending):
                    continue
                if found := self._own_claim(rank, pending):
                    busy.add(rank)
                    done, claim = found
                    self._own_asked.setdefault(rank, set()).add((done.round, done.attempt, claim.start.step))
                    own = Case(rank, done.round, done.attempt, claim, list(done.shards[rank]), own=True)
                    self._cases.insert(0, own)  # somebody who is accused may go on with it until then

    def _own_claim(self, rank: int, pending: Pending) -> tuple[Finished, Claim] | None:
        """Steps of its own that it was not asked about yet, and that are not in dispute."""
        disputed = pending.case.round, pending.case.attempt, pending.case.claim.start.step
        known = self._own_asked.get(rank, set()) | ({disputed} if rank == pending.case.of else set())
        for done in reversed(self._finished):
            claims = claims_of(done.reports[rank]) if rank in done.reports else []
            if new := [claim for claim in claims if (done.round, done.attempt, claim.start.step) not in known]:
                return done, new[self._one_of(new)]
        return None

    # --- after the last round ---

    @property
    def open_cases(self) -> int:
        """How many claims are not judged yet, or have come to nothing yet."""
        return len(self._cases) + len(self._pending)

    def close(self, now: float) -> float:
        """No other round comes; for how many seconds open cases are worth waiting for."""
        self._closing = True
        for case in self._cases:
            case.until = min(case.until, now + self._may_take(case))
        disputed = [pending.case for pending in self._pending.values()]
        return IN_TURN * max((self._may_take(case) for case in [*self._cases, *disputed]), default=0.0)

    def goes_on(self, awake: Collection[int], present: Collection[int]) -> bool:
        """Whether more can come of it. Opens cases for those that have to show that their machines can."""
        self._forget_old(present)
        self._open_own(present)
        for rank in sorted(self._pending.keys() & set(awake)):
            others = (case for case in self._cases if not case.own)
            could = (case.asked == rank or rank not in {case.of, *case.tried} for case in others)
            if not any(could):
                self._open_for(rank, present)
        return any(case.asked is not None or bool(self._free(case, awake)) for case in self._cases)

    def end(self) -> Found:
        """Nobody is waited for any longer: whose claim was found to be false has not shown what its machine can."""
        found = Found()
        for pending in self._pending.values():
            if len(self._proven(pending)) < WITNESSES:
                found.said.append(self._undecided(pending))
            else:
                self._unlike(pending, found)
        self._pending.clear()
        return found

    def _open_for(self, rank: int, present: Collection[int]) -> None:
        others = [other for other in present if other not in self._pending and other != rank]
        if self._finished and self._shown[rank] < MOST_SHOWN:
            last = self._finished[-1]
            claimed = sorted(other for other in others if other in last.reports)
            if claimed:
                self._shown[rank] += 1
                self._open(last, claimed[self._one_of(claimed)])

    def _may_take(self, case: Case) -> float:
        """Seconds for an opinion."""
        size = case.claim.start.size
        return self._answers.at_the_end(size) if self._closing else MOST_S + size / SLOWEST_BYTES_S

    def _free(self, case: Case, awake: Collection[int]) -> list[int]:
        busy = {other.asked for other in self._cases}
        if case.own:
            return sorted({case.of}.intersection(awake) - busy - case.tried)
        free = set(awake) - busy - case.tried - {case.of}
        return sorted(free & self._pending.keys() or free)

    def _forget_old(self, present: Collection[int]) -> None:
        """Cases of members that are gone, and whom that is gone was asked: somebody else may be."""
        self._cases = [case for case in self._cases if case.of in present and not self._too_old(case)]
        for case in self._cases:
            if case.asked not in present:
                case.asked = None

    def _too_old(self, case: Case) -> bool:
        # Once somebody has begun to fetch a place it is kept for those that are asked next.
        patience = PENDING_ROUNDS if case.opinions else PATIENT_ROUNDS
        spent = case.own and case.of in case.tried
        return case.asked is None and (spent or case.round + patience < self._round)
