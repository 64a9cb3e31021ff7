"""Merkle trees as RFC 9162 has them (pure): tree heads, inclusion and consistency proofs, and their verification.

The maker of a root or a proof says through `node(level, index)` what is stored: the hash over the complete subtree of
2**level leaves that begins at leaf index * 2**level. A log of n entries is asked for O(log n) of them. Complete
subtrees never change when a log grows, so nothing that was stored is ever written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

HASH_BYTES = 32
LONGEST_PATH = 64
"""Hashes in a proof about a log of less than 2**63 entries."""
EMPTY_ROOT = sha256().digest()

Node = Callable[[int, int], bytes]


def leaf_hash(entry: bytes) -> bytes:
    """An entry's hash. Its prefix differs from that of inner nodes: none of these can pass for an entry."""
    return sha256(b"\x00" + entry).digest()


def parent_hash(left: bytes, right: bytes) -> bytes:
    """The hash over two subtrees."""
    return sha256(b"\x01" + left + right).digest()


def root(size: int, node: Node) -> bytes:
    """The tree head of the first `size` entries."""
    return _over(0, size, node) if size else EMPTY_ROOT


def inclusion_path(number: int, size: int, node: Node) -> list[bytes]:
    """The proof that entry `number` (from 0) is one of the first `size`, the leaf's neighbour first."""
    if not 0 <= number < size:
        raise ValueError(f"no entry {number} among {size}")
    path = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _left_part(end - begin)
        if number < middle:
            path.append(_over(middle, end, node))
            end = middle
        else:
            path.append(_over(begin, middle, node))
            begin = middle
    return path[::-1]


def consistency_path(first: int, second: int, node: Node) -> list[bytes]:
    """The proof that the log of `second` entries begins with that of `first`; empty when they are one."""
    if not 0 <= first <= second:
        raise ValueError(f"{first} entries cannot come before {second}")
    path = []
    begin, end = 0, second
    while first not in (0, end):
        middle = begin + _left_part(end - begin)
        if first <= middle:
            path.append(_over(middle, end, node))
            end = middle
        else:
            path.append(_over(begin, middle, node))
            begin = middle
    if begin:  # else the verifier has the hash already: it is the first head
        path.append(_over(begin, end, node))
    return path[::-1]


def is_included(leaf: bytes, number: int, size: int, path: Sequence[bytes], head: bytes) -> bool:
    """Whether `path` proves that the entry with this leaf hash is entry `number` under `head` (RFC 9162, 2.1.3.2)."""
    if not 0 <= number < size:
        return False
    at, last, found = number, size - 1, leaf
    for beside in path:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = parent_hash(beside, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = parent_hash(found, beside)
        at, last = at >> 1, last >> 1
    return last == 0 and found == head


def is_consistent(first: int, first_head: bytes, second: int, second_head: bytes, path: Sequence[bytes]) -> bool:
    """Whether `path` proves that the second log begins with the first one (RFC 9162, 2.1.4.2)."""
    if first > second or first < 0:
        return False
    if first == 0:
        return not path and first_head == EMPTY_ROOT
    if first == second:
        return not path and first_head == second_head
    steps = list(path) if first & (first - 1) else [first_head, *path]
    if not steps:
        return False
    at, last = first - 1, second - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old = new = steps[0]
    for beside in steps[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old, new = parent_hash(beside, old), parent_hash(beside, new)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            new = parent_hash(new, beside)
        at, last = at >> 1, last >> 1
    return last == 0 and old == first_head and new == second_head


def _left_part(count: int) -> int:
    """The largest power of two below `count`, which is at least 2."""
    return 1 << (count - 1).bit_length() - 1


def _over(begin: int, end: int, node: Node) -> bytes:
    """The hash over these entries; `begin` is where RFC 9162 cuts, so complete subtrees lie side by side from there."""
    parts = []
    while begin < end:
        level = (end - begin).bit_length() - 1
        parts.append(node(level, begin >> level))
        begin += 1 << level
    found = parts.pop()
    while parts:
        found = parent_hash(parts.pop(), found)
    return found
