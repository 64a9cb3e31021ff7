"""Hostile nodes in a network of sound ones: around one key, or anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from tests.laboratory.hostile import ANY_WIRE, Liar, Lie
from tests.laboratory.measuring import Figures, Trial
from tests.laboratory.virtual_loop import VirtualLoop

SURROUNDING = 20
ASKED = 100


async def surround(trial: Trial) -> Figures:
    """Twenty nodes of one /24 stand around an item's key and lie about it. What do a hundred sound ones find?

    The item's peer says something newer after they have come, so that the holders are chosen among them too."""
    item = trial.chance.choice(trial.items)
    before = len(trial.swarm.addresses)
    for number, identity in enumerate(trial.swarm.identities_near(item, SURROUNDING)):
        await _join(trial, f"66.66.66.{number + 1}", identity)
    liars = range(before, len(trial.swarm.addresses))
    for member in liars:
        _corrupt(trial, member, trial.swarm.lies_about(item, liars))
    await trial.swarm.put(item)
    figures = Figures()
    askers = [member for member in trial.alive if not trial.swarm.knows(member, item)]
    for member in trial.chance.sample(askers, min(ASKED, len(askers))):
        await trial.measure(figures, [trial.getting(member, item)])
    return figures


async def infest(trial: Trial, share: float, lies: Sequence[Lie] = ()) -> None:
    """More nodes come, so many for each sound one, all over the place, with these lies; else with every kind of lie."""
    before = len(trial.swarm.addresses)
    for number in range(round(len(trial.alive) * share)):
        await _join(trial, f"77.{number // 250}.{number % 250}.7", None)
    kinds = lies or list(ANY_WIRE.values())
    for member in range(before, len(trial.swarm.addresses)):
        false = trial.swarm.lies_about(trial.chance.choice(trial.items))
        _corrupt(trial, member, false if not lies and member % 3 == 0 else kinds[member % len(kinds)])


def closed_sockets(trial: Trial) -> int:
    """How many nodes that nobody killed have no socket any more."""
    return sum(trial.swarm.addresses[member] not in trial.loop.endpoints for member in trial.alive)


async def _join(trial: Trial, host: str, identity: object) -> None:
    known = [trial.swarm.addresses[member] for member in trial.chance.sample(trial.alive, 3)]
    await trial.swarm.join(host, 6666, known, identity)


def _corrupt(trial: Trial, member: int, lie: Lie) -> None:
    assert isinstance(trial.loop, VirtualLoop)
    trial.loop.meddlers[trial.swarm.addresses[member]] = Liar(lie, member)
