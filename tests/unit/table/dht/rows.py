"""Compact rows for tests."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import public_key_of
from axonp2p.table.dht.records.compact import CompactRow, pack_addresses
from axonp2p.table.dht.records.index_keys import class_names
from axonp2p.table.dht.routing.contact import Contact
from axonp2p.table.dht.routing.keys import index_key, shard_bits

NOW = 1_800_000_000.0


def key_number(number: int) -> PrivateKey:
    """Always the same key for a number."""
    return PrivateKey(number.to_bytes(32))


def row_of(key: PrivateKey, **changes: Any) -> CompactRow:
    """A sound row of `key` that lives for ten minutes."""
    fields: dict[str, Any] = {
        "public_key": public_key_of(key.peer_id),
        "packed_addresses": pack_addresses(["8.8.4.4:7071"]),
        "dht": 7071,
        "certificate": bytes(32),
        "sequence": 5,
        "expires": int(NOW) + 600,
        "cores": 8,
        "memory_mb": 16384,
        "gpu_memory_mb": 0,
        "tags": ("torch2",),
        "flags": 3,
        "packed_relays": (),
    }
    return CompactRow(**{**fields, **changes})


def contact_by(chance: random.Random, host: str = "") -> Contact:
    """A contact somewhere in the world, or at `host`."""
    parts = [str(chance.randint(low, high)) for low, high in ((11, 90), (0, 255), (0, 255), (1, 254))]
    return Contact(chance.randbytes(20), host or ".".join(parts), chance.randint(1, 65535))


def keys_of(row: CompactRow, depths: Mapping[str, int]) -> dict[str, bytes]:
    """Class -> the key where the row stands, at the class's depth in `depths` (0 where it has none)."""
    return {name: index_key(name, shard_bits(row.public_key, depths.get(name, 0))) for name in class_names(row)}
