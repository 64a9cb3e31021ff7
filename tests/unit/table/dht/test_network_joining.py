"""Nodes come, go and come back in virtual time: from saved contacts, through the dead, and without being reachable."""

from __future__ import annotations

import asyncio
import random

import pytest

from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.routing.node_state import SavedContact, load_state, save_state
from tests.laboratory.home_links import HomeLinks
from tests.laboratory.measuring import Trial
from tests.laboratory.swarms import AxonSwarm, LoopClock
from tests.laboratory.virtual_loop import VirtualLoop

pytestmark = pytest.mark.slow

SIZE = 40


@pytest.fixture
def trial():
    loop = VirtualLoop(HomeLinks(seed=11))
    trial = Trial(loop, AxonSwarm(random.Random(11)), seed=11)
    loop.run(trial.build(SIZE, SIZE))
    yield trial
    assert loop.errors == []
    loop.close()


def text(address):
    return f"{address[0]}:{address[1]}"


async def another_node(trial, host, *, serves=True, key=None):
    node = DhtNode(key or trial.swarm.keys[0], LoopClock(), random.Random(host), serves=serves)
    await node.listen(host, 7070)
    return node


def test_a_node_comes_back_from_its_saved_contacts_though_half_of_them_are_dead(trial, tmp_path):
    swarm, path = trial.swarm, tmp_path / "dht.json"

    async def leave_and_come_back():
        old, (host, _) = swarm.nodes[5], swarm.addresses[5]
        save_state(path, (SavedContact(contact, LoopClock().now()) for contact in old.contacts(200)))
        await old.stop()
        trial.alive.remove(5)
        trial.kill(0.5)
        await asyncio.sleep(60)
        node = await another_node(trial, host, key=swarm.keys[5])
        saved = load_state(path, LoopClock().now())
        assert await node.bootstrap(contact.address for contact in saved) >= 10
        for item in trial.chance.sample(trial.items, 20):
            assert await node.find_peer(swarm.keys[item].peer_id) == swarm.rows[item]

    trial.loop.run(leave_and_come_back())


def test_one_living_contact_among_dead_ones_is_enough_to_join(trial):
    async def join():
        dead = [text(("99.0.0.1", port)) for port in range(1, 15)]
        node = await another_node(trial, "88.0.0.1")
        assert await node.bootstrap([*dead, text(trial.swarm.addresses[7])]) >= 10

    trial.loop.run(join())


def test_with_none_alive_joining_says_so_and_a_later_try_succeeds(trial):
    async def join():
        node = await another_node(trial, "88.0.0.1")
        assert await node.bootstrap(["99.0.0.1:1", "not an address", "99.0.0.2:70000"]) == 0
        assert await node.bootstrap([text(trial.swarm.addresses[7])]) >= 10

    trial.loop.run(join())


def test_a_node_that_only_asks_finds_all_and_is_nobodys_contact(trial):
    async def ask():
        host = "88.0.0.1"
        node = await another_node(trial, host, serves=False)
        await node.bootstrap([text(trial.swarm.addresses[7])])
        for item in trial.chance.sample(trial.items, 10):
            assert await node.find_peer(trial.swarm.keys[item].peer_id) == trial.swarm.rows[item]
        await asyncio.sleep(30)
        for other in trial.swarm.nodes:
            assert not any(contact.startswith(f"{host}:") for contact in other.contacts(200))

    trial.loop.run(ask())


def test_who_leaves_is_found_by_nobody(trial):
    async def leave():
        await trial.swarm.withdraw(9)
        for member in trial.chance.sample(trial.alive, 15):
            assert await trial.swarm.nodes[member].find_peer(trial.swarm.keys[9].peer_id) is None

    trial.loop.run(leave())
