"""How the hashes of a Merkle tree lie on a disk: in tiles of up to 64 (pure).

Tile (0, i) holds the hashes of the leaves from 64 * i on, tile (h, i) those of the complete subtrees of 64**h leaves
from the 64 * i-th on. A node between them is hashed again from at most 63 others. So a log has a row for 64 entries
instead of one for each node, an append writes the last tile of each of its log64(n) levels, and a proof reads as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axonp2p.errors import LogDamaged
from axonp2p.ledger.merkle import HASH_BYTES, Node, parent_hash

TILE_LEVELS = 6
TILE_HASHES = 1 << TILE_LEVELS
TILE_BYTES = TILE_HASHES * HASH_BYTES

Place = tuple[int, int]
"""Height and index of a tile."""
Read = Callable[[int, int], bytes]
"""The hashes in a tile, one after the other; empty for one that is not there."""


def node_reader(read: Read) -> Node:
    """Hashes of complete subtrees out of tiles; a tile that is asked for twice is read once."""
    known: dict[Place, bytes] = {}

    def node(level: int, index: int) -> bytes:
        height, inside = divmod(level, TILE_LEVELS)
        first = index << inside
        place = (height, first // TILE_HASHES)
        if place not in known:
            known[place] = read(*place)
        begin = first % TILE_HASHES * HASH_BYTES
        part = known[place][begin : begin + (HASH_BYTES << inside)]
        if len(part) != HASH_BYTES << inside:
            leaf = first // TILE_HASHES * TILE_HASHES << height * TILE_LEVELS
            raise LogDamaged(f"the log lacks the hashes of its entries from {leaf} on")
        return _joined(part)

    return node


def leaf_at(number: int, read: Read) -> bytes:
    """The hash of one entry."""
    return node_reader(read)(0, number)


def tiles_after(size: int, leaves: Sequence[bytes], read: Read) -> dict[Place, bytes]:
    """The tiles that change, whole, when a log of `size` entries gets entries with these leaf hashes."""
    changed: dict[Place, bytes] = {}
    height, first, new = 0, size, list(leaves)
    while new:
        full: list[bytes] = []
        index, inside = divmod(first, TILE_HASHES)
        taken = 0
        while taken < len(new):
            before = read(height, index)[: inside * HASH_BYTES] if inside else b""
            if len(before) != inside * HASH_BYTES:
                raise LogDamaged(f"the log lacks hashes of its last {size} entries, at height {height}")
            some = new[taken : taken + TILE_HASHES - inside]
            tile = changed[height, index] = before + b"".join(some)
            if len(tile) == TILE_BYTES:
                full.append(_joined(tile))
            taken += len(some)
            index, inside = index + 1, 0
        height, first, new = height + 1, first // TILE_HASHES, full
    return changed


def _joined(hashes: bytes) -> bytes:
    """The root over a power of two of hashes."""
    level = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
    while len(level) > 1:
        level = [parent_hash(level[at], level[at + 1]) for at in range(0, len(level), 2)]
    return level[0]
