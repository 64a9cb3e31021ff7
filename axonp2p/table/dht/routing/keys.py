"""Where things stand in the DHT: 160-bit ids of nodes, rows and index sets, all derived from what they name."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha1

ID_BYTES = 20
DEEPEST = 24
"""The most bits by which a set may be split: 16 million shards."""

PAGE_ORDER_BYTES = 8
_GOLDEN_SECTION = 0x9E3779B97F4A7C15


def node_id(public_key: bytes) -> bytes:
    """The id of the DHT node that holds this 32-byte key: nobody may choose where he stands."""
    return _digest(b"axon/dht/node/" + public_key)


def row_key(public_key: bytes) -> bytes:
    """Where the row of the peer with this 32-byte key stands."""
    return _digest(b"axon/1/p/" + public_key)


def index_key(class_name: str, bits: str) -> bytes:
    """Where the rows of a class stand whose peers' shard bits begin with `bits` (a text of 0 and 1, empty for all)."""
    return _digest(f"axon/1/i/{class_name}/{bits}".encode())


def shard_bits(public_key: bytes, depth: int) -> str:
    """The first `depth` shard bits of a peer, as a text of 0 and 1."""
    whole = int.from_bytes(_digest(public_key)) >> (ID_BYTES * 8 - depth)
    return f"{whole:0{depth}b}" if depth else ""


def page_order(public_key: bytes) -> bytes:
    """By what the rows of a set are ordered when they are read page by page.

    It is the end of the hash whose beginning gives the shard, so that it is spread evenly inside every shard.
    """
    return _digest(public_key)[-PAGE_ORDER_BYTES:]


def spread_places(begin: int) -> Iterator[bytes]:
    """Places in a set (as `page_order` gives them) from `begin` on, any few in a row of which lie far from each other.

    Each is a golden section of the round further than the one before (Fibonacci hashing; Knuth, TAOCP 3, 6.4), so that
    readers who ask several holders get different rows.
    """
    while True:
        begin = (begin + _GOLDEN_SECTION) % 2 ** (8 * PAGE_ORDER_BYTES)
        yield begin.to_bytes(PAGE_ORDER_BYTES)


def _digest(data: bytes) -> bytes:
    # Kademlia's ids have 160 bits. They only spread; what must hold against forgers is signed with Ed25519.
    return sha1(data, usedforsecurity=False).digest()
