"""The coordinator's mind: which round a job is in, who is in it, and what has to be said next. Pure.

Every event may drop members, and every drop may allow the next step, so events only note what was said; then all the
steps that have become possible are taken (`_step`). Each attempt that fails costs a member or one of a few chances,
and each wait has a deadline: a job always ends, or waits for a member whose owner has paused it.

The phases stand in `phases`, what comes before the first round in `startup`, the rounds in `attempts`, whose fault
something is in `fault_attribution`, who comes and goes in `membership` and `catching_up`, what owners want in `pauses`,
how the members exchange in `tuning.exchange_tuner`. Inside, time is what the job's own clock says (`Pauses.clock`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from axonp2p.errors import AxonError, LimitReached, TaskMistake
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.deadlines import Patience
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Action,
    EndRounds,
    Event,
    GiveUp,
    Leave,
    LineHeard,
    LinkBroken,
    MemberJoins,
    MemberLost,
    MemberReady,
    MistakeReported,
    OwnersWord,
    ProgressHeard,
    RoundReported,
    SegmentHeard,
    StateAdoptedBy,
    StateKept,
    StopChecking,
    Tick,
)
from axonp2p.training.rounds.attempts import Attempts, RoundsContext
from axonp2p.training.rounds.catching_up import prepare_order
from axonp2p.training.rounds.fault_attribution import FaultAttribution
from axonp2p.training.rounds.last_round import AreEnough
from axonp2p.training.rounds.membership import Membership
from axonp2p.training.rounds.phases import AT_REST, Phase, advance
from axonp2p.training.rounds.startup import Startup
from axonp2p.training.spot_checks.scheduler import CheckSettings, SpotChecks
from axonp2p.training.tuning.link_statistics import Line, LinkStatistics


class Rounds:
    """One job's training. `members` maps ranks to names for people; a rank never changes its meaning."""

    def __init__(
        self,
        plan: TrainPlan,
        members: Mapping[int, str],
        *,
        min_peers: int = 1,
        patience: Patience | None = None,
        lines: Mapping[int, Line] | None = None,
        checks: CheckSettings | None = None,
        are_enough: AreEnough | None = None,
    ) -> None:
        """`lines` are what the members' owners say of theirs. Without `checks` no work is done again.

        `are_enough` may end the job before the last round of the plan.
        """
        if not 1 <= len(members) <= plan.shards:
            raise ValueError(f"{plan.shards} shards cannot be shared among {len(members)} members")
        self.phase = Phase.NEW
        self._said: list[Action] = []
        self._plan = plan
        self._patience = patience or Patience()
        self._membership = Membership(members, max(1, min_peers), self._said.append)
        self._pauses = self._membership.pauses
        self._faults = FaultAttribution(plan.memory_mb)
        self._link_statistics = LinkStatistics(plan, lines or {}, checked=checks is not None)
        self._startup = Startup(plan, self._patience, 0.0)
        self._nobody_built = False
        """Whether no member built the model in time."""
        fresh = plan.first_round == 0 and plan.life == 0
        self._checks = SpotChecks(checks, steps=plan.steps, batch=plan.batch, from_the_start=fresh) if checks else None
        job = RoundsContext(
            plan, self._patience, self._membership, self._faults, self._said.append, self._checks, are_enough
        )
        self._attempts = Attempts(job, self._link_statistics)

    @property
    def members(self) -> list[int]:
        """The members that take part in rounds now."""
        return self._membership.members

    @property
    def present(self) -> set[int]:
        """Everybody in the job: the members, and who joins or has been left behind."""
        return self._membership.present

    @property
    def model(self) -> Model:
        """How large it is, as most members say; nothing until all have built it."""
        model = self._startup.model
        return Model(*model.size[:2]) if model else Model(0, 0)

    @property
    def file_layout(self) -> bytes:
        """The hash of the layout of its file, as most members say."""
        model = self._startup.model
        return model.file_layout if model else b""

    def begin(self, now: float) -> list[Action]:
        """The first orders. `now` is monotonic seconds, here and in the next two."""
        self._enter(Phase.PREPARING)
        self._startup = Startup(self._plan, self._patience, now)
        self._membership.tell_members()
        self._said.extend(self._startup.orders(self.members))
        return self._go_on(now)

    def heard(self, event: Event, now: float) -> list[Action]:
        """The things to be done now that this has happened. A member not in the job (any more) is not listened to."""
        if self.phase in AT_REST:
            return []
        match event:
            case Tick():
                self._membership.let_go(now, self._fetch_s())
                if not self._membership.taken_back and not self._pauses.job_waits:
                    self._time_has_passed(self._pauses.clock(now))
            case EndRounds():
                self._attempts.last_round.wish()
            case StopChecking():
                self._attempts.last_checks.stop()
            case MemberJoins() if self.phase is Phase.CHECKING:
                pass  # there is nothing to do for it any more
            case MemberJoins():
                self._joins(event, self._pauses.clock(now))
            case StateKept(state=state):
                self._attempts.kept(state)
            case _ if isinstance(event, OwnersWord):
                until = self._until(self._pauses.clock(now))
                self._membership.owner_says(event, now, until, in_round=self.phase in (Phase.TRAINING, Phase.CHECKING))
            case _ if event.rank in self.present:
                self._note(event, self._pauses.clock(now))
        return self._go_on(now)

    def members_know(self, now: float) -> None:
        """The word of `SetMembers` has come to all that live; the orders after it go out only now."""
        self._attempts.orders_are_out(self._pauses.clock(now))

    def next_deadline(self) -> float | None:
        """When to say `Tick` if nothing else happens; None before the beginning, after the end, and while it waits."""
        if self.phase in AT_REST:
            return None
        deadlines = [self._pauses.owners_deadline(self.members, self._fetch_s())]
        if not self._pauses.job_waits:
            checks = self._checks.deadline() if self._checks else None
            faults = self._faults.deadline(self.members, self._membership.awake)
            ours = min(
                self._phase_deadline(),
                math.inf if self.phase is Phase.CHECKING else faults,
                math.inf if checks is None else checks,
            )
            deadlines.append(self._pauses.on_our_clock(ours))
        return min((deadline for deadline in deadlines if deadline is not None and deadline < math.inf), default=None)

    # --- what was heard --------------------------------------------------------------------------

    def _note(self, event: Event, now: float) -> None:
        fault = ""
        if isinstance(event, MemberReady) and self._checks:
            self._checks.devices.note(event.rank, event.prepared.device)
        match event:
            case ProgressHeard(rank) | RoundReported(rank) | StateAdoptedBy(rank) if self._speaks_of_the_past(rank):
                pass
            case MemberLost(rank, reason, limit):
                if limit:
                    self._faults.limits.note(rank, self._membership.names[rank], limit, reason)
                self._membership.lose(rank, reason)
            case LineHeard(rank, upload, download):
                self._link_statistics.line(rank, upload, download)
            case MistakeReported(rank) if rank in self._membership.catching_up:
                self._membership.drop(rank, f"the task failed there alone, at {event.mistake.doing}")
            case LinkBroken(rank) | MistakeReported(rank):
                fault = self._faults.heard(event, self._membership.names, now)
            case MemberReady(rank) | StateAdoptedBy(rank) if rank in self._membership.catching_up:
                fault = self._membership.catching_up.heard(event, self._startup.model)
            case StateAdoptedBy(rank, state) if state == self._attempts.state:
                pass  # it says again what it was let in for
            case MemberReady(rank) | StateAdoptedBy(rank):
                fault = self._startup.heard(event, self.members, now)
            case ProgressHeard(rank) | RoundReported(rank):
                fault = self._attempts.heard(event, now)
            case SegmentHeard():
                self._attempts.segment(event, now)
        if fault:
            self._membership.drop(rank, f"it broke the protocol: {fault}")

    def _joins(self, event: MemberJoins, now: float) -> None:
        if event.rank in self._membership.names:
            raise ValueError(f"rank {event.rank} was given before")
        self._membership.comes(event.rank, event.name, self._until(now))
        if self._checks:
            self._checks.joins(event.rank)
        self._membership.tell_members()
        self._said.append(prepare_order(self._plan, event.rank))

    def _time_has_passed(self, now: float) -> None:
        if self._checks:
            self._checks.due(now)
        if self.phase is Phase.CHECKING:
            return
        deadline = self._faults.mistakes.deadline(self.members)
        if deadline is not None and deadline <= now:
            self._membership.drop_all(self._faults.mistakes.blamed(self.members))
        elif broken := self._faults.links.due(self._membership.awake, now):
            self._attempts.cut(broken)
        elif self._phase_deadline() > now:
            return
        elif self.phase is Phase.TRAINING:
            self._attempts.overdue(now, self._until(now))
        else:
            self._late_to_begin(now)

    def _late_to_begin(self, now: float) -> None:
        paused = self._pauses.paused(self.members)
        late = self._startup.late(self.members, paused)
        if self.phase is Phase.PREPARING and not paused and late.keys() >= set(self.members):
            self._nobody_built = True  # others that take their place would do no better
            return
        self._membership.drop_all({rank: reason for rank, reason in late.items() if rank not in paused})
        still = {rank: reason for rank, reason in late.items() if rank in paused}
        self._membership.leave_behind(still, self._until(now), loaded=self.phase is Phase.AGREEING)
        self._startup.wait_longer(self.members, now)

    # --- the steps that become possible ----------------------------------------------------------

    def _go_on(self, now: float) -> list[Action]:
        while self.phase not in AT_REST and self._step(self._pauses.clock(now)):
            pass
        if self.phase not in AT_REST:
            self._attempts.ask_for_checks(self._pauses.clock(now))
            self._said.extend(self._pauses.look(self.members, now))
        said = [*self._said]
        self._said.clear()
        return said

    def _step(self, now: float) -> bool:
        """Take one step if what was heard allows it; whether another one may follow."""
        if self.phase is Phase.CHECKING:
            if self._attempts.last_checks.step(now):
                self._enter(Phase.TRAINED)
            return False
        if self._membership.taken_back:
            self._enter(Phase.LEFT)
            self._said.append(Leave(self._membership.why_leave()))
            return False
        if error := self._why_give_up():
            self._enter(Phase.GIVEN_UP)
            others_help = not isinstance(error, TaskMistake | LimitReached)
            self._said.append(GiveUp(error, too_few=self._membership.too_few and others_help))
            return False
        blamed = self._faults.mistakes.blamed(self.members)
        if blamed and not self._awaited_beside(blamed):
            self._membership.drop_all(blamed)
            return True
        if self.phase is Phase.PREPARING:
            return self._step_preparing(now)
        if self.phase is Phase.AGREEING:
            return self._step_agreeing(now)
        again = self._attempts.step(now)
        if self._attempts.trained:
            self._enter(Phase.CHECKING)
        return again

    def _step_preparing(self, now: float) -> bool:
        if self._startup.awaited(self.members):
            return False
        odd = self._startup.odd_models(self.members)
        self._membership.drop_all(odd)
        if not odd:
            self._enter(Phase.AGREEING)
            self._startup.agree(self.members, now)
            self._said.extend(self._startup.goes_on(self.members))
        return True

    def _step_agreeing(self, now: float) -> bool:
        if orders := self._startup.transfer_orders(self.members, self._pauses.paused(self.members)):
            self._membership.tell_members()
            self._said.extend(orders)
        state, model = self._startup.agreed_state(self.members), self._startup.model
        if state is None or model is None:
            return False
        self._enter(Phase.TRAINING)
        self._attempts.begin(self._startup.first_round, state, model.size, now)
        if self._attempts.trained:
            self._enter(Phase.CHECKING)
        return True

    def _speaks_of_the_past(self, rank: int) -> bool:
        """Whether it waited for its client, and has not heard yet that there is another coordinator."""
        return self._plan.life > 0 and self.phase is Phase.PREPARING and self._startup.is_loading(rank)

    # --- small questions -------------------------------------------------------------------------

    def _awaited_beside(self, blamed: Mapping[int, str]) -> set[int]:
        """The members that have yet to say whether the task, which failed at `blamed`, works for them."""
        training = self.phase is Phase.TRAINING
        waiting = self._attempts.awaited_beside(blamed) if training else self._startup.awaited(self.members)
        return set(waiting) & set(self.members) - set(blamed)

    def _why_give_up(self) -> AxonError | None:
        if verdict := self._faults.mistakes.verdict(self.members, self._membership.least):
            return verdict
        if over := self._faults.limits.verdict(too_few=self._membership.too_few):
            return over
        if self._nobody_built and not self._membership.too_few:
            return self._startup.never_built([self._membership.names[rank] for rank in self.members])
        return self._attempts.why_give_up() or (self._membership.too_few_left() if self._membership.too_few else None)

    def _enter(self, phase: Phase) -> None:
        self.phase = advance(self.phase, phase)

    def _phase_deadline(self) -> float:
        if self.phase is Phase.CHECKING:
            return self._attempts.last_checks.deadline
        return self._attempts.deadline() if self.phase is Phase.TRAINING else self._startup.deadline

    def _until(self, now: float) -> float:
        """Until when one that joins may take, before rounds are counted."""
        return now + self._patience.start_s + self._fetch_s()

    def _fetch_s(self) -> float:
        """The time that the way of a state may take."""
        return self._startup.transfer_s(self.members)
