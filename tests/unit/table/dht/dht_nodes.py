"""Small DHTs on real sockets of this machine, and rows to put into them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from axonp2p.clock import SystemClock
from axonp2p.identity.peer_id import public_key_of
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.records.compact import CompactRow, pack_addresses
from axonp2p.transport.address import join_host_port
from tests.fakes import key_of

HERE = "127.0.0.1"


def compact_row(name: str, **changes: Any) -> CompactRow:
    """The compact row of a living peer."""
    usual: dict[str, Any] = {
        "public_key": public_key_of(key_of(name).peer_id),
        "packed_addresses": pack_addresses(["203.0.113.7:7071"]),
        "dht": 7071,
        "certificate": b"c" * 32,
        "sequence": 1,
        "expires": int(SystemClock().now()) + 600,
        "cores": 4,
        "memory_mb": 8192,
        "gpu_memory_mb": 0,
        "tags": ("py311", "torch2"),
        "flags": 3,
        "packed_relays": (),
    }
    return CompactRow(**(usual | changes))


class Network:
    """Nodes in this process, each with a socket of its own."""

    def __init__(self, host: str = HERE) -> None:
        self._host = host
        self.nodes: list[DhtNode] = []
        self.ports: list[int] = []

    async def add(self, *, serves: bool = True, join: bool = True) -> DhtNode:
        """One more node, which joins through the first."""
        count = len(self.nodes)
        node = DhtNode(key_of(f"node-{count}"), SystemClock(), random.Random(count), serves=serves)
        self.nodes.append(node)
        self.ports.append(await node.listen(self._host, 0))
        if join and count:
            await node.bootstrap([self.address(0)])
        return node

    def address(self, index: int) -> str:
        """HOST:PORT of a node."""
        return join_host_port(self._host, self.ports[index])


@asynccontextmanager
async def network(count: int, host: str = HERE) -> AsyncIterator[Network]:
    """`count` serving nodes that know each other; all are stopped at the end."""
    made = Network(host)
    try:
        for _ in range(count):
            await made.add()
        yield made
    finally:
        await asyncio.gather(*(node.stop() for node in made.nodes))
