"""Round after round, each attempted until its members agree: who takes part, who follows, who is left behind. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from axonp2p.errors import AxonError
from axonp2p.jobs.sharding import assign
from axonp2p.training.deadlines import Learnt, Patience, transfer_s
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Action,
    Chosen,
    ProgressHeard,
    RoundAccepted,
    RoundBegunAnew,
    RoundReported,
    SegmentHeard,
)
from axonp2p.training.rounds.attempt import Attempt, not_begun
from axonp2p.training.rounds.catching_up import COMES_S
from axonp2p.training.rounds.commit_rule import CommitRule
from axonp2p.training.rounds.divergence import Pair
from axonp2p.training.rounds.fault_attribution import FaultAttribution, Mistakes
from axonp2p.training.rounds.last_round import AreEnough, LastChecks, LastRound
from axonp2p.training.rounds.membership import Membership
from axonp2p.training.spot_checks.open_checks import Finished
from axonp2p.training.spot_checks.scheduler import SpotChecks
from axonp2p.training.tuning.costs import ModelSize
from axonp2p.training.tuning.link_statistics import LinkStatistics
from axonp2p.verification.claims import RoundDone

MOST_STALLS = 2
STUCK_S = 600.0
"""A job is given up when nobody finishes a round, and nobody can be blamed, more often and for longer than this.

Peers that all answer, and are all too slow, are most likely on a machine or behind a line that is busy for a while.
"""


@dataclass(frozen=True)
class RoundsContext:
    """The state that all parts of the coordinator share."""

    plan: TrainPlan
    patience: Patience
    membership: Membership
    faults: FaultAttribution
    say: Callable[[Action], None]
    checks: SpotChecks | None = None
    """None: nothing is done again."""
    are_enough: AreEnough | None = None
    """None: all rounds of the plan are trained, unless the client says otherwise."""


class Attempts:
    """Those of one job, from the first round on."""

    def __init__(self, job: RoundsContext, link_statistics: LinkStatistics) -> None:
        self._job = job
        self._membership = job.membership
        self._link_statistics = link_statistics
        self._learnt = Learnt()
        self._attempt: Attempt | None = None
        self._shards: dict[int, list[int]] = {}
        self._stalls = 0
        self._round_began = 0.0
        self._stuck = False
        self._never_stepped = 0.0
        """For so many seconds no member ended its first local step; 0: one did, or there is time."""
        self._undecided = ""
        self._model = (0, 0, 0)
        self._commit_rule = CommitRule(job.plan.keep_every)
        self.last_round = LastRound(job.plan, job.are_enough, job.say)
        self.last_checks = LastChecks(job.checks, job.membership, job.say)
        self.trained = False
        """Whether all rounds are accepted."""

    @property
    def state(self) -> bytes | None:
        """The last accepted state; None before the first round."""
        return self._attempt.state if self._attempt else None

    def begin(self, round: int, state: bytes, model: ModelSize, now: float) -> None:
        """All members hold the state that this round begins with, of a model of this size."""
        self._model = model
        self.last_round.begins(round)
        if round > self._job.plan.first_round:
            # It is not on the client's disk, or was not when that forgot everything else.
            last = self.last_round.is_last(round - 1)
            for action in self._commit_rule.accepted(round - 1, state, last=last):
                self._job.say(action)
        self._begin_round(round, state, now)

    def orders_are_out(self, now: float) -> None:
        """The last orders reach the members from now on."""
        if self._attempt:
            self._attempt.orders_are_out(now)

    def kept(self, state: bytes) -> None:
        """This state is on the client's disk: a round that waited for that may be accepted now."""
        self.last_checks.book(self._commit_rule.kept(state))

    def heard(self, event: ProgressHeard | RoundReported, now: float) -> str:
        """A member's word of a round; gives what is wrong with it, if anything is."""
        if self._attempt is None:
            return not_begun(event)
        if event.rank not in self._attempt.members:
            return self._attempt.too_early(event)
        return self._attempt.heard(event, self._job.plan.steps, now)

    def segment(self, event: SegmentHeard, now: float) -> None:
        """Steps of a member were done again by another."""
        if self._job.checks:
            found = self._job.checks.heard(event, self._membership.awake & set(self._membership.members), now)
            if found.taken and self._attempt and event.rank in self._attempt.reports:
                self.last_checks.helped[event.rank] += event.redone.flops  # else it is in the report that comes
            self.last_checks.settle(found)

    def ask_for_checks(self, now: float) -> None:
        """Have somebody do again what is to be done again."""
        if self._job.checks:
            for action in self._job.checks.orders(
                self._membership.awake & set(self._membership.members), self._membership.present, now
            ):
                self._job.say(action)

    def awaited_beside(self, blamed: Collection[int]) -> set[int]:
        """The members that have yet to come as far as those at which the task failed."""
        return self._attempt.awaited_after(blamed) if self._attempt else set()

    def why_give_up(self) -> AxonError | None:
        """When rounds do not end."""
        if self._attempt and self._undecided and not self._membership.too_few:
            return self._attempt.undecided(self._undecided)
        if self._attempt is None or self._membership.too_few:
            return None
        names = self._membership.names
        if self._never_stepped:
            return self._attempt.never_steps(self._never_stepped, names)
        return self._attempt.never_ends(self._job.plan.first_attempt, names) if self._stuck else None

    # --- time ---

    def deadline(self) -> float:
        """When somebody is late, or no longer waited for."""
        assert self._attempt
        if self._agreed():
            return math.inf if self._commit_rule.full else self._attempt.agreed_at + COMES_S
        paused = self._membership.pauses.paused(self._membership.members)
        return self._attempt.deadline(self._learnt, self._job.patience, transfer_s(self._model[1]), paused)

    def overdue(self, now: float, until: float) -> None:
        """The deadline has come. A member that is left behind may take until `until` to catch up."""
        assert self._attempt
        if self._agreed():
            return
        attempt, membership = self._attempt, self._membership
        paused = membership.pauses.paused(membership.members)
        late = attempt.late(self._learnt, now, paused)
        if pair := attempt.apart(late, paused):
            who = " and ".join(membership.names[rank] for rank in sorted(pair))
            reason = f"{who} alone did not finish round {attempt.round + 1}, as if they did not reach each other"
            if self._job.faults.links.part(pair, reason, membership.members):
                membership.unsettled = reason
                return
        awake = late.keys() - paused.keys()
        if awake and membership.needs(late) and attempt.wait_longer(now):
            return
        for rank in awake:
            self._learnt.missed(rank, now - attempt.started)
        membership.leave_behind(late, until)
        if not late and not self._learnt.known and attempt.no_step_yet == attempt.members:
            self._never_stepped = now - attempt.started  # begun anew, the same code would do the same
        elif not late:
            self._stalls += 1
            self._stuck = self._stalls > MOST_STALLS and now - self._round_began >= STUCK_S
            membership.unsettled = "no peer finished it in time"

    def cut(self, pairs: dict[Pair, str]) -> None:
        """These cannot reach each other any more: with other slices they need not."""
        for pair, reason in pairs.items():
            if self._attempt and pair & self._attempt.owners and pair <= self._attempt.members:
                self._membership.unsettled = self._membership.unsettled or reason

    # --- steps ---

    def step(self, now: float) -> bool:
        """Take one step if what was heard allows it; whether another one may follow."""
        attempt, membership = self._attempt, self._membership
        assert attempt
        states = {attempt.reports[rank].state for rank in membership.members if rank in attempt.reports}
        if not self._all_reported():
            return bool(membership.unsettled) and self._again(now)
        if len(states) == 1 and not attempt.spoilt:
            return self._accept(attempt, next(iter(states)), now)
        if membership.unsettled:
            return self._again(now)
        self._differ(attempt, now)
        return True

    def _differ(self, attempt: Attempt, now: float) -> None:
        """All have reported, but not the same: some go, are left behind, or only own no slice when it is redone."""
        membership, divergences = self._membership, self._job.faults.divergences
        reports = {rank: attempt.reports[rank] for rank in membership.members}
        members = sorted(attempt.members)
        verdict = divergences.judge(reports, members, attempt.owners, membership.names, attempt.choice.settings.rule)
        membership.drop_all(verdict.gone)
        attempt.spoilt = verdict.spoilt
        self._undecided = verdict.undecided
        if verdict.behind and len(membership.members) - len(verdict.behind) >= membership.least:
            membership.leave_behind(verdict.behind, now + self._job.patience.start_s + transfer_s(self._model[1]))
        elif verdict.behind:
            self._undecided = next(iter(verdict.behind.values()))
        membership.unsettled = membership.unsettled or verdict.redo

    def _all_reported(self) -> bool:
        return self._attempt is not None and self._attempt.reports.keys() >= set(self._membership.members)

    def _agreed(self) -> bool:
        assert self._attempt
        states = {report.state for rank, report in self._attempt.reports.items() if rank in self._membership.members}
        return self._all_reported() and len(states) == 1

    def _again(self, now: float) -> bool:
        attempt, membership = self._attempt, self._membership
        assert attempt
        if membership.all_stay():
            number = attempt.number + 1 - self._job.plan.first_attempt
            self._job.say(RoundBegunAnew(attempt.round, number, membership.unsettled))
            self._start(attempt.round, attempt.number + 1, attempt.state, now)
        return True

    def _accept(self, attempt: Attempt, state: bytes, now: float) -> bool:
        attempt.agreed_at = min(attempt.agreed_at, now)
        last = self.last_round.is_last(attempt.round)
        soon = self._membership.catching_up.comes_soon(attempt.state, state) and now < attempt.agreed_at + COMES_S
        if (soon and not last) or self._commit_rule.full:
            return False
        self._stalls = 0
        self._job.faults.divergences.round_ended()
        self._learnt.note(attempt.took(), attempt.silence)
        reports = {rank: attempt.reports[rank] for rank in self._membership.members}
        finished = self._finished(attempt, reports)
        breaches = self._job.checks.breaches(finished) if self._job.checks else {}
        reports = {rank: report for rank, report in reports.items() if rank not in breaches}
        self.last_round.accepted(attempt.round, reports)
        self._job.say(RoundAccepted(attempt.round, reports, state))
        for action in self._commit_rule.accepted(attempt.round, state, last=self.last_round.is_last(attempt.round)):
            self._job.say(action)
        self._membership.drop_all({rank: f"it broke the protocol: {reason}" for rank, reason in breaches.items()})
        if self._job.checks:
            for drawn in self._job.checks.draw(replace(finished, reports=reports)):
                self._job.say(drawn)
        stale = self._link_statistics.round(reports)
        if len(reports) - len(stale) >= self._membership.least:
            self._membership.drop_all(stale)
        self._membership.drop_all(self._membership.catching_up.round_ended(now))
        self._begin_round(attempt.round + 1, state, now)
        return True

    def _finished(self, attempt: Attempt, reports: dict[int, RoundDone]) -> Finished:
        choice = attempt.choice
        return Finished(
            round=attempt.round,
            attempt=attempt.number,
            every=attempt.mark_every,
            exchanges=-(-self._job.plan.steps // choice.settings.exchange_every),
            alike=not choice.settings.overlap,
            shards=attempt.shards,
            reports=reports,
            signed=attempt.signed,
            unheard=attempt.members - attempt.reports.keys(),
            seconds=max(attempt.took().values()),
            upload={rank: self._link_statistics.upload(rank) for rank in reports},
        )

    def _begin_round(self, round: int, state: bytes, now: float) -> None:
        self._job.faults.mistakes = Mistakes()
        self._job.faults.limits.round_accepted()
        if round >= self.last_round.rounds:
            self.trained = True
            self.last_checks.begin(state, now)
        elif self._membership.all_stay():
            self.last_round.begins(round)
            self._round_began = now
            self._start(round, self._job.plan.first_attempt, state, now)

    def _start(self, round: int, number: int, state: bytes, now: float) -> None:
        job, membership, links = self._job, self._membership, self._job.faults.links
        membership.unsettled = ""
        membership.let_in(state, job.plan.shards, round)
        membership.drop_all(links.in_the_way(membership.members, membership.catching_up.awake))
        if membership.too_few:
            return
        membership.unsettled = ""
        fetch = membership.catching_up.follow(state, membership.awake & set(membership.members))
        following = membership.catching_up.following
        cut = links.cut(membership.members, following)
        cut += job.faults.divergences.not_owners(membership.members, cut)
        choice, changed = self._link_statistics.choose(
            self._model, membership.members, len(following), cut, round=round
        )
        before = self._attempt
        others = before is not None and (before.members, before.listeners) != (
            frozenset(membership.members),
            sorted(following),
        )
        if changed or others:
            self._learnt.terms_changed()
        if changed:
            job.say(Chosen(round, choice))
        self.last_checks.helped.clear()
        self._attempt = Attempt(round, number, state, now, choice, following, self._stalls)
        self._shards = assign(job.plan.shards, membership.members, before=self._shards)
        membership.tell_members()
        every = self._mark_every(choice.settings.exchange_every)
        for action in [*fetch, *self._attempt.orders(self._shards, job.plan, every)]:
            job.say(action)

    def _mark_every(self, exchange_every: int) -> int:
        checks = self._job.checks
        if checks is None:
            return 0
        checkable = checks.devices.checkable(self._membership.members)
        cut = checks.cut(self._model[1], exchange_every, len(checkable))
        for action in checks.off(cut.why_not):
            self._job.say(action)
        return cut.every
