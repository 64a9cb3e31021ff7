"""Writing into the DHT: a signed row under its own key and its index keys, at the nodes nearest to each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable

from axonp2p.clock import Clock
from axonp2p.table.dht.compact import open_compact
from axonp2p.table.dht.contact import Contact
from axonp2p.table.dht.crawl import Crawl, drop
from axonp2p.table.dht.depths import Depths
from axonp2p.table.dht.index_keys import class_names
from axonp2p.table.dht.keys import DEEPEST, index_key, row_key, shard_bits
from axonp2p.table.dht.protocol import DhtProtocol
from axonp2p.table.dht.record_store import Outcome
from axonp2p.table.dht.rpc import Put, PutAnswer

REPLICAS = 8


class Publisher:
    """What puts rows of this node's owner into the network; it remembers how deep the sets of a class are split."""

    def __init__(self, protocol: DhtProtocol, depths: Depths, clock: Clock) -> None:
        self._protocol = protocol
        self._depths = depths
        self._clock = clock

    async def publish(self, data: bytes) -> int:
        """Put a signed compact row under all its keys; how many nodes hold it under its own now.

        Raises what `open_compact` raises when the row is not one that holders would take.
        """
        row = open_compact(data, self._clock.now())
        classes = [self._in_class(name, row.public_key, data) for name in class_names(row)]
        own, _ = await asyncio.gather(self.store(row_key(row.public_key), data), _all(classes))
        return own[Outcome.STORED.value] + own[Outcome.OLDER.value]

    async def store(self, key: bytes, data: bytes, depth: int = 0) -> Counter[str]:
        """Put the bytes at the nodes nearest to `key`; how often each `Outcome` was the answer."""
        nearest = await Crawl(self._protocol, key, None, drop).run()
        outcomes = self._at_home(key, data, depth, nearest)
        answers = await asyncio.gather(*(self._put(contact, key, data, depth) for contact in nearest))
        outcomes.update(answer for answer in answers if answer)
        return outcomes

    async def _in_class(self, name: str, public_key: bytes, data: bytes) -> None:
        """Under the class's key at the depth where its sets are not crowded, which the class's name hides."""
        depth = self._depths.of(name)
        while True:
            outcomes = await self.store(index_key(name, shard_bits(public_key, depth)), data, depth)
            crowded = outcomes[Outcome.SPLIT.value]
            if not crowded or crowded * 2 < outcomes.total() or depth == DEEPEST:
                break
            depth += 1
        self._depths.learn(name, depth)

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
            token = protocol.storage.token_for("127.0.0.1", now)
            result = protocol.storage.put(key, depth, data, token=token, source="127.0.0.1", now=now)
            outcomes[result.outcome.value] += 1
        return outcomes

    async def _put(self, contact: Contact, key: bytes, data: bytes, depth: int) -> str | None:
        answer = await self._protocol.asked(contact, Put(key, depth, self._protocol.token_of(contact.address), data))
        return answer.outcome if isinstance(answer, PutAnswer) else None


async def _all(waiting: Iterable[Awaitable[None]]) -> None:
    await asyncio.gather(*waiting)
