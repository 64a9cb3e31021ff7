"""A job in virtual time: one real `Rounds` and real `WorkerMember`s, with all that they exchange, on simulated lines.

A `Setting` is drawn from a seed: how many members, on which lines, how fast, and what the job file wishes. Deciding
takes no time; training, encoding, waiting and every byte on a line do. Virtual seconds have nothing to do with real
ones, so that a frozen minute costs nothing. What goes wrong is up to `exchange_faults`; what must hold afterwards is in
`exchange_checks`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from axonp2p.blobs.pieces import PIECE_BYTES
from axonp2p.tensors.layout import Layout
from axonp2p.training.messages import AdoptState, Prepare, SlicePart, StartRound
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Action,
    LineHeard,
    LinkBroken,
    MemberJoins,
    MemberLost,
    MemberPaused,
    MemberResumed,
    RoundAccepted,
    Tell,
)
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.spot_checks.scheduler import CheckSettings
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.trainer_orders import TrainRound, Work
from axonp2p.training.tuning.link_statistics import Line
from axonp2p.training.worker.member_round import MemberRound
from axonp2p.verification.claims import RoundDone
from tests.laboratory.exchange_desk import Desk
from tests.laboratory.exchange_lines import Agenda, Happening, Home, Lines
from tests.laboratory.exchange_peer import FakeTrainer, Peer, Taken, Trainer, difference_of, first_of
from tests.laboratory.exchange_settings import COMPRESSION
from tests.laboratory.real_trainer import RealTrainer

MOST_SECONDS = 6 * 3600.0
MOST_EVENTS = 400_000
BATCH = 4
ROUNDS = 5


@dataclass(frozen=True)
class Setting:
    """A job, as it would go if nothing went wrong."""

    seed: int
    homes: tuple[Home, ...]
    """Of the members that the job begins with, by rank."""
    step_s: tuple[float, ...]
    """Seconds a local step, by rank."""
    load_s: float
    min_peers: int
    rounds: int
    steps: int
    options: ExchangeOptions
    layout: Layout
    first_round: int = 0
    batch: int = BATCH

    @property
    def least_upload(self) -> float:
        """Bytes a second with which a word waits for two seconds behind the largest frame."""
        return (PIECE_BYTES if self.layout.parameters == WITH_PIECES else 16 * 1024) / 2


PARAMETERS, WITH_PIECES = 6000, 40_000
"""Of which model; where a state has to be fetched, it has two pieces, which come from several members."""


def setting_of(seed: int, *, comers: bool = False, legs: int = 1) -> Setting:
    """Some setting, the same for the same seed, with at least so many legs a round. `comers`: states are fetched."""
    chance = random.Random(seed)
    members = chance.choice([2, 3, 3, 4, 4, 5])
    parameters = WITH_PIECES if comers else PARAMETERS
    # The largest frame takes about as long as it does at real homes: never many seconds.
    upload = chance.choice([30e3, 80e3, 300e3]) * (20 if comers else 1)
    poor = chance.randrange(members) if chance.random() < 0.4 else None
    homes = tuple(
        Home(
            upload * chance.uniform(0.8, 1.25) * (0.25 if rank == poor else 1.0),
            chance.uniform(0.005, 0.08),
            chance.choice([0.0, 0.01]),
        )
        for rank in range(members)
    )
    step = chance.choice([0.2, 0.6, 2.0])
    every = chance.choice([2, 3])
    options = ExchangeOptions(
        compression=COMPRESSION[chance.choice([32, 32, 16, 8, 4, 2])],
        density=chance.choice([1.0, 1.0, 0.25]),
        exchange_every=every,
        seconds=chance.choice([0.0, 0.0, 0.0, 6 * step]),
        overlap=chance.random() < 0.5,
        outer_learning_rate=0.7,
        outer_momentum=0.9,
    )
    return Setting(
        seed,
        homes,
        tuple(step * chance.uniform(0.8, 1.5) for _ in range(members)),
        chance.uniform(0.2, 2.0),
        min_peers=1 if members < 3 else chance.choice([1, 2]),
        rounds=ROUNDS,
        steps=every * max(legs, chance.choice([1, 2, 3])),
        options=options,
        layout=Layout(parameters, 2, 1, (parameters, 2, 1)),
    )


@dataclass
class Round:
    """What was seen of one attempt at a round."""

    orders: dict[int, StartRound] = field(default_factory=dict)
    begun: float = 0.0
    reports: dict[int, RoundDone] = field(default_factory=dict)
    results: dict[tuple[int, int, int], tuple[SlicePart, bytes]] = field(default_factory=dict)
    """By exchange, owner and offset: what the owner first said."""
    before: dict[int, Tensor] = field(default_factory=dict)
    """What each member held back when it began."""
    leftovers: dict[int, Tensor] = field(default_factory=dict)
    """Of the members that came to its end."""
    states: dict[int, State] = field(default_factory=dict)


class World:
    """Everything in it. `run` until the job is over."""

    def __init__(
        self,
        setting: Setting,
        start_state: State | None = None,
        trainers: Mapping[int, RealTrainer] | None = None,
        checks: CheckSettings | None = None,
    ) -> None:
        """`trainers`: of the first members, where something real is trained, and may be checked."""
        self.setting = setting
        self.agenda = Agenda()
        self.chance = random.Random(setting.seed + 1)
        self.lines = Lines(self.agenda, self.chance)
        self._trainers = trainers or {}
        self.first = self._trainers[0].first if trainers else first_of(setting.layout, setting.seed)
        self.begins_with = start_state or self.first
        self.peers: dict[int, Peer] = {}
        self.taken: Taken = {}
        self.rounds: dict[tuple[int, int], Round] = {}
        self.watchers: list[Callable[[str, int, object], None]] = []
        """Each is told what happens, to whom, and what exactly."""
        self.forgers: list[Callable[[int, int, bytes], bytes]] = []
        """Each may change what a member says to another."""
        members = {rank: f"peer{rank}" for rank in range(len(setting.homes))}
        plan = TrainPlan(
            "job", "task.py", 16, setting.rounds, setting.steps, setting.batch, setting.seed, setting.first_round,
            start_state.name if start_state else None, setting.options, rtt_s=0.3,
        )  # fmt: skip
        lines = {rank: Line(home.upload, home.upload) for rank, home in enumerate(setting.homes)}
        rounds = Rounds(plan, members, min_peers=setting.min_peers, lines=lines, checks=checks)
        self.desk = Desk(self.agenda, rounds, start_state)
        self.desk.sees, self.desk.send = self._decided, self._order
        self.desk.set_roster, self.desk.dismiss = self._set_roster, self._dismiss
        self.lines.reported = self._reported
        self.lines.arrives = self._arrives
        self.lines.link_lost = lambda rank, to: self.desk.happened(LinkBroken(rank, to, "no route"))
        for rank, home in enumerate(setting.homes):
            self._add(rank, home, setting.step_s[rank])

    def _add(self, rank: int, home: Home, step_s: float) -> None:
        setting = self.setting
        trainer: Trainer = self._trainers.get(rank) or FakeTrainer(
            setting.layout, setting.seed, rank, setting.batch, step_s, self.taken
        )
        peer = Peer(rank, self.agenda, self.lines, trainer, self.first, setting.load_s)
        peer.sees = lambda work: self._works(rank, work)
        peer.acted = lambda: self._acted(peer)
        self.peers[rank] = peer
        self.lines.add(rank, home, peer.outbox)

    def run(self) -> None:
        """Until the job is over. Raises AssertionError when it never is."""
        self.desk.begin()
        while not self.desk.over:
            assert self.agenda.next(), f"nothing will happen any more: {self.story()}"
            assert self.agenda.now < MOST_SECONDS, f"it takes for ever: {self.story()}"
            assert self.agenda.count < MOST_EVENTS, f"too much happens: {self.story()}"

    def story(self) -> str:
        """What the client decided, for people."""
        skipped = ("Tell", "Chosen", "SetMembers")
        return "\n" + "\n".join(
            f"{time:9.2f} {str(action)[:150]}"
            for time, action in self.desk.seen
            if type(action).__name__ not in skipped
        )

    def tell(self, what: str, rank: int, about: object = None) -> None:
        """Let those know that watch."""
        for watcher in list(self.watchers):
            watcher(what, rank, about)

    def moved(self, rank: int, legs: int) -> Tensor:
        """By how much a member moves the weights in the leg that comes after so many legs that count."""
        return difference_of(self.setting.layout, self.setting.seed, rank, legs)

    # --- what may go wrong, or well ---

    def kill(self, rank: int, notice_s: float) -> None:
        """A machine is gone; its sessions end after so long."""
        peer = self.peers[rank]
        if not peer.alive:
            return
        peer.alive = False
        self.lines.silent.add(rank)
        self.agenda.after(notice_s, lambda: self.desk.lost(rank, MemberLost(rank, "its machine is gone")))
        for other in self.peers:
            if other != rank and rank in self.lines.rosters[other]:
                self.agenda.after(notice_s, lambda other=other: self.give_up(rank, other))  # type: ignore[misc]

    def give_up(self, rank: int, other: int) -> None:
        """The daemons of two that cannot reach each other find that out."""
        if rank in self.lines.rosters[other] and other in self.lines.rosters[rank]:
            self.lines.give_up(frozenset((rank, other)))

    def freeze(self, rank: int, seconds: float, *, told: bool) -> None:
        """An owner needs the machine for a while."""
        self.peers[rank].freeze()
        if told:
            self._tell_client(rank, lambda: self.desk.happened(MemberPaused(rank, "owner")))
        self.agenda.after(seconds, lambda: self._thaw(rank, told=told))

    def _thaw(self, rank: int, *, told: bool) -> None:
        if told:
            self._tell_client(rank, lambda: self.desk.happened(MemberResumed(rank)))
        self.peers[rank].thaw()

    def _tell_client(self, rank: int, happens: Happening) -> None:
        if self.peers[rank].alive:
            self.lines.in_order(rank, None, happens)

    def join(self) -> int:
        """One more peer comes."""
        rank = max(self.peers) + 1
        self._add(rank, self.setting.homes[0], self.setting.step_s[0])
        self.desk.happened(MemberJoins(rank, f"peer{rank}"))
        upload = self.setting.homes[0].upload
        self.desk.happened(LineHeard(rank, upload, upload))
        return rank

    # --- between the desk and the peers ---

    def _order(self, rank: int, frame: bytes) -> None:
        self._to_peer(rank, lambda: self.peers[rank].hear_order(frame))

    def _to_peer(self, rank: int, happens: Happening) -> None:
        way = (-1 - rank, None)
        when = max(self.lines._last.get(way, 0.0), self.agenda.now + self.lines.delay(None, rank))
        self.lines._last[way] = when
        self.agenda.at(when, lambda: happens() if self.peers[rank].alive else None)

    def _set_roster(self, rank: int, members: set[int]) -> None:
        def hear() -> None:
            self.lines.set_roster(rank, members)
            self._tell_client(rank, lambda: self.desk.roster_set(rank))

        self._to_peer(rank, hear)

    def _dismiss(self, rank: int) -> None:
        def end() -> None:
            self.peers[rank].alive = False
            self.lines.silent.add(rank)

        self._to_peer(rank, end)

    def _reported(self, rank: int, frame: bytes) -> None:
        self.desk.hear(rank, frame)

    def _arrives(self, sender: int, to: int, frame: bytes, taken: Happening) -> None:
        if self.peers[to].alive:
            self.peers[to].hear_member(sender, frame, taken)

    # --- what is seen ---

    def _decided(self, action: Action) -> None:
        if isinstance(action, Tell) and isinstance(action.message, StartRound):
            order = action.message
            seen = self.rounds.setdefault((order.round, order.attempt), Round(begun=self.agenda.now))
            seen.orders[action.rank] = order
        if isinstance(action, Tell) and isinstance(action.message, Prepare | AdoptState):
            return
        if isinstance(action, RoundAccepted):
            self.tell("accepted", -1, action)

    def _works(self, rank: int, work: Work) -> None:
        member = self.peers[rank].member
        if isinstance(work, TrainRound) and member:
            left = member._states.leftover._left
            self.rounds[work.start.round, work.start.attempt].before[rank] = left.clone()
        self.tell(type(work).__name__, rank, work)

    def _acted(self, peer: Peer) -> None:
        """A member has come to a round's end: note what it held back, before anything else happens to it."""
        assert peer.member
        going = peer.member._round
        if isinstance(going, MemberRound) and going.over:
            seen = self.rounds[going._start.round, going._start.attempt]
            if peer.rank not in seen.states:
                seen.states[peer.rank] = going.state
                seen.leftovers[peer.rank] = going.leftover._left.clone()
                self.tell("over", peer.rank, going._start)
