"""Reading the DHT: the row of one peer, or rows of peers that offer what is wanted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId, public_key_of
from axonp2p.table.dht.records.compact import CompactRow, peek
from axonp2p.table.dht.records.index_keys import EVERYBODY, RowQuery, SetDepths, belongs, classes_for
from axonp2p.table.dht.records.row_sample import Enough, RowSample
from axonp2p.table.dht.routing.contact import Contact, read_host
from axonp2p.table.dht.routing.keys import DEEPEST, index_key, page_order, row_key, spread_places
from axonp2p.table.dht.rpc.protocol import DhtProtocol
from axonp2p.table.dht.rpc.rpc import PLACE_BYTES, FindAnswer, Get, GetAnswer
from axonp2p.table.dht.traversal.crawl import RECORDS_SIZE, Crawl

HOLDERS_OF_A_ROW = 3
"""How many holders, each of another network, are heard before the newest of their rows is taken."""
GRACE_S = {1: 0.3, 2: 0.1}
"""How long more are waited for once so many have answered. One alone may keep to a superseded row."""
HOLDERS_AT_A_TIME = 4
MOST_IDLE_ROUNDS = 3
MOST_SETS_A_CLASS = 4
CLASSES_AT_A_TIME = 3
RARE_AT_A_TIME = 8
"""Of the classes that are left when the first had too little: most are empty, and each of those takes a look-up."""
SMALL_NETWORK = 40
"""Up to about this many nodes, the set of all rows is asked first: it alone is likely a whole answer."""


class _Found(Enum):
    """The sort of a set, as found."""

    NOTHING = 0
    SOME = 1
    ALL = 2
    CROWDED = 3


@dataclass
class _Holder:
    """A node that holds more of a set than it has shown."""

    contact: Contact
    held: int
    shown: int
    place: bytes


class _Set:
    """The rows read under one key."""

    def __init__(self, key: bytes, depth: int, sample: RowSample) -> None:
        self.key = key
        self.holders: list[_Holder] = []
        self.seen: set[bytes] = set()
        """The peers whose rows were read, by public key."""
        self._depth = depth
        self._sample = sample

    def take(self, records: list[bytes], now: float) -> None:
        """Keep the true rows that belong under the key."""
        self.seen |= self._sample.add(records, now, lambda row: belongs(row, self.key, self._depth))

    def promising(self) -> list[_Holder]:
        """The nodes that may have rows not seen yet: more than they have shown, and more than there are so far."""
        return [holder for holder in self.holders if max(holder.shown, len(self.seen)) < holder.held]


class Finder:
    """Reads for this node's owner; shares what is known of depths with the writing side."""

    def __init__(self, protocol: DhtProtocol, depths: SetDepths, clock: Clock) -> None:
        self._protocol = protocol
        self._depths = depths
        self._clock = clock
        self._chance = protocol.surroundings.chance

    async def find_peer(self, peer: PeerId) -> CompactRow | None:
        """The newest row of a peer among the first holders that answer; None when it left or nobody has one."""
        public_key = public_key_of(peer)
        key = row_key(public_key)
        sample = RowSample()
        holders: set[bytes] = set()
        nodes: set[bytes] = set()

        def enough() -> None:
            # Several nodes of one network near one key are hardly there by chance: they alone are not believed.
            if len(holders) > 1 or len(nodes) == len(holders):
                crawl.stop()

        def add(records: list[bytes]) -> set[bytes]:
            return sample.add(records, self._clock.now(), lambda row: belongs(row, key, 0))

        def heard(contact: Contact, answer: FindAnswer) -> None:
            if not add(answer.records):
                return
            host = read_host(contact.ip)
            nodes.add(contact.id)
            holders.add(contact.id if host.local else host.network)
            if len(holders) >= HOLDERS_OF_A_ROW:
                crawl.stop()
            else:
                asyncio.get_running_loop().call_later(GRACE_S[len(holders)], enough)

        add(self._at_home(key))
        crawl = Crawl(self._protocol, key, lambda: bytes(PLACE_BYTES), heard)
        await crawl.run()
        row = sample.of(public_key)
        return None if row is None or row.withdrawn else row

    async def find(self, wanted: RowQuery, count: int) -> list[CompactRow]:
        """At most `count` rows that meet `wanted`, by chance; fewer when no more were found."""
        enough = Enough(wanted, count)
        for names in self._order(wanted):
            whole = await asyncio.gather(*(self._read_class(name, enough) for name in names))
            # A reader that has read all rows that there are need not look for more of them elsewhere.
            if enough.reached or (EVERYBODY, True) in zip(names, whole, strict=True):
                break
        rows = enough.fitting()
        self._chance.shuffle(rows)
        return rows[:count]

    def _order(self, wanted: RowQuery) -> list[list[str]]:
        """Groups of classes, asked one group after another."""
        classes = classes_for(wanted)
        if wanted == RowQuery():
            return [[EVERYBODY]]
        if self.network_size() <= SMALL_NETWORK:
            return [[EVERYBODY], *_groups(classes)]
        first, second, rest = classes[:1], classes[1:CLASSES_AT_A_TIME], classes[CLASSES_AT_A_TIME:]
        return [first, [EVERYBODY, *second], *_groups(rest)]

    def network_size(self) -> float:
        """About how many nodes there are, from how dense they stand around this one."""
        protocol = self._protocol
        near = protocol.router.nearest(protocol.source_node.id, 8)
        if len(near) < 8:
            return float(len(near))
        own = int.from_bytes(protocol.source_node.id)
        return 8 * 2.0**160 / max(contact.long_id ^ own for contact in near)

    async def _read_class(self, name: str, enough: Enough) -> bool:
        """Read sets of a class until there is enough; go deeper where they are crowded. Whether that was all of it."""
        depth = self._depths.of(name)
        highest = 0
        found = _Found.NOTHING
        read: set[str] = set()
        while not enough.reached and len(read) < min(MOST_SETS_A_CLASS, 2**depth):
            shard = self._chance.getrandbits(depth) if depth else 0
            bits = f"{shard:0{depth}b}" if depth else ""
            if bits in read:
                continue
            found = await self._read_set(index_key(name, bits), depth, enough)
            if found is _Found.CROWDED and depth < DEEPEST:
                highest = depth = depth + 1
                read.clear()
            elif found is _Found.NOTHING and depth > highest:
                # The class has shrunk, or this is far deeper than anybody is: its rows stand higher.
                depth -= 1
                read.clear()
            else:
                read.add(bits)
            self._depths.learn(name, depth)
        return found is _Found.ALL and not depth

    async def _read_set(self, key: bytes, depth: int, enough: Enough) -> _Found:
        """Read one set from several holders, from different places."""
        reading = _Set(key, depth, enough.sample)
        reading.take(self._at_home(key), self._clock.now())
        splits = 0

        def heard(contact: Contact, answer: FindAnswer) -> None:
            nonlocal splits
            if not answer.held:
                return
            splits += answer.split
            reading.take(answer.records, self._clock.now())
            reading.holders.append(_Holder(contact, answer.held, len(answer.records), self._after(answer.records)))
            if enough.reached:
                crawl.stop()

        places = spread_places(self._chance.getrandbits(8 * PLACE_BYTES))
        crawl = Crawl(self._protocol, key, lambda: next(places), heard)
        await crawl.run()
        if not reading.holders:
            return _Found.NOTHING
        if splits * 2 > len(reading.holders):
            return _Found.CROWDED
        return _Found.ALL if await self._read_on(reading, enough) else _Found.SOME

    async def _read_on(self, reading: _Set, enough: Enough) -> bool:
        """Further pages, until there is enough or there are none; whether all was read.

        A liar may hold as many rows as he says: pages without news are not read for long.
        """
        idle = 0
        while not enough.reached and idle < MOST_IDLE_ROUNDS:
            more = reading.promising()
            if not more:
                return True
            more = self._chance.sample(more, min(len(more), HOLDERS_AT_A_TIME))
            before = len(reading.seen)
            await asyncio.gather(*(self._read_page(holder, reading) for holder in more))
            idle = idle + 1 if len(reading.seen) == before else 0
        return not enough.reached

    async def _read_page(self, holder: _Holder, reading: _Set) -> None:
        token = self._protocol.token_of(holder.contact.address)
        question = Get(reading.key, token, holder.place)
        answer = await self._protocol.asked(holder.contact, question, 0 if token else RECORDS_SIZE)
        if not isinstance(answer, GetAnswer) or not answer.records:
            holder.shown = holder.held
            return
        reading.take(answer.records, self._clock.now())
        holder.shown += len(answer.records)
        holder.place = self._after(answer.records)

    def _after(self, records: list[bytes]) -> bytes:
        """The place behind the last row of a page; by chance when its last one is none."""
        try:
            place = int.from_bytes(page_order(peek(records[-1]).public_key)) + 1
        except (AxonError, IndexError):
            return self._chance.randbytes(PLACE_BYTES)
        return (place & 0xFFFFFFFFFFFFFFFF).to_bytes(PLACE_BYTES)

    def _at_home(self, key: bytes) -> list[bytes]:
        """The rows that this node holds itself under a key."""
        page = self._protocol.storage.get(key, self._chance.randbytes(PLACE_BYTES), 64 * 1024, self._clock.now())
        rows: list[bytes] = page.rows
        return rows


def _groups(classes: list[str]) -> list[list[str]]:
    return [classes[at : at + RARE_AT_A_TIME] for at in range(0, len(classes), RARE_AT_A_TIME)]
