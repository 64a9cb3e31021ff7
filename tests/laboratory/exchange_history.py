"""One history of `exchange_world`: a job in which one fault, or two, are committed, and what came of it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from axonp2p.jobs.aggregation import MEAN, may_lie
from axonp2p.training.round_messages import MemberDropped
from axonp2p.training.rounds.phases import Phase
from tests.laboratory.exchange_checks import accepted_of, broken_promises, lost_on_the_way, redone_of
from tests.laboratory.exchange_faults import (
    FOR_JOINERS,
    MOMENTS,
    Misfortune,
    Moment,
    befall,
    misfortune_of,
    watch_frames,
)
from tests.laboratory.exchange_world import World, setting_of
from tests.laboratory.faults import Fault

Kind = tuple[Fault, Moment]
KINDS: list[Kind] = [(fault, moment) for fault in Fault for moment in MOMENTS[fault]]
"""Every fault at every moment at which it can be committed."""

LIES = ("different results", "weights differed", "broke the protocol")
"""What is said of one that is dropped as a liar."""
LEARNT_FACTOR, LEARNT_S = 3.0, 10.0
"""The longest that a learnt deadline lies after what is usual, when it is not known who holds the others up."""


@dataclass(frozen=True)
class Outcome:
    """What came of one history. Times in virtual seconds."""

    seed: int
    kinds: Sequence[Kind]
    committed: int
    """How many of the faults could be committed."""
    redone: int
    """Attempts that did not count."""
    accepted: int
    usual_s: float
    """What a round took before anything went wrong."""
    cost_s: float
    """What rounds took longer than that, all together."""
    phase: Phase
    named: bool
    """Whether somebody has found who sent something wrong. A wrong piece may come when all is there."""
    wrong: Sequence[str]
    """Which promises were broken."""


def kinds_of(seed: int) -> list[Kind]:
    """The faults of a seed: each in turn, and every third time another one at once."""
    kinds = [KINDS[seed % len(KINDS)]]
    if seed // len(KINDS) % 3 == 2:
        kinds.append(random.Random(seed).choice(KINDS))
    return kinds


def play(seed: int, kinds: Sequence[Kind] | None = None) -> tuple[Outcome, World, list[Misfortune]]:
    """The history of a seed, with those faults of `kinds`, or with its own."""
    kinds = kinds_of(seed) if kinds is None else kinds
    joiners = any(fault in FOR_JOINERS for fault, _ in kinds)
    legs = 2 if any(moment is Moment.LATER_LEG for _, moment in kinds) else 1
    world = World(setting_of(seed, legs=legs, comers=joiners))
    watch_frames(world)
    chance = random.Random(f"misfortunes of {seed}")
    misfortunes = [misfortune_of(world, fault, moment, chance) for fault, moment in kinds]
    for misfortune in misfortunes:
        befall(world, misfortune)
    wrong: list[str] = []
    try:
        world.run()
        wrong = list(_wrong(world, misfortunes))
    except AssertionError as error:
        wrong.append(str(error))
    usual = _usual_s(world, misfortunes)
    victims = {one.victim for one in misfortunes}
    return (
        Outcome(
            seed,
            kinds,
            sum(one.committed_at is not None for one in misfortunes),
            len(redone_of(world)),
            len(accepted_of(world)),
            usual,
            _cost_s(world, usual),
            world.desk.rounds.phase,
            any(sender in victims for peer in world.peers.values() for sender, _ in peer.refused),
            wrong,
        ),
        world,
        misfortunes,
    )


def _wrong(world: World, misfortunes: Sequence[Misfortune]) -> Iterator[str]:
    yield from broken_promises(world)
    if lost := lost_on_the_way(world):
        yield lost
    committed = [one for one in misfortunes if one.committed_at is not None]
    yield from _who_went(world, committed)
    if len(committed) == 1:
        yield from _named(world, committed[0])
        yield from _cost(world, committed[0])
    if world.desk.rounds.phase is Phase.GIVEN_UP and len(committed) < 2:
        yield f"the job was given up for one fault: {world.story()}"


def _who_went(world: World, committed: Sequence[Misfortune]) -> Iterator[str]:
    """Nobody that is honest is dropped as a liar; nobody at all for another's fault, if no two are cut off."""
    liars = {one.victim for one in committed if one.fault in (Fault.SLICE_LYING, Fault.SLICE_CORRUPTED)}
    cut = {rank for one in committed if one.fault is Fault.LINK_CUT for rank in (one.victim, one.other)}
    to_blame = {one.victim for one in committed}
    if len(world.setting.homes) == 2 or len(committed) > 1:
        to_blame |= cut
    for _, action in world.desk.seen:
        if not isinstance(action, MemberDropped) or not world.desk.rounds:
            continue
        if any(lie in action.reason for lie in LIES) and action.rank not in liars and len(liars) < 2:
            yield f"member {action.rank}, which is honest, was dropped: {action.reason}"
        elif len(committed) == 1 and action.rank not in to_blame:
            yield f"member {action.rank} was dropped for another's fault: {action.reason}"


def _named(world: World, misfortune: Misfortune) -> Iterator[str]:
    victim = misfortune.victim
    name = f"peer{victim}"
    if misfortune.fault is Fault.SLICE_LYING:
        dropped = any(isinstance(action, MemberDropped) and action.rank == victim for _, action in world.desk.seen)
        if len(misfortune.deceived) > max(1, may_lie(MEAN, len(world.setting.homes))) and not dropped:
            yield f"member {victim} lied to {misfortune.deceived} and is still there"
        if not any(name in action.reason for _, action in redone_of(world)):
            yield f"nobody found that member {victim} lied to {misfortune.deceived}"
    if misfortune.fault is Fault.SLICE_CORRUPTED:
        for rank in misfortune.deceived:
            if not any(sender == victim for sender, _ in world.peers[rank].refused):
                yield f"member {rank} did not find that what member {victim} sent was wrong"


def _usual_s(world: World, misfortunes: Sequence[Misfortune]) -> float:
    """The longest round that was over before the first fault."""
    until = min((one.committed_at for one in misfortunes if one.committed_at is not None), default=math.inf)
    times = {action.round: time for time, action in world.desk.seen if action in accepted_of(world)}
    calm = [time - world.rounds[round, 0].begun for round, time in times.items() if time <= until]
    return max(calm, default=0.0)


def _cost_s(world: World, usual: float) -> float:
    accepted = [(time, action.round) for time, action in world.desk.seen if action in accepted_of(world)]
    return sum(max(0.0, time - world.rounds[round, 0].begun - usual) for time, round in accepted)


def _cost(world: World, misfortune: Misfortune) -> Iterator[str]:
    """At most one round besides what passes until it is noticed, and until a learnt deadline is over."""
    usual = _usual_s(world, [misfortune])
    noticed = {
        Fault.LINK_CUT: 2.5 * misfortune.notice_s,
        Fault.SENDER_LATE: misfortune.seconds,
        Fault.COORDINATOR_GONE: misfortune.seconds,
        Fault.MEMBER_FROZEN: misfortune.seconds,
        Fault.SLICE_LYING: 0.0,
    }.get(misfortune.fault, misfortune.notice_s)
    assert misfortune.committed_at is not None
    late = [
        (time, action)
        for time, action in redone_of(world)
        if time > misfortune.committed_at + noticed + 2.0 and action.round > _hit(world, misfortune)
    ]
    if late:
        yield f"a round was still redone {late[0][0] - misfortune.committed_at:.1f} s after the fault: {late[0][1]}"
    cost = _cost_s(world, usual)
    allowed = 2 * usual + noticed + max(LEARNT_S, LEARNT_FACTOR * usual) + 2.0
    if usual and cost > allowed:
        yield f"it cost {cost:.1f} s, where a round takes {usual:.1f} s and {allowed:.1f} s are allowed"


def _hit(world: World, misfortune: Misfortune) -> int:
    """The round that was under way."""
    assert misfortune.committed_at is not None
    begun = [round for (round, _), seen in world.rounds.items() if seen.begun <= misfortune.committed_at]
    return max(begun, default=0)
