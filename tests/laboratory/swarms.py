"""The same small face over many nodes of either kind: of the package as it comes, and of ours."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kademlia.network import Server
from kademlia.utils import digest
from msgspec.structs import replace

from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import public_key_of
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.records.compact import (
    OFFERS_WORK,
    PURPOSE,
    CompactRow,
    pack_addresses,
    peek,
    sign_compact,
    withdrawal_of,
)
from axonp2p.table.dht.records.index_keys import RowQuery, meets
from axonp2p.table.dht.routing.contact import Contact
from axonp2p.table.dht.routing.keys import node_id, row_key
from axonp2p.table.records import LONGEST_LIFE_S
from axonp2p.wire.codec import encode
from tests.laboratory.home_links import Address
from tests.laboratory.hostile import Lie, with_rows, with_value

EPOCH = 1_800_000_000
GROUND_KEYS = 20_000
"""Keys that an attacker tries to come near a place: a few seconds of work."""
WANTED = RowQuery(cores=4, memory_mb=8192, tags=("torch2",))


class LoopClock:
    """Unix time that goes with the running loop's."""

    def now(self) -> float:
        return EPOCH + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class Swarm(Protocol):
    """Nodes by number. Item number i is what node i tells the others of itself."""

    name: str
    addresses: list[Address]

    async def join(self, host: str, port: int, known: Sequence[Address], identity: Any = None) -> bool:
        """One more node, which knows these; whether it found anybody. It is a chance one unless told who it is."""

    def identities_near(self, item: int, count: int) -> list[Any]:
        """Of nodes that stand nearer to an item's place than anybody."""

    def lies_about(self, item: int, liars: Sequence[int] = ()) -> Lie:
        """What nodes say that want others to believe something false of this item, and to know these nodes only."""

    async def put(self, member: int) -> bool:
        """The node tells the others of itself; whether anybody holds it now."""

    async def get(self, member: int, item: int) -> bool:
        """Whether it finds the item, in its newest version."""

    def knows(self, member: int, item: int) -> bool:
        """Whether it holds the item itself, so that asking for it would show nothing."""


@dataclass
class PlainSwarm:
    """`kademlia` as it comes, beside which all is measured."""

    chance: random.Random
    name: str = "kademlia"
    addresses: list[Address] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    values: dict[int, bytes] = field(default_factory=dict)

    async def join(self, host: str, port: int, known: Sequence[Address], identity: Any = None) -> bool:
        node = Server(node_id=identity or self.chance.randbytes(20))
        await node.listen(port, host)
        self.nodes.append(node)
        self.addresses.append(node.transport.get_extra_info("sockname")[:2])
        return not known or bool(await node.bootstrap(list(known)))

    async def put(self, member: int) -> bool:
        self.values[member] = self.chance.randbytes(190)
        return bool(await self.nodes[member].set(f"peer-{member}", self.values[member]))

    async def get(self, member: int, item: int) -> bool:
        return bool(await self.nodes[member].get(f"peer-{item}") == self.values[item])

    def identities_near(self, item: int, count: int) -> list[Any]:
        place: bytes = digest(f"peer-{item}")  # ids are free to choose
        return [place[:-1] + bytes([place[-1] ^ number]) for number in range(1, count + 1)]

    def lies_about(self, item: int, liars: Sequence[int] = ()) -> Lie:
        return with_value(b"evil")

    def knows(self, member: int, item: int) -> bool:
        return self.nodes[member].storage.get(digest(f"peer-{item}")) is not None


@dataclass
class AxonSwarm:
    """Our nodes, each with the row of its peer."""

    chance: random.Random
    name: str = "axon"
    addresses: list[Address] = field(default_factory=list)
    nodes: list[DhtNode] = field(default_factory=list)
    keys: list[PrivateKey] = field(default_factory=list)
    rows: dict[int, CompactRow] = field(default_factory=dict)
    """The newest row of each member."""
    signed: dict[int, list[bytes]] = field(default_factory=dict)
    """All rows of each member as they were signed, oldest first."""

    async def join(self, host: str, port: int, known: Sequence[Address], identity: Any = None) -> bool:
        key: PrivateKey = identity or PrivateKey(self.chance.randbytes(32))
        node = DhtNode(key, LoopClock(), random.Random(self.chance.random()), serves=True)
        port = await node.listen(host, port)
        self.nodes.append(node)
        self.keys.append(key)
        self.addresses.append((host, port))
        return not known or bool(await node.bootstrap([f"{host}:{port}" for host, port in known]))

    async def put(self, member: int) -> bool:
        row, signed = self.next_row(member)
        held = await self.nodes[member].publish(signed)
        if held:
            self.rows[member] = row
            self.signed.setdefault(member, []).append(signed)
        return bool(held)

    async def withdraw(self, member: int) -> None:
        """The node's peer leaves, and says so."""
        row = self.rows[member]
        gone = withdrawal_of(row, row.sequence + 1, row.expires)
        await self.nodes[member].publish(sign_compact(self.keys[member], gone))

    async def get(self, member: int, item: int) -> bool:
        return await self.nodes[member].find_peer(self.keys[item].peer_id) == self.rows[item]

    def knows(self, member: int, item: int) -> bool:
        return member == item

    def identities_near(self, item: int, count: int) -> list[Any]:
        place = int.from_bytes(row_key(public_key_of(self.keys[item].peer_id)))

        def distance(key: PrivateKey) -> int:
            return int.from_bytes(node_id(public_key_of(key.peer_id))) ^ place

        ground = [PrivateKey(self.chance.randbytes(32)) for _ in range(GROUND_KEYS)]
        return sorted(ground, key=distance)[:count]

    def lies_about(self, item: int, liars: Sequence[int] = ()) -> Lie:
        contacts = [
            Contact(node_id(public_key_of(self.keys[liar].peer_id)), *self.addresses[liar]).pack() for liar in liars
        ]
        return with_rows(lambda: self.false_rows(item), contacts)

    def false_rows(self, item: int) -> list[bytes]:
        """Superseded, changed by a bit, signed by another, expired, and true but of another peer."""
        key, other = self.keys[item], PrivateKey(b"another peer's key".ljust(32))
        row = self.rows[item]
        newer = encode(replace(row, sequence=row.sequence + 9))
        changed = bytearray(self.signed[item][-1])
        changed[self.chance.randrange(len(changed))] ^= 1 << self.chance.randrange(8)
        expired = sign_compact(key, replace(row, expires=int(LoopClock().now()) - 3600, sequence=0))
        rows = [self.signed[item][0], bytes(changed), other.sign(PURPOSE, newer) + newer, expired]
        return [*rows, self.signed[self.chance.choice(list(self.signed))][-1]]

    async def query(self, member: int, count: int) -> tuple[int, bool, int]:
        """How many fitting peers it finds, whether all that was found is true, and how many rows are superseded."""
        found = await self.nodes[member].find(WANTED, count)
        newest = set(self.rows.values())
        superseded = sum(row not in newest for row in found)
        return len({row.peer for row in found}), all(self.is_true(row) for row in found), superseded

    def is_true(self, row: CompactRow) -> bool:
        """Whether a peer of this swarm said this, it has not expired, and it fits. A newer one may be on its way."""
        said = any(peek(signed) == row for all_signed in self.signed.values() for signed in all_signed)
        return said and row.expires > LoopClock().now() and meets(row, WANTED)

    def next_row(self, member: int) -> tuple[CompactRow, bytes]:
        """A newer row of this member, and its signed form."""
        key = self.keys[member]
        old = self.rows.get(member)
        shape = random.Random(member)  # what a machine is does not change
        cores = shape.choice((2, 4, 4, 8, 8, 16))
        host, port = self.addresses[member]
        row = CompactRow(
            public_key=public_key_of(key.peer_id),
            packed_addresses=pack_addresses([f"{host}:{port}"]),
            dht=port,
            certificate=b"c" * 32,
            sequence=old.sequence + 1 if old else 1,
            expires=int(LoopClock().now()) + LONGEST_LIFE_S - 60,
            cores=cores,
            memory_mb=cores * shape.choice((1024, 2048, 2048, 4096)),
            gpu_memory_mb=shape.choice((0, 0, 0, 12288)),
            tags=("torch2",),
            flags=OFFERS_WORK,
            packed_relays=(),
        )
        return row, sign_compact(key, row)
