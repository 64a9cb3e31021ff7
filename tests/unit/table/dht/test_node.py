"""DHT nodes on real sockets of this machine: joining, publishing, finding, leaving."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest

from axonp2p.clock import SystemClock
from axonp2p.errors import BadSignature, PortTaken
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.records.compact import sign_compact, withdrawal_of
from axonp2p.table.dht.records.index_keys import RowQuery
from tests.fakes import key_of
from tests.unit.table.dht.dht_nodes import HERE, Network, compact_row, network

ALL = RowQuery()


async def test_a_row_is_found_by_its_peer_and_by_what_it_offers() -> None:
    async with network(12) as made:
        row = compact_row("anna")
        assert await made.nodes[3].publish(sign_compact(key_of("anna"), row)) >= 5
        assert await made.nodes[9].find_peer(row.peer) == row
        assert await made.nodes[7].find(RowQuery(cores=2, memory_mb=4096, tags=("torch2",)), 5) == [row]
        assert await made.nodes[7].find(RowQuery(cores=64), 5) == []


async def test_a_node_that_only_asks_finds_and_publishes_but_nobody_keeps_it() -> None:
    async with network(5) as made:
        asker = await made.add(serves=False)
        row = compact_row("anna")
        assert await asker.publish(sign_compact(key_of("anna"), row)) >= 3
        assert await asker.find_peer(row.peer) == row
        assert asker.row_count == 0
        own = made.address(5)
        assert all(own not in node.contacts(50) for node in made.nodes[:5])


async def test_the_newest_row_wins_and_a_withdrawn_one_is_gone() -> None:
    async with network(6) as made:
        key, row = key_of("anna"), compact_row("anna")
        newer = compact_row("anna", sequence=2, cores=8)
        await made.nodes[1].publish(sign_compact(key, newer))
        await made.nodes[2].publish(sign_compact(key, row))
        assert await made.nodes[4].find_peer(row.peer) == newer
        await made.nodes[1].publish(sign_compact(key, withdrawal_of(newer, 3, newer.expires)))
        assert await made.nodes[4].find_peer(row.peer) is None
        assert await made.nodes[4].find(ALL, 5) == []


async def test_many_rows_come_in_pages() -> None:
    async with network(6) as made:
        names = [f"peer-{number}" for number in range(30)]
        for name in names:  # one by one: all at once, on a busy machine, are more than one process can answer in time
            await made.nodes[0].publish(sign_compact(key_of(name), compact_row(name)))
        found = await made.nodes[5].find(RowQuery(cores=2), 25)
        assert len({row.peer for row in found}) == 25
        assert len(await made.nodes[5].find(ALL, 100)) == 30


async def test_two_nodes_alone_are_a_network() -> None:
    async with network(2) as made:
        row = compact_row("anna")
        assert await made.nodes[0].publish(sign_compact(key_of("anna"), row)) == 2
        assert await made.nodes[1].find_peer(row.peer) == row


async def test_the_first_two_learn_their_own_addresses_before_they_serve() -> None:
    made = Network()
    try:
        first = await made.add(serves=False, join=False)
        second = await made.add(serves=False, join=False)
        assert await second.bootstrap([made.address(0)]) == 0
        async with asyncio.timeout(20):
            while first.own_address_seen is None:  # noqa: ASYNC110  no event tells
                await asyncio.sleep(0.01)
        assert second.own_address_seen == made.address(1)
        assert first.own_address_seen == made.address(0)
        first.serves = second.serves = True
        assert await second.bootstrap([made.address(0)]) == 1
    finally:
        await asyncio.gather(*(node.stop() for node in made.nodes))


async def test_dead_nodes_cost_a_moment_not_the_answer() -> None:
    async with network(16) as made:
        row = compact_row("anna")
        await made.nodes[0].publish(sign_compact(key_of("anna"), row))
        for node in made.nodes[8:13]:
            await node.stop()
        assert await made.nodes[3].find_peer(row.peer) == row
        newer = compact_row("anna", sequence=2)
        assert await made.nodes[3].publish(sign_compact(key_of("anna"), newer)) >= 4
        assert await made.nodes[15].find_peer(row.peer) == newer


async def test_contacts_that_are_none_are_ignored() -> None:
    async with network(1) as made:
        node = await made.add(join=False)
        assert await node.bootstrap(["", "host.example:7071", "127.0.0.1:0", "127.0.0.1:70000", "[::1]:5", "x"]) == 0
        assert await node.bootstrap([made.address(0)]) == 1


async def test_alone_nothing_is_found_and_nothing_hangs() -> None:
    node = DhtNode(key_of("alone"), SystemClock(), random.Random(1), serves=False)
    await node.listen(HERE, 0)
    assert await node.find_peer(key_of("anna").peer_id) is None
    assert await node.find(ALL, 3) == []
    assert await node.publish(sign_compact(key_of("anna"), compact_row("anna"))) == 0
    await node.stop()


async def test_a_taken_port_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((HERE, 0))
        node = DhtNode(key_of("anna"), SystemClock(), random.Random(1), serves=True)
        with pytest.raises(PortTaken, match=str(taken.getsockname()[1])):
            await node.listen(HERE, taken.getsockname()[1])
        await node.stop()


async def test_a_false_row_is_not_published() -> None:
    async with network(2) as made:
        good = sign_compact(key_of("anna"), compact_row("anna"))
        with pytest.raises(BadSignature):
            await made.nodes[0].publish(bytes(64) + good[64:])


async def test_ipv6_is_a_network_of_its_own() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    async with network(5, "::1") as made, network(1) as other:
        row = compact_row("anna")
        assert await made.nodes[1].publish(sign_compact(key_of("anna"), row)) >= 3
        assert await made.nodes[4].find_peer(row.peer) == row
        assert await other.nodes[0].bootstrap([made.address(0)]) == 0
        assert await made.nodes[0].bootstrap([other.address(0), made.address(1)]) == 4
