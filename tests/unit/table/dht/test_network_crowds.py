"""Sets that grow too large split, and readers find their way; a machine that was cut off knows its network still."""

from __future__ import annotations

import asyncio
import random

import pytest

from axonp2p.clock import Clock
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import public_key_of
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.records.compact import CompactRow, sign_compact
from axonp2p.table.dht.records.index_keys import RowQuery
from tests.laboratory.home_links import HomeLinks
from tests.laboratory.measuring import Trial
from tests.laboratory.swarms import AxonSwarm, LoopClock
from tests.laboratory.virtual_loop import VirtualLoop
from tests.unit.table.dht.dht_nodes import compact_row

pytestmark = pytest.mark.slow

NODES = 45
ROWS_EACH = 13
"""Fewer than one network may put into a set; together more than one set holds."""


@pytest.fixture
def trial():
    loop = VirtualLoop(HomeLinks(seed=3))
    trial = Trial(loop, AxonSwarm(random.Random(3)), seed=3)
    loop.run(trial.build(NODES, 0))
    yield trial
    assert loop.errors == []
    loop.close()


def row_of(key: PrivateKey, clock: Clock) -> CompactRow:
    public_key = public_key_of(key.peer_id)
    return compact_row("anybody", public_key=public_key, expires=int(clock.now()) + 3600, tags=("torch2",))


async def crowd(trial: Trial, chance: random.Random) -> dict[str, CompactRow]:
    """Many peers of one class; some of them publish through each node."""
    rows: dict[str, CompactRow] = {}

    async def publish(node: DhtNode) -> None:
        for _ in range(ROWS_EACH):
            key = PrivateKey(chance.randbytes(32))
            rows[key.peer_id] = row = row_of(key, LoopClock())
            assert await node.publish(sign_compact(key, row)) >= 6
            await asyncio.sleep(1.0)

    await asyncio.gather(*(publish(node) for node in trial.swarm.nodes))
    return rows


def test_a_crowded_class_splits_and_is_found(trial):
    rows = trial.loop.run(crowd(trial, random.Random(4)))
    assert max(node.row_count for node in trial.swarm.nodes) < len(rows) * 4

    async def ask() -> None:
        newcomer = DhtNode(PrivateKey(b"n" * 32), LoopClock(), random.Random(5), serves=False)
        await newcomer.listen("99.1.1.1", 7070)
        await newcomer.bootstrap([f"{host}:{port}" for host, port in trial.swarm.addresses[:3]])
        for wanted in (RowQuery(cores=4, memory_mb=8192, tags=("torch2",)), RowQuery()):
            found = await newcomer.find(wanted, 60)
            assert len({row.peer for row in found}) == 60
            assert all(rows[row.peer] == row for row in found)
        for peer in list(rows)[::50]:
            assert await newcomer.find_peer(peer) == rows[peer]
        await newcomer.stop()

    trial.loop.run(ask())


def test_who_was_cut_off_forgets_nobody(trial):
    async def away() -> None:
        node, links = trial.swarm.nodes[7], trial.loop.links
        known = node.contact_count
        key = PrivateKey(b"a" * 32)
        row = row_of(key, LoopClock())
        assert await node.publish(sign_compact(key, row)) >= 6
        links.loss = 1.0
        for _ in range(5):
            assert await node.find_peer(row.peer) in (None, row)  # it may hold the row itself
            await asyncio.sleep(60)
        assert node.contact_count == 0
        links.loss = 0.0
        assert await node.find_peer(row.peer) == row
        assert node.contact_count == known

    trial.loop.run(away())
