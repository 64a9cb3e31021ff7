"""The coordinator's mind: which round a job is in, who is in it, and what has to be said next. Pure.

    PREPARING   every member loads the task and builds its model
    AGREEING    members whose state differs get it from another member
    TRAINING    rounds, attempt after attempt; one is accepted when all members report the same state
    TRAINED     every round is accepted
    GIVEN_UP    the job cannot go on

Every event may drop members, and every drop may allow the next step, so events only note what was said and then take
all the steps that have become possible. Each attempt that fails costs a member or one of a few chances, and each wait
has a deadline: a job always ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from axonp2p.errors import AxonError, JobFailed
from axonp2p.jobs.sharding import assign
from axonp2p.training.agreement import Agreement, majority
from axonp2p.training.attempt import Attempt
from axonp2p.training.blame import Complaints, Mistakes
from axonp2p.training.deadlines import Patience, transfer_s
from axonp2p.training.messages import Prepare, Prepared, Progress, RoundDone, StartRound
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


class Phase(Enum):
    """Where a job's training is."""

    NEW = "new"
    PREPARING = "preparing"
    AGREEING = "agreeing"
    TRAINING = "training"
    TRAINED = "trained"
    GIVEN_UP = "given up"


LEGAL: Mapping[Phase, frozenset[Phase]] = {
    Phase.NEW: frozenset({Phase.PREPARING}),
    Phase.PREPARING: frozenset({Phase.AGREEING, Phase.GIVEN_UP}),
    Phase.AGREEING: frozenset({Phase.TRAINING, Phase.GIVEN_UP}),
    Phase.TRAINING: frozenset({Phase.TRAINED, Phase.GIVEN_UP}),
    Phase.TRAINED: frozenset(),
    Phase.GIVEN_UP: frozenset(),
}
"""Every legal step from one phase to another."""


class Rounds:
    """One job's training. `members` maps ranks to names for people; the ranks never change their meaning."""

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
        self._deadline = 0.0
        self._prepared: dict[int, Prepared] = {}
        self._agreement: Agreement | None = None
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
        self._deadline = now + self._patience.start_s
        self._set_members()
        for rank in self.members:
            self._say(Tell(rank, self._prepare(rank)))
        return self._go_on(now)

    def heard(self, event: Event, now: float) -> list[Action]:
        """What is to be done now that this has happened. Who is not in the job (any more) is not listened to."""
        if self.phase in (Phase.NEW, Phase.TRAINED, Phase.GIVEN_UP):
            return []
        if isinstance(event, Tick):
            self._time_has_passed(now)
        elif event.rank in self.members:
            self._note(event, now)
        return self._go_on(now)

    def next_deadline(self) -> float | None:
        """When to say `Tick` if nothing else happens; None only before the beginning and after the end."""
        if self.phase in (Phase.NEW, Phase.TRAINED, Phase.GIVEN_UP):
            return None
        deadlines = (
            self._phase_deadline(),
            self._mistakes.deadline(self.members),
            self._complaints.deadline(self.members),
        )
        return min(deadline for deadline in deadlines if deadline is not None)

    # --- what was heard --------------------------------------------------------------------------

    def _note(self, event: Event, now: float) -> None:
        match event:
            case MemberLost(rank, reason):
                self._drop(rank, reason)
            case LinkBroken(rank, to, reason):
                if to not in self._names:
                    self._drop(rank, "it broke the protocol: it spoke of a member that never was")
                    return
                why = f"{self._names[rank]} and {self._names[to]} cannot reach each other: {reason}"
                self._complaints.note(rank, to, why, now)
            case MistakeReported(rank, mistake):
                self._mistakes.note(rank, self._names[rank], mistake, now)
            case MemberReady(rank, prepared):
                if self.phase is not Phase.PREPARING or self._prepared.setdefault(rank, prepared) != prepared:
                    self._drop(rank, "it broke the protocol: it prepared twice")
            case StateAdoptedBy(rank, state):
                self._note_adopted(rank, state, now)
            case ProgressHeard(rank, progress):
                if self._is_current(rank, progress) and self._attempt and progress.step >= self._plan.steps:
                    self._attempt.heard_finished(rank, now)
            case RoundReported(rank, done):
                if self._is_current(rank, done) and self._attempt and not self._attempt.heard_done(rank, done, now):
                    self._drop(rank, "it broke the protocol: it reported a round twice")

    def _note_adopted(self, rank: int, state: bytes, now: float) -> None:
        if self._agreement is None or not self._agreement.adopted(rank, state):
            self._drop(rank, "it broke the protocol: it took over a state that it was not given")
        elif self.phase is Phase.AGREEING:
            self._deadline = now + self._patience.start_s + self._transfers_s()

    def _is_current(self, rank: int, message: Progress | RoundDone) -> bool:
        """Whether it is about this attempt. What is about an earlier one crossed our order on its way."""
        compared = self._attempt.compare(message) if self._attempt else 1
        if compared > 0:
            self._drop(rank, f"it broke the protocol: it spoke of round {message.round}, which has not begun")
        return compared == 0

    def _time_has_passed(self, now: float) -> None:
        mistake_deadline = self._mistakes.deadline(self.members)
        link_deadline = self._complaints.deadline(self.members)
        if mistake_deadline is not None and mistake_deadline <= now:
            self._drop_mistaken()
        elif link_deadline is not None and link_deadline <= now:
            for rank, reason in self._complaints.culprits(self.members, now).items():
                self._drop(rank, reason)
        elif self._phase_deadline() <= now:
            self._drop_late(now)

    def _drop_late(self, now: float) -> None:
        if self._attempt is None:
            late = self._agreement.lacking(self.members) if self._agreement else self._unprepared()
            doing = "take over the first state" if self._agreement else "load the task and build its model"
            for rank in late:
                self._drop(rank, f"it did not {doing} in time")
            return
        late = self._attempt.late()
        for rank in late:
            waited = now - self._attempt.started
            self._drop(rank, f"it had not finished round {self._attempt.round + 1} after {waited:.0f} s")
        if not late:
            self._stalls += 1
            self._redo_because = "no peer finished it in time"

    # --- the steps that become possible ----------------------------------------------------------

    def _go_on(self, now: float) -> list[Action]:
        while self._step(now):
            pass
        said, self._said = self._said, []
        return said

    def _step(self, now: float) -> bool:
        """Take one step if what was heard allows it; whether another one may follow."""
        if error := self._why_give_up():
            self._enter(Phase.GIVEN_UP)
            self._say(GiveUp(error))
            return False
        if self._mistakes.blamed(self.members) and self._others_have_answered():
            self._drop_mistaken()
            return True
        if self.phase is Phase.PREPARING:
            return self._step_preparing(now)
        if self.phase is Phase.AGREEING:
            return self._step_agreeing(now)
        return self.phase is Phase.TRAINING and self._step_training(now)

    def _step_preparing(self, now: float) -> bool:
        if self._unprepared():
            return False
        models = {rank: (self._prepared[rank].parameters, self._prepared[rank].values) for rank in self.members}
        usual = majority(models)
        if odd := [rank for rank in self.members if models[rank] != usual]:
            for rank in odd:
                self._drop(rank, f"its model has {models[rank][0]} parameters, the others' has {usual[0]}")
            return True
        states = {rank: self._prepared[rank].state for rank in self.members}
        self._agreement = Agreement(states, self._plan.start_state)
        self._enter(Phase.AGREEING)
        self._deadline = now + self._patience.start_s + self._transfers_s()
        return True

    def _step_agreeing(self, now: float) -> bool:
        agreement = self._agreement
        assert agreement is not None
        if orders := agreement.orders(self.members):
            self._set_members()
            self._said.extend(orders)
        if agreement.lacking(self.members):
            return False
        self._enter(Phase.TRAINING)
        self._begin_round(self._plan.first_round, agreement.goal, now)
        return True

    def _step_training(self, now: float) -> bool:
        attempt = self._attempt
        assert attempt is not None
        states = {rank: attempt.reports[rank].state for rank in self.members if rank in attempt.reports}
        if len(states) < len(self.members):
            if self._redo_because:
                self._say(RoundRedone(attempt.round, attempt.number + 1, self._redo_because))
                self._start_attempt(attempt.round, attempt.number + 1, attempt.state, now)
            return False
        state = majority(states)
        if odd := [rank for rank in self.members if states[rank] != state]:
            for rank in odd:
                self._drop(rank, f"its weights differed from the others' after round {attempt.round + 1}")
            return True
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

    # --- small change ----------------------------------------------------------------------------

    def _say(self, action: Action) -> None:
        self._said.append(action)

    def _enter(self, phase: Phase) -> None:
        if phase not in LEGAL[self.phase]:
            raise ValueError(f"a job that is {self.phase.value} cannot become {phase.value}")
        self.phase = phase

    def _set_members(self) -> None:
        if self._told_members != self.members:
            self._told_members = list(self.members)
            self._say(SetMembers(list(self.members)))

    def _prepare(self, rank: int) -> Prepare:
        plan = self._plan
        return Prepare(
            rank=rank,
            job=plan.job,
            task=plan.task,
            shards=plan.shards,
            batch=plan.batch,
            seed=plan.seed,
            first_round=plan.first_round,
        )

    def _drop(self, rank: int, reason: str) -> None:
        if rank not in self.members:
            return
        self.members.remove(rank)
        said = f"{self._names[rank]}: {reason}"
        self._gone.append(said)
        self._say(MemberDropped(rank, reason))
        if self.phase is Phase.TRAINING:
            self._redo_because = self._redo_because or said

    def _drop_mistaken(self) -> None:
        for rank in self._mistakes.blamed(self.members):
            self._drop(rank, self._mistakes.reason(rank))

    def _unprepared(self) -> list[int]:
        return [rank for rank in self.members if rank not in self._prepared]

    def _others_have_answered(self) -> bool:
        """Whether the task works for everyone but those who reported a mistake."""
        if self._attempt:
            answered = set(self._attempt.finished)
        elif self._agreement:
            answered = set(self.members) - set(self._agreement.lacking(self.members))
        else:
            answered = set(self._prepared)
        blamed = set(self._mistakes.blamed(self.members))
        if self._attempt and blamed <= answered:
            # It failed after its local steps, so the others still have to say whether they came further.
            answered = set(self._attempt.reports)
        return set(self.members) - blamed <= answered

    def _why_give_up(self) -> AxonError | None:
        if self.phase in (Phase.TRAINED, Phase.GIVEN_UP):
            return None
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

    def _transfers_s(self) -> float:
        """How long it may take to pass the state on to everyone who lacks it."""
        lacking = len(self._agreement.lacking(self.members)) if self._agreement else 0
        return lacking * self._model_transfer_s()

    def _model_transfer_s(self) -> float:
        return max((transfer_s(self._prepared[rank].values) for rank in self.members), default=0.0)

    def _phase_deadline(self) -> float:
        if self._attempt is None:
            return self._deadline
        return self._attempt.deadline(self._patience, self._usual_s, self._model_transfer_s())
