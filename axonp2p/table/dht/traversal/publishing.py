"""Writing into the DHT: a signed row under its own key and its index keys, at the nodes nearest to each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from axonp2p.clock import Clock
from axonp2p.table.dht.records.compact import open_compact
from axonp2p.table.dht.records.index_keys import SetDepths, class_names
from axonp2p.table.dht.records.record_store import StoreOutcome
from axonp2p.table.dht.routing.contact import Contact
from axonp2p.table.dht.routing.keys import DEEPEST, index_key, row_key, shard_bits
from axonp2p.table.dht.rpc.pending_rpcs import RpcEnded
from axonp2p.table.dht.rpc.protocol import DhtProtocol
from axonp2p.table.dht.rpc.rpc import FindAnswer, Put, PutAnswer
from axonp2p.table.dht.traversal.crawl import Crawl

REPLICAS = 8
FURTHER = 8
"""So many nodes beyond the replicas are looked at for what they hold of a peer's own row. Newcomers near its key move
holders out of the nearest: passed over, those would show the superseded row until it expires."""
MERGED_BELOW = 64
"""Rows of a set that is not worth a bit of its own; one is split above 256."""
PATIENCE_S = 0.6
"""How long all holders are waited for; after that, more than half are enough."""


@dataclass(frozen=True)
class RowStored:
    """The outcome for one row under one key."""

    outcomes: Counter[str]
    """How often each `StoreOutcome` was the answer."""
    held: int
    """How many rows the fullest of the nodes on the way held under the key before."""

    @property
    def holders(self) -> int:
        """How many nodes have the row, or a newer one."""
        return self.outcomes[StoreOutcome.STORED.value] + self.outcomes[StoreOutcome.OLDER.value]

    @property
    def crowded(self) -> bool:
        """Whether the set goes on one bit deeper, as at least half of those that answered say."""
        crowded = self.outcomes[StoreOutcome.SPLIT.value]
        return crowded > 0 and 2 * crowded >= self.outcomes.total()


class Publisher:
    """The publisher of the rows of this node's owner; it remembers how deep the sets of a class are split."""

    def __init__(self, protocol: DhtProtocol, depths: SetDepths, clock: Clock) -> None:
        self._protocol = protocol
        self._depths = depths
        self._clock = clock

    async def publish(self, data: bytes) -> int:
        """Put a signed compact row under all its keys; how many nodes hold it under its own now.

        Raises what `open_compact` raises when the row is not one that holders would take.
        """
        row = open_compact(data, self._clock.now())
        classes = [self._in_class(name, row.public_key, data) for name in class_names(row)]
        own, _ = await asyncio.gather(self.store(row_key(row.public_key), data, further=FURTHER), _all(classes))
        return own.holders

    async def store(self, key: bytes, data: bytes, depth: int = 0, further: int = 0) -> RowStored:
        """Put the bytes at the nodes nearest to `key`, and at those of the next `further` that hold rows there; what
        they answered."""
        held: dict[bytes, int] = {}
        nearest: list[Contact] = []

        def heard(contact: Contact, answer: FindAnswer) -> None:
            held[contact.id] = answer.held

        def heard_late(contact: Contact, answer: FindAnswer) -> None:
            # It was slow, and is a holder all the same: left out, it would show the old row until that expires.
            near = bool(nearest) and contact.long_id ^ place < nearest[-1].long_id ^ place
            if near or (further and answer.held):
                self._put(contact, key, depth, data, lambda ended: None)

        place = int.from_bytes(key)
        found = await Crawl(self._protocol, key, None, heard, heard_late, further).run()
        nearest += found[:REPLICAS]
        at_home = self._at_home(key, data, depth, nearest)
        nearest += [contact for contact in found[REPLICAS:] if held.get(contact.id)]
        holders = _Holders(len(nearest))
        holders.outcomes.update(at_home)
        for contact in nearest:
            self._put(contact, key, depth, data, holders.heard)
        await holders.enough()
        return RowStored(holders.outcomes, max(held.values(), default=0))

    def _put(self, contact: Contact, key: bytes, depth: int, data: bytes, on_end: Callable[[RpcEnded], None]) -> None:
        token = self._protocol.token_of(contact.address)
        self._protocol.ask(contact, Put(key, depth, token, data), on_end)

    async def _in_class(self, name: str, public_key: bytes, data: bytes) -> None:
        """Under the class's key at the depth where its sets are not crowded, which nobody knows before he tries."""
        depth = self._depths.of(name)
        while True:
            stored = await self.store(index_key(name, shard_bits(public_key, depth)), data, depth)
            if not stored.crowded or depth == DEEPEST:
                break
            depth += 1
        # With hysteresis: two sets of this size are one that is far from crowded.
        self._depths.learn(name, depth - 1 if depth and stored.held < MERGED_BELOW else depth)

    def _at_home(self, key: bytes, data: bytes, depth: int, others: list[Contact]) -> Counter[str]:
        """This node is a holder as any other when it serves and is near enough."""
        protocol = self._protocol
        outcomes: Counter[str] = Counter()
        own = int.from_bytes(protocol.source_node.id)
        place = int.from_bytes(key)
        if protocol.answering.serves and (
            len(others) < REPLICAS or own ^ place < max(other.long_id ^ place for other in others)
        ):
            now = self._clock.now()
            token = protocol.storage.tokens.token_for("127.0.0.1", now)
            result = protocol.storage.put(key, depth, data, token=token, source="127.0.0.1", now=now)
            outcomes[result.outcome.value] += 1
        return outcomes


class _Holders:
    """The answers to one row's `put`, until all are there, or most and the last ones let us wait."""

    def __init__(self, asked: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self._left = asked
        self._answered = 0
        self._asked = asked
        self._late = False
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def heard(self, ended: RpcEnded) -> None:
        """One has ended, with an answer or without."""
        self._left -= 1
        if isinstance(ended.answer, PutAnswer):
            self.outcomes[ended.answer.outcome] += 1
            self._answered += 1
        self._look()

    async def enough(self) -> None:
        """Wait for the end. Those that are late may store the row still, and are not counted."""
        timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._grow_late)
        self._look()
        try:
            await self._end
        finally:
            timer.cancel()

    def _grow_late(self) -> None:
        self._late = True
        self._look()

    def _look(self) -> None:
        most = self._late and 2 * self._answered > self._asked
        if (not self._left or most) and not self._end.done():
            self._end.set_result(None)


async def _all(waiting: Iterable[Awaitable[None]]) -> None:
    await asyncio.gather(*waiting)
