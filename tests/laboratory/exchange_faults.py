"""Every `Fault`, committed at a chosen moment of a round, in `exchange_world`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from axonp2p.training.messages import Piece, SlicePart, StartRound
from axonp2p.training.round_messages import RoundAccepted
from axonp2p.training.trainer.trainer_orders import NextLeg, TrainRound
from tests.laboratory.exchange_forgeries import Forgery, corrupted, lied, read, wrong_piece
from tests.laboratory.exchange_peer import EVALUATING_S
from tests.laboratory.exchange_world import World
from tests.laboratory.faults import Fault

STRETCH = 15.0
"""By so much the line of a late sender is slower, as long as a word need not wait for many seconds behind a part."""


class Moment(Enum):
    """Where in a round."""

    FIRST_LEG = "before the first leg ends"
    LATER_LEG = "in a later leg"
    GATHERING = "while values are gathered"
    RESULTS = "while results come back"
    ENDING = "after the last result, before the report"
    BETWEEN = "between two rounds"


MOMENTS = {fault: tuple(Moment) for fault in Fault} | {
    Fault.OWNER_GONE_BEFORE: (Moment.FIRST_LEG, Moment.LATER_LEG, Moment.GATHERING),
    Fault.OWNER_GONE_DURING: (Moment.RESULTS,),
    Fault.OWNER_GONE_AFTER: (Moment.ENDING, Moment.BETWEEN),
}
"""When a fault can be committed: when an owner is gone is what tells its three faults apart."""
OWNERS = (Fault.OWNER_GONE_BEFORE, Fault.OWNER_GONE_DURING, Fault.OWNER_GONE_AFTER, Fault.SLICE_LYING)
"""Committed by one that owns a slice."""
FOR_JOINERS = (Fault.GIVER_GONE, Fault.PIECE_WRONG)


@dataclass
class Misfortune:
    """One fault. `victim` is who commits or suffers it, `other` the second one where there are two."""

    fault: Fault
    moment: Moment
    round: int
    victim: int
    other: int
    seconds: float
    """How long it lasts, where it ends by itself."""
    notice_s: float
    """Until others' sessions with one that is gone end."""
    count: int
    """Which of the frames at that moment it is."""
    chance: random.Random
    committed_at: float | None = None
    deceived: set[int] = field(default_factory=set)
    """Who was sent something wrong, and has to find it."""

    def __str__(self) -> str:
        return f"{self.fault.value}, {self.moment.value}: member {self.victim} in round {self.round}"


def misfortune_of(world: World, fault: Fault, moment: Moment, chance: random.Random) -> Misfortune:
    """Somebody it befalls, in some round but the last two."""
    members = list(range(len(world.setting.homes)))
    victim, other = chance.sample(members, 2)
    by_line = sorted(members, key=lambda rank: world.setting.homes[rank].upload)
    if fault is Fault.SENDER_GONE:
        victim, other = by_line[0], by_line[-1]
    elif moment is Moment.RESULTS or fault in OWNERS:
        victim, other = by_line[-1], chance.choice(by_line[:-1])  # who has the best line owns a slice
    seconds = {Fault.MEMBER_FROZEN: chance.choice([3.0, 20.0, 60.0]), Fault.COORDINATOR_GONE: chance.uniform(0.5, 9.0)}
    return Misfortune(
        fault,
        moment,
        chance.randrange(1, world.setting.rounds - 2),
        victim,
        other,
        seconds.get(fault, chance.choice([2.0, 8.0, 30.0])),
        chance.choice([0.05, 3.0, 10.0]),
        chance.choice([1, 1, 2, 3]),
        chance,
    )


def befall(world: World, misfortune: Misfortune) -> None:
    """Commit it when its moment has come."""
    When(world, misfortune, lambda: _commit(world, misfortune))


class When:
    """Waits for a moment: once, in the misfortune's round or a later one."""

    def __init__(self, world: World, misfortune: Misfortune, do: Callable[[], None]) -> None:
        self._world, self._what, self._do = world, misfortune, do
        self._round = -1
        self._frames = 0
        self._done = False
        world.watchers.append(self._watch)

    def _watch(self, what: str, rank: int, about: object) -> None:
        misfortune, moment = self._what, self._what.moment
        ours = rank == misfortune.victim and self._round >= misfortune.round
        if isinstance(about, TrainRound) and rank == misfortune.victim:
            self._round = about.start.round
            if moment is Moment.FIRST_LEG and self._round >= misfortune.round:
                self._soon(self._leg_s(about.start))
        elif isinstance(about, NextLeg):
            if moment is Moment.LATER_LEG and ours:
                self._soon(self._leg_s(None))
        elif what == "frame" and isinstance(about, tuple):
            self._frame(rank, about)
        elif what == "over" and moment is Moment.ENDING and ours:
            self._soon(EVALUATING_S)
        elif isinstance(about, RoundAccepted) and moment is Moment.BETWEEN and about.round >= misfortune.round:
            self._soon(0.05)

    def _frame(self, sender: int, about: tuple[int, object]) -> None:
        to, part = about
        victim, moment = self._what.victim, self._what.moment
        if not isinstance(part, SlicePart) or part.round < self._what.round:
            return
        if moment is Moment.GATHERING:
            # An owner is gone before it hands back when others' values are on their way to it.
            its = to if self._what.fault is Fault.OWNER_GONE_BEFORE else sender
            self._count(its == victim and part.phase == "gather")
        elif moment is Moment.RESULTS:
            self._count(part.phase == "result" and victim == sender)

    def _count(self, counts: bool) -> None:
        self._frames += counts
        if counts and self._frames == self._what.count:
            self._now()

    def _leg_s(self, start: StartRound | None) -> float:
        setting = self._world.setting
        assert setting.options.exchange_every
        return setting.options.exchange_every * setting.step_s[self._what.victim] * 0.95

    def _soon(self, within: float) -> None:
        if not self._done:
            self._done = True
            self._world.agenda.after(within * self._what.chance.random(), self._do)

    def _now(self) -> None:
        if not self._done:
            self._done = True
            # Not in the middle of the frame that is looked at.
            self._world.agenda.after(0.0, self._do)


def _commit(world: World, misfortune: Misfortune) -> None:
    victim, other, seconds = misfortune.victim, misfortune.other, misfortune.seconds
    if not world.peers[victim].alive or world.desk.over:
        return
    misfortune.committed_at = world.agenda.now
    match misfortune.fault:
        case Fault.SENDER_LATE:
            spare = world.lines.homes[victim].upload / world.setting.least_upload
            world.lines.slowed[victim] = max(1.0, min(STRETCH, spare))
            world.agenda.after(seconds, lambda: _forget(world.lines.slowed, victim))
        case Fault.SENDER_GONE | Fault.OWNER_GONE_BEFORE | Fault.OWNER_GONE_DURING | Fault.OWNER_GONE_AFTER:
            world.kill(victim, misfortune.notice_s)
        case Fault.LINK_CUT:
            pair = frozenset((victim, other))
            world.lines.cut(pair)
            world.agenda.after(2.5 * misfortune.notice_s, lambda: world.give_up(victim, other))
        case Fault.COORDINATOR_GONE:
            world.desk.stop()
            world.agenda.after(seconds, world.desk.go_on)
        case Fault.MEMBER_FROZEN:
            # A machine that hesitates for a moment does not tell; one that its owner needs does.
            world.freeze(victim, seconds, told=seconds > 5 or misfortune.chance.random() < 0.5)
        case Fault.SLICE_CORRUPTED:
            Forgery(world, misfortune, SlicePart, corrupted)
        case Fault.SLICE_LYING:
            Forgery(world, misfortune, SlicePart, lied)
        case Fault.GIVER_GONE:
            world.join()
            _when_it_gives(world, misfortune)
        case Fault.PIECE_WRONG:
            world.join()
            Forgery(world, misfortune, Piece, wrong_piece, whoever=True)


def _forget(slowed: dict[int, float], victim: int) -> None:
    slowed.pop(victim, None)


def _when_it_gives(world: World, misfortune: Misfortune) -> None:
    """Whoever first sends the joiner pieces is gone after a few of them."""
    given = 0
    misfortune.committed_at = None

    def watch(what: str, rank: int, about: object) -> None:
        nonlocal given
        if what == "frame" and isinstance(about, tuple) and isinstance(about[1], Piece):
            given += 1
            if given == misfortune.count:
                misfortune.victim, misfortune.committed_at = rank, world.agenda.now
                world.agenda.after(0.0, lambda: world.kill(rank, misfortune.notice_s))

    world.watchers.append(watch)


def watch_frames(world: World) -> None:
    """Tell watchers of all that members say to each other, and note what owners said."""

    def look(sender: int, to: int, frame: bytes) -> bytes:
        message, payload = read(frame)
        if isinstance(message, SlicePart) and message.phase == "result":
            seen = world.rounds[message.round, message.attempt]
            seen.results.setdefault((message.exchange, message.slice, message.offset), (message, bytes(payload)))
        world.tell("frame", sender, (to, message))
        for forge in world.forgers:
            frame = forge(sender, to, frame)
        return frame

    world.lines.on_the_wire = look
