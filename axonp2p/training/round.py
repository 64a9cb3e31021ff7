"""The coordinator's mind: which round a job is in, who is in it, and what has to be said next. Pure.

Every event may drop members, and every drop may allow the next step, so events only note what was said; then all the
steps that have become possible are taken (`_step`). Each attempt that fails costs a member or one of a few chances,
and each wait has a deadline: a job always ends.

The phases stand in `phases`, what comes before the first round in `beginning`, one attempt at a round in `attempt`,
whose fault something is in `blame`.
"""

from __future__ import annotations

from collections.abc import Mapping

from axonp2p.errors import AxonError, JobFailed
from axonp2p.jobs.sharding import assign
from axonp2p.training.agreement import majority
from axonp2p.training.attempt import Attempt
from axonp2p.training.beginning import Beginning
from axonp2p.training.blame import Complaints, Mistakes
from axonp2p.training.deadlines import Patience
from axonp2p.training.messages import Progress, RoundDone, StartRound
from axonp2p.training.phases import AT_REST, Phase, advance
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Action,
    Event,
    GiveUp,
    LinkBroken,
    MemberDropped,
    MemberLost,
    MemberReady,
    MistakeReported,
    ProgressHeard,
    RoundAccepted,
    RoundRedone,
    RoundReported,
    SetMembers,
    StateAdoptedBy,
    Tell,
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
        self.members = sorted(members)
        """Who is in the job now."""
        self._plan = plan
        self._names = dict(members)
        self._least = max(1, min_peers)
        self._patience = patience or Patience()
        self._said: list[Action] = []
        self._told_members: list[int] = []
        self._gone: list[str] = []
        self._beginning = Beginning(plan, self._patience, 0.0)
        self._attempt: Attempt | None = None
        self._shares: dict[int, list[int]] = {}
        self._redo_because = ""
        self._stalls = 0
        self._usual_s: float | None = None
        self._mistakes = Mistakes()
        self._complaints = Complaints()

    def begin(self, now: float) -> list[Action]:
        """The first orders. `now` is monotonic seconds, here and below."""
        self._enter(Phase.PREPARING)
        self._beginning = Beginning(self._plan, self._patience, now)
        self._set_members()
        self._said.extend(self._beginning.orders(self.members))
        return self._go_on(now)

    def heard(self, event: Event, now: float) -> list[Action]:
        """What is to be done now that this has happened. Who is not in the job (any more) is not listened to."""
        if self.phase in AT_REST:
            return []
        if isinstance(event, Tick):
            self._time_has_passed(now)
        elif event.rank in self.members:
            self._note(event, now)
        return self._go_on(now)

    def next_deadline(self) -> float | None:
        """When to say `Tick` if nothing else happens; None only before the beginning and after the end."""
        if self.phase in AT_REST:
            return None
        blame = (self._mistakes.deadline(self.members), self._complaints.deadline(self.members))
        return min([self._phase_deadline(), *(deadline for deadline in blame if deadline is not None)])

    # --- what was heard --------------------------------------------------------------------------

    def _note(self, event: Event, now: float) -> None:
        match event:
            case MemberLost(rank, reason):
                self._drop(rank, reason)
            case LinkBroken(rank, to, reason) if to in self._names:
                why = f"{self._names[rank]} and {self._names[to]} cannot reach each other: {reason}"
                self._complaints.note(rank, to, why, now)
            case LinkBroken(rank, to):
                self._drop(rank, f"it broke the protocol: it spoke of rank {to}, which nobody has")
            case MistakeReported(rank, mistake):
                self._mistakes.note(rank, self._names[rank], mistake, now)
            case MemberReady(rank, prepared):
                if not self._beginning.heard_ready(rank, prepared):
                    self._drop(rank, "it broke the protocol: it prepared twice")
            case StateAdoptedBy(rank, state):
                if not self._beginning.heard_adopted(rank, state, self.members, now):
                    self._drop(rank, "it broke the protocol: it took over a state that it was not given")
            case ProgressHeard(rank, progress):
                attempt = self._attempt_of(rank, progress)
                if attempt and progress.step >= self._plan.steps:
                    attempt.heard_finished(rank, now)
            case RoundReported(rank, done):
                attempt = self._attempt_of(rank, done)
                if attempt and not attempt.heard_done(rank, done, now):
                    self._drop(rank, "it broke the protocol: it reported a round twice")

    def _attempt_of(self, rank: int, message: Progress | RoundDone) -> Attempt | None:
        """The attempt that a member speaks of, when that is the present one."""
        compared = self._attempt.compare(message) if self._attempt else 1
        if compared > 0:
            self._drop(rank, f"it broke the protocol: it spoke of round {message.round + 1}, which has not begun")
        # What is about an earlier attempt crossed our order on its way.
        return self._attempt if compared == 0 else None

    def _time_has_passed(self, now: float) -> None:
        mistake_deadline = self._mistakes.deadline(self.members)
        link_deadline = self._complaints.deadline(self.members)
        if mistake_deadline is not None and mistake_deadline <= now:
            self._drop_all(self._mistakes.blamed(self.members))
        elif link_deadline is not None and link_deadline <= now:
            self._drop_all(self._complaints.culprits(self.members, now))
        elif self._phase_deadline() <= now:
            late = self._attempt.late(now) if self._attempt else self._beginning.awaited(self.members)
            self._drop_all(late)
            if not late:
                self._stalls += 1
                self._redo_because = "no peer finished it in time"

    # --- the steps that become possible ----------------------------------------------------------

    def _go_on(self, now: float) -> list[Action]:
        while self.phase not in AT_REST and self._step(now):
            pass
        said, self._said = self._said, []
        return said

    def _step(self, now: float) -> bool:
        """Take one step if what was heard allows it; whether another one may follow."""
        if error := self._why_give_up():
            self._enter(Phase.GIVEN_UP)
            self._say(GiveUp(error))
            return False
        blamed = self._mistakes.blamed(self.members)
        if blamed and not self._awaited_beside(blamed):
            self._drop_all(blamed)
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
        self._drop_all(odd)
        if not odd:
            self._enter(Phase.AGREEING)
            self._beginning.agree(self.members, now)
        return True

    def _step_agreeing(self, now: float) -> bool:
        if orders := self._beginning.transfer_orders(self.members):
            self._set_members()
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
            if self._redo_because:
                self._say(RoundRedone(attempt.round, attempt.number + 1, self._redo_because))
                self._start_attempt(attempt.round, attempt.number + 1, attempt.state, now)
            return False
        state = majority(states)
        reason = f"its weights differed from the others' after round {attempt.round + 1}"
        odd = {rank: reason for rank in self.members if states[rank] != state}
        self._drop_all(odd)
        if not odd:
            self._usual_s = attempt.usual_s()
            reports = {rank: attempt.reports[rank] for rank in self.members}
            self._say(RoundAccepted(attempt.round, reports, state))
            self._begin_round(attempt.round + 1, state, now)
        return True

    def _begin_round(self, round: int, state: bytes, now: float) -> None:
        self._mistakes = Mistakes()
        if round >= self._plan.rounds:
            self._enter(Phase.TRAINED)
            self._say(Trained(state, list(self.members)))
        else:
            self._start_attempt(round, 0, state, now)

    def _start_attempt(self, round: int, number: int, state: bytes, now: float) -> None:
        self._redo_because = ""
        self._complaints = Complaints()
        self._attempt = Attempt(round, number, state, now, self.members)
        self._shares = assign(self._plan.shards, self.members, before=self._shares)
        self._set_members()
        for rank in self.members:
            start = StartRound(
                round=round,
                attempt=number,
                state=state,
                members=list(self.members),
                shards=self._shares[rank],
                steps=self._plan.steps,
            )
            self._say(Tell(rank, start))

    # --- who is in, and why not ------------------------------------------------------------------

    def _drop_all(self, reasons: Mapping[int, str]) -> None:
        for rank, reason in reasons.items():
            self._drop(rank, reason)

    def _drop(self, rank: int, reason: str) -> None:
        self.members.remove(rank)
        self._gone.append(f"{self._names[rank]}: {reason}")
        self._redo_because = self._redo_because or self._gone[-1]
        self._say(MemberDropped(rank, reason))

    def _set_members(self) -> None:
        if self._told_members != self.members:
            self._told_members = list(self.members)
            self._say(SetMembers(list(self.members)))

    def _awaited_beside(self, blamed: Mapping[int, str]) -> set[int]:
        """Who has yet to say whether the task, which failed at `blamed`, works for it."""
        waiting = self._attempt.awaited_after(blamed) if self._attempt else self._beginning.awaited(self.members)
        return set(waiting) & set(self.members) - set(blamed)

    def _why_give_up(self) -> AxonError | None:
        if verdict := self._mistakes.verdict(self.members, self._least):
            return verdict
        if len(self.members) < self._least:
            return JobFailed(
                f"{len(self.members)} peers are left; the job needs at least {self._least}",
                cause="; ".join(self._gone),
                fix="axon peers shows who is there now; a lower min-peers goes on with fewer",
            )
        if self._stalls > MOST_STALLS and self._attempt:
            return JobFailed(
                f"round {self._attempt.round + 1} does not end, though it was begun {self._attempt.number + 1} times",
                cause=f"{len(self.members)} peers answer, but none finished in time",
                fix="fewer steps a round, or peers with faster links (max-rtt)",
            )
        return None

    # --- small change ----------------------------------------------------------------------------

    def _say(self, action: Action) -> None:
        self._said.append(action)

    def _enter(self, phase: Phase) -> None:
        self.phase = advance(self.phase, phase)

    def _phase_deadline(self) -> float:
        if self._attempt is None:
            return self._beginning.deadline
        exchange_s = self._beginning.transfer_s(self.members)
        return self._attempt.deadline(self._patience, self._usual_s, exchange_s)
