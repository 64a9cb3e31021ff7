"""Signed rows that one DHT node holds for others (pure): each where it belongs, within bounds, until it expires."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from heapq import heappop, heappush

from axonp2p.errors import AxonError
from axonp2p.table.dht.records.compact import CompactRow, open_compact, peek
from axonp2p.table.dht.records.index_keys import belongs
from axonp2p.table.dht.routing.contact import read_host
from axonp2p.table.dht.routing.keys import page_order
from axonp2p.transport.flow.address_tokens import AddressTokens
from axonp2p.transport.flow.rate_limit import RateLimit

MOST_SOURCES = 8192
"""The sources whose pace is remembered at once, here and by `protocol`."""

_OVERHEAD_OF_A_ROW = 3
"""Bytes that msgpack adds to each row of a page."""


@dataclass(frozen=True)
class StoreLimits:
    """How much a node holds."""

    keys: int = 20_000
    bytes: int = 16 * 1024 * 1024
    rows_a_set: int = 512
    split_above: int = 256
    """A set with more rows says so: writers go one bit deeper, readers too."""
    rows_a_network: int = 16
    """That one source network (/24, IPv6 /48) may have put into one set."""
    rows_a_network_in_all: int = 1000
    """That one source network may have put under all keys together."""
    rows_a_signer: int = 64
    """Of one peer, under all keys together."""
    puts_a_second: float = 50.0
    """Of one IP address; twice as many at once. Like the limit for networks it is not for local addresses."""


class StoreOutcome(Enum):
    """The answer to somebody that wants a row to be held."""

    STORED = "stored"
    OLDER = "older"
    """A newer one is here."""
    SPLIT = "split"
    """The set is crowded: put it one bit deeper. It may be held here as well, for this time."""
    FULL = "full"
    """No room, in all or for this sender; another holder may have some."""
    REFUSED = "refused"
    """It breaks a rule: see the reason."""


@dataclass(frozen=True)
class PutResult:
    """An outcome, and in a few words why."""

    outcome: StoreOutcome
    reason: str = ""


@dataclass(frozen=True)
class Page:
    """Some of the rows under a key, in the order of `keys.page_order`."""

    rows: list[bytes]
    """Signed compact rows, withdrawn ones too."""
    split: bool
    """Whether the set is crowded: more rows stand one bit deeper."""
    total: int
    """How many rows are under the key here."""


@dataclass(slots=True)
class _Held:
    data: bytes
    sequence: int
    served_until: int
    remembered_until: int
    """At least as long as any row of the peer that was here lives: what was superseded cannot come back."""
    network: bytes


@dataclass(slots=True)
class _Set:
    by_signer: dict[bytes, _Held] = field(default_factory=dict)
    order: list[tuple[bytes, bytes]] = field(default_factory=list)
    """(page order, signer), ascending."""
    networks: Counter[bytes] = field(default_factory=Counter)


class RecordStore:
    """Rows by key and signer. Times are Unix seconds; `secret` makes the tokens and never leaves."""

    def __init__(self, secret: bytes, limits: StoreLimits | None = None) -> None:
        self.tokens = AddressTokens(secret)
        """A caller that puts rows here must have heard an answer of this node."""
        self._limits = limits or StoreLimits()
        self._sets: dict[bytes, _Set] = {}
        self._signers: Counter[bytes] = Counter()
        self._bytes = 0
        self._rows = 0
        self._ends: list[tuple[int, bytes, bytes]] = []
        self._networks: Counter[bytes] = Counter()
        self._puts = RateLimit(self._limits.puts_a_second, 2 * self._limits.puts_a_second, MOST_SOURCES)

    def __len__(self) -> int:
        """How many rows are held."""
        return self._rows

    def put(self, key: bytes, depth: int, data: bytes, *, token: bytes, source: str, now: float) -> PutResult:
        """Hold a signed compact row under `key`, which is the row's own (`depth` 0) or an index key at `depth` bits.

        Of two rows of a peer the higher sequence stays, of two with the same sequence the one with the lower SHA-256.
        Never raises, whatever the bytes are.
        """
        if not self.tokens.knows(source, token, now):
            return PutResult(StoreOutcome.REFUSED, "no token of this node")
        # After the token: without it the source may be false, and its true owner shall not pay.
        host = read_host(source)
        if not host.local and not self._puts.allows(host.packed.hex(), now):
            return PutResult(StoreOutcome.FULL, "too many puts a second")
        self.expire(now)
        try:
            # The checks that cost nothing first; the signature, 60 us, last.
            seen = peek(data)
            if not belongs(seen, key, depth):
                return PutResult(StoreOutcome.REFUSED, "does not belong under this key")
            refused = self._refusal(key, seen, data, host.network)
            if refused is not None:
                return refused
            row = open_compact(data, now)
        except AxonError as error:
            return PutResult(StoreOutcome.REFUSED, error.message)
        if row.expires <= now:
            return PutResult(StoreOutcome.REFUSED, "has expired")
        return self._hold(key, row, data, b"" if host.local else host.network)

    def get(self, key: bytes, start: bytes, room: int, now: float) -> Page:
        """The rows under `key` from `start` on (as `keys.page_order` orders them, round and round), in `room` bytes.

        A reader begins at a chance place and goes on behind the last row's place; all holders have the same order.
        """
        self.expire(now)
        held = self._sets.get(key)
        if held is None:
            return Page([], False, 0)
        rows: list[bytes] = []
        begin = bisect_left(held.order, (start, b""))
        for index in range(begin, begin + len(held.order)):
            _, signer = held.order[index % len(held.order)]
            entry = held.by_signer[signer]
            if entry.served_until <= now:
                continue
            room -= len(entry.data) + _OVERHEAD_OF_A_ROW
            if room < 0:
                break
            rows.append(entry.data)
        return Page(rows, len(held.order) > self._limits.split_above, len(held.order))

    def expire(self, now: float) -> int:
        """Drop what has expired; how many rows that were."""
        dropped = 0
        while self._ends and self._ends[0][0] <= now:
            _, key, signer = heappop(self._ends)
            held = self._sets.get(key)
            entry = held.by_signer.get(signer) if held else None
            if held is None or entry is None:
                continue
            if entry.remembered_until > now:  # renewed meanwhile: one note a row, moved when it is due
                heappush(self._ends, (entry.remembered_until, key, signer))
                continue
            self._drop(key, held, signer, entry)
            dropped += 1
        return dropped

    # --- inside -----------------------------------------------------------------------------------

    def _refusal(self, key: bytes, row: CompactRow, data: bytes, network: bytes) -> PutResult | None:
        """Why the row cannot be held, as far as that shows before its signature is checked."""
        held = self._sets.get(key)
        known = held.by_signer.get(row.public_key) if held else None
        if known is not None:
            if row.sequence < known.sequence:
                return PutResult(StoreOutcome.OLDER, "a newer row is here")
            if row.sequence == known.sequence and sha256(data).digest() > sha256(known.data).digest():
                return PutResult(StoreOutcome.OLDER, "another row with this sequence is here")
            return None
        return self._lack_of_room(held, row, len(data), network)

    def _lack_of_room(self, held: _Set | None, row: CompactRow, size: int, network: bytes) -> PutResult | None:
        limits = self._limits
        if self._bytes + size > limits.bytes or (held is None and len(self._sets) >= limits.keys):
            return PutResult(StoreOutcome.FULL, "this node holds as much as it may")
        if self._signers[row.public_key] >= limits.rows_a_signer:
            return PutResult(StoreOutcome.FULL, "too many rows of this peer")
        if self._networks[network] >= limits.rows_a_network_in_all:
            return PutResult(StoreOutcome.FULL, "too many rows from this network in all")
        if held is None:
            return None
        if len(held.order) >= limits.rows_a_set:
            return PutResult(StoreOutcome.SPLIT, "the set is full")
        if held.networks[network] >= limits.rows_a_network:
            return PutResult(StoreOutcome.FULL, "too many rows from this network")
        return None

    def _hold(self, key: bytes, row: CompactRow, data: bytes, network: bytes) -> PutResult:
        held = self._sets.setdefault(key, _Set())
        known = held.by_signer.get(row.public_key)
        if known is not None:
            self._bytes += len(data) - len(known.data)
            known.data, known.sequence, known.served_until = data, row.sequence, row.expires
            known.remembered_until = max(known.remembered_until, row.expires)
            return PutResult(StoreOutcome.STORED)
        held.by_signer[row.public_key] = _Held(data, row.sequence, row.expires, row.expires, network)
        insort(held.order, (page_order(row.public_key), row.public_key))
        if network:
            held.networks[network] += 1
            self._networks[network] += 1
        self._signers[row.public_key] += 1
        self._bytes += len(data)
        self._rows += 1
        heappush(self._ends, (row.expires, key, row.public_key))
        crowded = len(held.order) > self._limits.split_above
        return PutResult(StoreOutcome.SPLIT, "the set is crowded") if crowded else PutResult(StoreOutcome.STORED)

    def _drop(self, key: bytes, held: _Set, signer: bytes, entry: _Held) -> None:
        del held.by_signer[signer]
        del held.order[bisect_left(held.order, (page_order(signer), signer))]
        _count_down(held.networks, entry.network)
        _count_down(self._networks, entry.network)
        _count_down(self._signers, signer)
        self._bytes -= len(entry.data)
        self._rows -= 1
        if not held.order:
            del self._sets[key]


def _count_down(counts: Counter[bytes], name: bytes) -> None:
    if name in counts:
        counts[name] -= 1
        if counts[name] <= 0:
            del counts[name]
