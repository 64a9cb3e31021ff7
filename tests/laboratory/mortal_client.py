"""A client that keeps what is accepted, dies, and comes back with nothing but what it had on its disk."""

from __future__ import annotations

import dataclasses
import random

from axonp2p.training.plan import Done, TrainPlan
from axonp2p.training.round_messages import Action, Event, GoesOn, KeepState, RoundAccepted, RoundBooked, StateKept
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.tuning.link_statistics import Line
from tests.laboratory.exchange_desk import Desk
from tests.laboratory.exchange_faults import watch_frames
from tests.laboratory.exchange_world import Setting, World


class MortalDesk(Desk):
    """One life of it."""

    dead = False

    def die(self) -> None:
        self.dead = self.stopped = True

    def hear(self, rank: int, frame: bytes) -> None:
        if not self.dead:
            super().hear(rank, frame)

    def happened(self, event: Event) -> None:
        if not self.dead:
            super().happened(event)

    def lost(self, rank: int, event: Event) -> None:
        if not self.dead:
            super().lost(rank, event)

    def roster_set(self, rank: int) -> None:
        if not self.dead:
            super().roster_set(rank)


@dataclasses.dataclass
class Disk:
    """What outlives it."""

    kept: Done | None = None
    booked: list[int] = dataclasses.field(default_factory=list)
    ahead: Done | None = None


class MortalClient:
    """All lives of it, in one world."""

    def __init__(self, setting: Setting) -> None:
        self.world = World(setting)
        watch_frames(self.world)
        self.disk = Disk()
        self.lives = 0
        self.went_on: list[GoesOn] = []
        self._chance = random.Random(setting.seed + 2)
        self.live()

    def live(self) -> None:
        """It begins, for the first time or again."""
        world, setting, disk = self.world, self.world.setting, self.disk
        kept = disk.kept
        plan = TrainPlan(
            "job", "task.py", 16, setting.rounds, setting.steps, setting.batch, setting.seed,
            first_round=kept.rounds if kept else 0, start_state=kept.state if kept else None,
            later=(disk.ahead,) if disk.ahead else (), life=self.lives, options=setting.options, keep_every=1,
            rtt_s=0.3,
        )  # fmt: skip
        lines = {rank: Line(home.upload, home.upload) for rank, home in enumerate(setting.homes)}
        members = {rank: f"peer{rank}" for rank in world.peers if world.peers[rank].alive}
        rounds = Rounds(plan, members, min_peers=setting.min_peers, lines=lines)
        before, desk = world.desk, MortalDesk(world.agenda, rounds, self._state(kept))
        desk.seen = before.seen
        desk.sees, desk.send, desk.set_roster, desk.dismiss = self._sees, before.send, before.set_roster, before.dismiss
        desk.gone = {rank for rank, peer in world.peers.items() if not peer.alive}
        world.desk = self._desk = desk
        self.lives += 1

    def dies_at(self, when: float, away_s: float) -> None:
        """At that moment, and comes back after so long, unless the job is over."""

        def die() -> None:
            if not self._desk.over and not self._desk.dead:
                self._desk.die()
                self.world.agenda.after(away_s, self._again)

        self.world.agenda.at(when, die)

    def _again(self) -> None:
        self.live()
        self._desk.begin()

    def _sees(self, action: Action) -> None:
        self.world._decided(action)
        match action:
            case RoundAccepted(round=number, state=state):
                assert self.disk.ahead is None, "two rounds are ahead of the books"
                self.disk.ahead = Done(number + 1, state)
            case KeepState(state=state):
                desk = self._desk
                self.world.agenda.after(self._chance.choice([0.01, 1.0, 20.0]), lambda: self._arrives(desk, state))
            case RoundBooked(round=number, state=state):
                assert state
                self._book(Done(number + 1, state))
            case GoesOn():
                self.went_on.append(action)

    def _arrives(self, desk: MortalDesk, state: bytes) -> None:
        """A state is on the disk; when all rounds are trained nobody is asked any more."""
        if desk.over and not desk.dead and self.disk.ahead:
            self._book(self.disk.ahead)
        desk.happened(StateKept(state))

    def _book(self, done: Done) -> None:
        self.disk.booked.append(done.rounds - 1)
        self.disk.kept, self.disk.ahead = done, None

    def _state(self, kept: Done | None) -> State | None:
        if kept is None:
            return None
        states = (state for seen in self.world.rounds.values() for state in seen.states.values())
        return next(state for state in states if state.name == kept.state)
