"""Nodes that lie, all over a DHT or around one key: no false row, no exception, no dead socket."""

from __future__ import annotations

import asyncio
import random

import msgpack
import pytest

from tests.laboratory.attacks import closed_sockets, infest, surround
from tests.laboratory.home_links import HomeLinks
from tests.laboratory.hostile import ANY_WIRE
from tests.laboratory.measuring import Trial
from tests.laboratory.swarms import WANTED, AxonSwarm, PlainSwarm
from tests.laboratory.virtual_loop import VirtualLoop

pytestmark = pytest.mark.slow

SIZE = 30


def whole(swarm, size=SIZE, seed=5):
    random.seed(seed)  # the package's chance
    loop = VirtualLoop(HomeLinks(seed))
    trial = Trial(loop, swarm, seed)
    loop.run(trial.build(size, size))
    return trial


def assert_sound(trial):
    assert trial.loop.errors == []
    assert closed_sockets(trial) == 0


def assert_lied_to(trial):
    """The liars were asked, or the test shows nothing."""
    assert sum(liar.told for liar in trial.loop.meddlers.values()) > SIZE


async def all_answers_are_true_or_none(trial):
    """What a hundred questions find, by kind: nothing, the newest row, an older one of the same peer."""
    swarm, found = trial.swarm, []
    for _ in range(60):
        member, item = trial.chance.choice(trial.alive), trial.chance.choice(trial.items)
        row = await swarm.nodes[member].find_peer(swarm.keys[item].peer_id)
        assert row is None or row == swarm.rows[item]
        found.append(row is not None)
    for row in await swarm.nodes[trial.chance.choice(trial.alive)].find(WANTED, 10):
        assert swarm.is_true(row)
    return sum(found) / len(found)


@pytest.mark.parametrize("kind", [*ANY_WIRE, "false rows"])
def test_one_kind_of_lie_all_over_the_network(kind):
    swarm = AxonSwarm(random.Random(5))
    trial = whole(swarm)
    lies = [ANY_WIRE[kind]] if kind in ANY_WIRE else [swarm.lies_about(item) for item in trial.items]
    trial.loop.run(infest(trial, 0.5, lies))
    assert trial.loop.run(trial.puts(SIZE)).good == SIZE
    assert trial.loop.run(all_answers_are_true_or_none(trial)) >= 0.98
    assert_lied_to(trial)
    assert_sound(trial)


def test_every_lie_at_once():
    trial = whole(AxonSwarm(random.Random(6)))
    trial.loop.run(infest(trial, 0.5))
    assert trial.loop.run(trial.puts(SIZE)).good == SIZE
    assert trial.loop.run(all_answers_are_true_or_none(trial)) >= 0.98
    assert_lied_to(trial)
    assert_sound(trial)


def test_twenty_nodes_of_one_network_around_a_key_hide_nothing_and_forge_nothing():
    trial = whole(AxonSwarm(random.Random(5)), size=60)
    assert trial.loop.run(surround(trial)).summary()["good"] == 1
    assert_lied_to(trial)
    assert_sound(trial)


def test_the_package_would_believe_them():
    """The laboratory's attack is one: without our defences it wins."""
    trial = whole(PlainSwarm(random.Random(5)), size=60)
    assert trial.loop.run(surround(trial)).good == 0


def test_the_package_would_lose_its_sockets():
    trial = whole(PlainSwarm(random.Random(5)))
    trial.loop.run(infest(trial, 0.5, [ANY_WIRE["port 70000"]]))
    trial.loop.run(trial.puts(SIZE))
    assert closed_sockets(trial) > 0


class Shouter(asyncio.DatagramProtocol):
    """Sends questions that are none."""


def test_questions_that_are_none_change_nothing():
    trial = whole(AxonSwarm(random.Random(5)), size=10)
    chance = random.Random(9)
    names = ["hi", "find", "get", "put", "ping", "store", "stun", "__init__", "", 7, None]

    def odd():
        pick = chance.choice
        value = pick([None, {}, [], -1, 2**63, 0.5, "x", b"", b"x" * 20, b"x" * 8, True, [[[]]], {"a": 1}, b"x" * 400])
        return value if chance.random() < 0.7 else [odd() for _ in range(chance.randrange(7))]

    async def shout():
        transport, _ = await trial.loop.create_datagram_endpoint(Shouter, ("66.1.2.3", 6666))
        for _ in range(2000):
            frame = bytes([chance.choice((0, 0, 0, 1, 2))]) + chance.randbytes(20)
            body = [chance.choice(names), [odd() for _ in range(chance.randrange(8))]]
            data = chance.choice((frame + msgpack.packb(body), frame + chance.randbytes(50), chance.randbytes(30)))
            transport.sendto(data, trial.swarm.addresses[chance.randrange(10)])
            await asyncio.sleep(0.01)

    trial.loop.run(shout())
    assert trial.loop.run(trial.gets(20)).good == 20
    assert_sound(trial)
