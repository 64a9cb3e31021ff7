"""Members that are in the job but in no round: new ones, those that fell behind, and those whose owners are back. Pure.

    LOADING     it loads the task and builds its model
    WAITING     it has a model, and waits for the next round to begin
    FOLLOWING   it fetches the state that a round began with, and is sent the results of that round and all that follow
    RESTING     it stands still; when it goes on it waits again

A member that follows and says that it holds the accepted state takes part from the next round on.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from axonp2p.training.messages import AdoptState, Prepare
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import Action, BuiltModel, MemberReady, StateAdoptedBy, Tell
from axonp2p.training.rounds.state_agreement import odd_model
from axonp2p.wire.schema import SCHEMAS

PATIENT_ROUNDS = 3
"""A member that has not come to the accepted state so many rounds after its time was over has to go."""
COMES_S = 1.0
"""So long a round's end waits for one that follows and lacks only this round."""


class Stage(Enum):
    """How far one has come."""

    LOADING = "loading the task"
    WAITING = "waiting for a round"
    FOLLOWING = "taking over the state"
    RESTING = "standing still"


@dataclass
class _Late:
    stage: Stage
    until: float
    """On the job's clock: how long it may take before rounds are counted."""
    loaded: bool
    rounds: int = 0
    state: bytes | None = None
    """The state that it last said that it holds."""


def prepare_order(plan: TrainPlan, rank: int) -> Tell:
    """The first thing that a worker is told."""
    return Tell(
        rank,
        Prepare(
            rank=rank,
            job=plan.job,
            task=plan.task,
            shards=plan.shards,
            batch=plan.batch,
            seed=plan.seed,
            first_round=plan.first_round,
            step_scaling=plan.options.step_scaling,
            steps=plan.rounds * plan.steps,
            step_options=plan.step_options,
            schema=SCHEMAS["train"],
        ),
    )


class CatchingUp:
    """All of them in one job."""

    def __init__(self) -> None:
        self._late: dict[int, _Late] = {}

    def __contains__(self, rank: int) -> bool:
        return rank in self._late

    @property
    def ranks(self) -> list[int]:
        """All of them."""
        return sorted(self._late)

    @property
    def awake(self) -> list[int]:
        """Those that do not stand still."""
        return [rank for rank in self.ranks if self._late[rank].stage is not Stage.RESTING]

    @property
    def following(self) -> list[int]:
        """Those that are sent the results."""
        return [rank for rank in self.ranks if self._late[rank].stage is Stage.FOLLOWING]

    # --- who comes and goes ---

    def comes(self, rank: int, until: float) -> None:
        """A new one: it is told to prepare."""
        self._late[rank] = _Late(Stage.LOADING, until, loaded=False)

    def falls_behind(self, rank: int, until: float, *, paused: bool, loaded: bool) -> None:
        """One that was a member, and is left behind by the others."""
        awake = Stage.WAITING if loaded else Stage.LOADING
        self._late[rank] = _Late(Stage.RESTING if paused else awake, until, loaded)

    def goes(self, rank: int) -> None:
        """It is a member now, or gone."""
        del self._late[rank]

    def pauses(self, rank: int) -> None:
        """It stands still; what it is sent meanwhile it may miss."""
        self._late[rank].stage = Stage.RESTING

    def goes_on(self, rank: int, until: float) -> None:
        """It stands still no more."""
        one = self._late[rank]
        if one.stage is Stage.RESTING:
            one.stage = Stage.WAITING if one.loaded else Stage.LOADING
            one.until, one.rounds, one.state = until, 0, None

    # --- what they say ---

    def heard(self, event: MemberReady | StateAdoptedBy, model: BuiltModel | None) -> str:
        """One has built its model, or taken a state over; gives what is wrong with it, if anything is.

        `model` is the others', if it is known yet.
        """
        one = self._late[event.rank]
        if isinstance(event, StateAdoptedBy):
            if one.stage is Stage.FOLLOWING:
                one.state = event.state
            return ""
        if one.loaded:
            return "it prepared twice"
        if model is not None and event.model != model:
            return odd_model(event.model, model)
        one.loaded = True
        if one.stage is Stage.LOADING:
            one.stage = Stage.WAITING
        return ""

    # --- rounds ---

    def arrived(self, state: bytes) -> list[int]:
        """The members that hold the accepted state."""
        return [rank for rank in self.following if self._late[rank].state == state]

    def comes_soon(self, begun_with: bytes, led_to: bytes) -> bool:
        """Whether one held the state that a round began with, and has yet to say that it holds what it led to."""
        return led_to != begun_with and bool(self.arrived(begun_with))

    def follow(self, state: bytes, senders: Collection[int]) -> list[Action]:
        """A round begins with `state`, which `senders` hold: orders for those that follow from now on."""
        new = [rank for rank in self.ranks if self._late[rank].stage is Stage.WAITING]
        for rank in new:
            self._late[rank].stage = Stage.FOLLOWING
        return [Tell(rank, AdoptState(state=state, senders=sorted(senders))) for rank in new]

    def round_ended(self, now: float) -> dict[int, str]:
        """A round was accepted: who has taken too long now, and what it did not do."""
        late = {}
        for rank in self.awake:
            one = self._late[rank]
            one.rounds += now >= one.until
            if one.rounds >= PATIENT_ROUNDS:
                late[rank] = f"it did not catch up with the others: {one.stage.value}"
        return late
