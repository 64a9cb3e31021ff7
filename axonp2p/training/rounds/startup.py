"""The time before the first round: every member has the same model, and holds the same state. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from axonp2p.errors import JobFailed
from axonp2p.training.deadlines import Patience, bytes_s, transfer_s
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import Action, BuiltModel, GoesOn, MemberReady, StateAdoptedBy
from axonp2p.training.rounds.catching_up import prepare_order
from axonp2p.training.rounds.state_agreement import StateAgreement, majority, odd_model


class Startup:
    """The messages heard about models and first states."""

    def __init__(self, plan: TrainPlan, patience: Patience, now: float) -> None:
        self._plan = plan
        self._patience = patience
        self._ready: dict[int, MemberReady] = {}
        self._state_agreement: StateAgreement | None = None
        self._model: BuiltModel | None = None
        self.first_round = plan.first_round
        """Where the job goes on; known once all models are built."""
        self.deadline = now + patience.start_s

    def orders(self, members: Collection[int]) -> list[Action]:
        """The first thing that workers are told."""
        return [prepare_order(self._plan, rank) for rank in members]

    def heard(self, event: MemberReady | StateAdoptedBy, members: Collection[int], now: float) -> str:
        """A member has built its model, or taken a state over; gives what is wrong with it, if anything is."""
        if isinstance(event, MemberReady):
            same = self._ready.setdefault(event.rank, event) == event
            return "" if same else "it prepared twice"
        if self._state_agreement is None or not self._state_agreement.adopted(event.rank, event.state):
            return "it took over a state that it was not given"
        self.wait_longer(members, now)
        return ""

    def odd_models(self, members: Collection[int]) -> dict[int, str]:
        """The members whose model is another one than most have, and how so: no state of the others fits it."""
        models = {rank: self._ready[rank].model for rank in members}
        usual = majority(models)
        return {rank: odd_model(model, usual) for rank, model in models.items() if model != usual}

    def agree(self, members: Collection[int], now: float) -> None:
        """All models are built: decide which state is the first."""
        self._agree(members)
        self.wait_longer(members, now)

    def _agree(self, members: Collection[int]) -> None:
        self._model = self._ready[min(members)].model
        goal = self._furthest(members)
        # A member that holds it as its candidate holds it.
        states = {rank: self._held(rank, goal) for rank in members}
        self._state_agreement = StateAgreement(states, goal)

    def _furthest(self, members: Collection[int]) -> bytes | None:
        """The newest state that somebody holds of those that the job had come to, or the one that the client has."""
        for done in self._plan.later:
            if any(self._held(rank, done.state) == done.state for rank in members):
                self.first_round = done.rounds
                return done.state
        self.first_round = self._plan.first_round
        return self._plan.start_state

    def _held(self, rank: int, goal: bytes | None) -> bytes:
        prepared = self._ready[rank].prepared
        return prepared.candidate if goal is not None and prepared.candidate == goal else prepared.state

    def goes_on(self, members: Collection[int]) -> list[Action]:
        """The orders with which a job that had a coordinator before goes on."""
        assert self._state_agreement
        if not self._plan.life:
            return []
        lacking = self._state_agreement.lacking(members)
        holders = [rank for rank in sorted(members) if rank not in lacking]
        return [GoesOn(self.first_round, self._state_agreement.goal, holders if self.first_round else [])]

    def is_loading(self, rank: int) -> bool:
        """Whether it has not said yet that its model is built."""
        return rank not in self._ready

    def agreed_state(self, members: Collection[int]) -> bytes | None:
        """The state that all hold now; None while somebody lacks it."""
        if self._state_agreement is None or self._state_agreement.lacking(members):
            return None
        return self._state_agreement.goal

    @property
    def model(self) -> BuiltModel | None:
        """The model that the members agreed on."""
        return self._model

    def transfer_orders(self, members: Collection[int], paused: Collection[int] = ()) -> list[Action]:
        """The messages still to be sent until all hold it."""
        if self._state_agreement is None:
            return []
        said: list[Action] = []
        if self.first_round > self._plan.first_round and len(self._state_agreement.lacking(members)) == len(members):
            # All who held it are gone, and the client has an older one.
            self._agree(members)
            said += self.goes_on(members)
        return [*said, *self._state_agreement.orders(members, paused)]

    def awaited(self, members: Collection[int]) -> dict[int, str]:
        """The members that are waited for, and what each has not done yet."""
        if self._state_agreement is not None:
            return dict.fromkeys(self._state_agreement.lacking(members), "it did not take over the first state in time")
        missing = (rank for rank in members if rank not in self._ready)
        return dict.fromkeys(missing, "it did not load the task and build its model in time")

    def late(self, members: Collection[int], paused: Collection[int]) -> dict[int, str]:
        """The members that keep the others waiting, and how.

        A member to which only paused members could send the state is not to blame.
        """
        late = self.awaited(members)
        if self._state_agreement is not None:
            for rank in list(late):
                senders = [sender for sender in self._state_agreement.senders_to(rank) if sender in members]
                if senders and rank not in paused and set(senders) <= set(paused):
                    del late[rank]
                    late |= dict.fromkeys(senders, "it did not pass the first state on in time")
        return late

    def never_built(self, names: Sequence[str]) -> JobFailed:
        """The error to give up with when no member builds the model."""
        return JobFailed(
            f"no peer had built the model after {self._patience.start_s:.0f} s: {', '.join(names)}",
            cause="loading task.py or model() does not end there, or their processors were busy",
            fix="axon logs JOB names the line of your file at which they were; axon check DIR times each part here",
        )

    def transfer_s(self, members: Collection[int]) -> float:
        """Seconds that the way of a state may take, with the frozen parameters that belong to it."""
        known = (self._ready[rank].prepared for rank in members if rank in self._ready)
        return max((transfer_s(said.values) + bytes_s(said.frozen) for said in known), default=0.0)

    def wait_longer(self, members: Collection[int], now: float) -> None:
        """From now on there is time again for each state that has still to be passed on."""
        lacking = len(self._state_agreement.lacking(members)) if self._state_agreement else 0
        self.deadline = now + self._patience.start_s + lacking * self.transfer_s(members)
