"""The coordinator's mind: which round a job is in, who is in it, and what has to be said next. Pure.

Every event may drop members, and every drop may allow the next step, so events only note what was said; then all the
steps that have become possible are taken (`_step`). Each attempt that fails costs a member or one of a few chances,
and each wait has a deadline: a job always ends, or waits for a member whose owner has paused it.

The phases stand in `phases`, what comes before the first round in `beginning`, one attempt at a round in `attempt`,
whose fault something is in `blame`, what owners want in `pauses`. Inside, time is what the job's own clock says
(`Pauses.clock`).
"""

from __future__ import annotations

from collections.abc import Mapping

from axonp2p.errors import AxonError
from axonp2p.jobs.sharding import assign
from axonp2p.training.agreement import majority
from axonp2p.training.attempt import Attempt, not_begun
from axonp2p.training.beginning import Beginning
from axonp2p.training.blame import Blame, Complaints, Mistakes
from axonp2p.training.deadlines import Patience
from axonp2p.training.phases import AT_REST, Phase, advance
from axonp2p.training.plan import TrainPlan
from axonp2p.training.roll import Roll
from axonp2p.training.round_messages import (
    Action,
    Event,
    GiveUp,
    Leave,
    LinkBroken,
    MemberLost,
    MemberReady,
    MistakeReported,
    OwnersWord,
    ProgressHeard,
    RoundAccepted,
    RoundRedone,
    RoundReported,
    StateAdoptedBy,
    Tick,
    Trained,
)

MOST_STALLS = 2
"""How often in a job a round may be redone because nobody finished it and nobody can be blamed."""


class Rounds:
    """One job's training. `members` maps ranks to names for people; a rank never changes its meaning."""

    def __init__(
        self, plan: TrainPlan, members: Mapping[int, str], *, min_peers: int = 1, patience: Patience | None = None
    ) -> None:
        if not 1 <= len(members) <= plan.shards:
            raise ValueError(f"{plan.shards} shards cannot be shared among {len(members)} members")
        self.phase = Phase.NEW
        self._said: list[Action] = []
        self._roll = Roll(members, max(1, min_peers), self._said.append)
        self._pauses = self._roll.pauses
        self._plan = plan
        self._patience = patience or Patience()
        self._beginning = Beginning(plan, self._patience, 0.0)
        self._attempt: Attempt | None = None
        self._shares: dict[int, list[int]] = {}
        self._stalls = 0
        self._usual_s: float | None = None
        self._blame = Blame()

    @property
    def members(self) -> list[int]:
        """Who is in the job now."""
        return self._roll.members

    def begin(self, now: float) -> list[Action]:
        """The first orders. `now` is monotonic seconds, here and in the next two."""
        self._enter(Phase.PREPARING)
        self._beginning = Beginning(self._plan, self._patience, now)
        self._roll.tell_members()
        self._said.extend(self._beginning.orders(self.members))
        return self._go_on(now)

    def heard(self, event: Event, now: float) -> list[Action]:
        """What is to be done now that this has happened. Who is not in the job (any more) is not listened to."""
        if self.phase in AT_REST:
            return []
        match event:
            case Tick():
                self._roll.let_go(now, self._fetch_s())
                if not self._roll.taken_back and not self._pauses.job_waits:
                    self._time_has_passed(self._pauses.clock(now))
            case _ if isinstance(event, OwnersWord):
                self._roll.owner_says(event, now, in_round=self._attempt is not None)
            case _ if event.rank in self.members:
                self._note(event, self._pauses.clock(now))
        return self._go_on(now)

    def next_deadline(self) -> float | None:
        """When to say `Tick` if nothing else happens; None before the beginning, after the end, and while it waits."""
        if self.phase in AT_REST:
            return None
        deadlines = [self._pauses.owners_deadline(self.members, self._fetch_s())]
        if not self._pauses.job_waits:
            ours = min(self._phase_deadline(), self._blame.deadline(self.members, self._roll.awake))
            deadlines.append(self._pauses.on_our_clock(ours))
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # --- what was heard --------------------------------------------------------------------------

    def _note(self, event: Event, now: float) -> None:
        fault = ""
        match event:
            case MemberLost(rank, reason):
                self._roll.lose(rank, reason)
            case LinkBroken(rank) | MistakeReported(rank):
                fault = self._blame.heard(event, self._roll.names, now)
            case MemberReady(rank) | StateAdoptedBy(rank):
                fault = self._beginning.heard(event, self.members, now)
            case ProgressHeard(rank) | RoundReported(rank):
                fault = self._attempt.heard(event, self._plan.steps, now) if self._attempt else not_begun(event)
        if fault:
            self._roll.drop(rank, f"it broke the protocol: {fault}")

    def _time_has_passed(self, now: float) -> None:
        if blamed := self._blame.due(self.members, self._roll.awake, now):
            self._roll.drop_all(blamed)
        elif self._phase_deadline() <= now:
            paused = self._pauses.paused(self.members)
            late = self._attempt.late(now, paused) if self._attempt else self._beginning.late(self.members, paused)
            self._roll.drop_late(late)
            if self._attempt is None:
                self._beginning.wait_longer(self.members, now)
            elif not late:
                self._stalls += 1
                self._roll.unsettled = "no peer finished it in time"

    # --- the steps that become possible ----------------------------------------------------------

    def _go_on(self, now: float) -> list[Action]:
        while self.phase not in AT_REST and self._step(self._pauses.clock(now)):
            pass
        if self.phase not in AT_REST:
            self._said.extend(self._pauses.look(self.members, now))
        said = [*self._said]
        self._said.clear()
        return said

    def _step(self, now: float) -> bool:
        """Take one step if what was heard allows it; whether another one may follow."""
        if self._roll.taken_back:
            self._enter(Phase.LEFT)
            self._said.append(Leave(self._roll.why_leave()))
            return False
        if error := self._why_give_up():
            self._enter(Phase.GIVEN_UP)
            self._said.append(GiveUp(error))
            return False
        blamed = self._blame.mistakes.blamed(self.members)
        if blamed and not self._awaited_beside(blamed):
            self._roll.drop_all(blamed)
            return True
        if self._attempt:
            return self._step_training(self._attempt, now)
        if self.phase is Phase.PREPARING:
            return self._step_preparing(now)
        return self._step_agreeing(now)

    def _step_preparing(self, now: float) -> bool:
        if self._beginning.awaited(self.members):
            return False
        odd = self._beginning.odd_models(self.members)
        self._roll.drop_all(odd)
        if not odd:
            self._enter(Phase.AGREEING)
            self._beginning.agree(self.members, now)
        return True

    def _step_agreeing(self, now: float) -> bool:
        if orders := self._beginning.transfer_orders(self.members):
            self._roll.tell_members()
            self._said.extend(orders)
        state = self._beginning.agreed_state(self.members)
        if state is None:
            return False
        self._enter(Phase.TRAINING)
        self._begin_round(self._plan.first_round, state, now)
        return True

    def _step_training(self, attempt: Attempt, now: float) -> bool:
        states = {rank: attempt.reports[rank].state for rank in self.members if rank in attempt.reports}
        if len(states) < len(self.members):
            if self._roll.unsettled and self._roll.all_stay():
                self._said.append(RoundRedone(attempt.round, attempt.number + 1, self._roll.unsettled))
                self._start_attempt(attempt.round, attempt.number + 1, attempt.state, now)
            return self._roll.taken_back
        state = majority(states)
        reason = f"its weights differed from the others' after round {attempt.round + 1}"
        odd = {rank: reason for rank in self.members if states[rank] != state}
        self._roll.drop_all(odd)
        if not odd:
            self._usual_s = attempt.usual_s()
            reports = {rank: attempt.reports[rank] for rank in self.members}
            self._said.append(RoundAccepted(attempt.round, reports, state))
            self._begin_round(attempt.round + 1, state, now)
        return True

    def _begin_round(self, round: int, state: bytes, now: float) -> None:
        self._blame.mistakes = Mistakes()
        if round >= self._plan.rounds:
            self._enter(Phase.TRAINED)
            self._said.append(Trained(state, list(self.members)))
        elif self._roll.all_stay():
            self._start_attempt(round, 0, state, now)

    def _start_attempt(self, round: int, number: int, state: bytes, now: float) -> None:
        self._roll.unsettled = ""
        self._blame.complaints = Complaints()
        self._attempt = Attempt(round, number, state, now, self.members)
        self._shares = assign(self._plan.shards, self.members, before=self._shares)
        self._roll.tell_members()
        self._said.extend(self._attempt.orders(self._shares, self._plan.steps))

    # --- small questions -------------------------------------------------------------------------

    def _awaited_beside(self, blamed: Mapping[int, str]) -> set[int]:
        """Who has yet to say whether the task, which failed at `blamed`, works for it."""
        waiting = self._attempt.awaited_after(blamed) if self._attempt else self._beginning.awaited(self.members)
        return set(waiting) & set(self.members) - set(blamed)

    def _why_give_up(self) -> AxonError | None:
        if verdict := self._blame.mistakes.verdict(self.members, self._roll.least):
            return verdict
        if self._attempt and self._stalls > MOST_STALLS and not self._roll.too_few:
            return self._attempt.never_ends()
        return self._roll.too_few_left() if self._roll.too_few else None

    def _enter(self, phase: Phase) -> None:
        self.phase = advance(self.phase, phase)

    def _phase_deadline(self) -> float:
        if self._attempt is None:
            return self._beginning.deadline
        paused = self._pauses.paused(self.members)
        return self._attempt.deadline(self._patience, self._usual_s, self._fetch_s(), paused)

    def _fetch_s(self) -> float:
        """What the way of a state may take, or an exchange at the least."""
        return self._beginning.transfer_s(self.members)
