"""Trees beside the recursive definition of RFC 9162, and the vectors of Certificate Transparency."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import LogDamaged
from axonp2p.ledger.merkle import (
    consistency_path,
    inclusion_path,
    is_consistent,
    is_included,
    leaf_hash,
    root,
)
from axonp2p.ledger.tiles import TILE_BYTES, node_reader, tiles_after

VECTORS = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
HEADS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


# --- RFC 9162, 2.1, word for word -----------------------------------------------------------------


def split(count: int) -> int:
    k = 1
    while 2 * k < count:
        k *= 2
    return k


def mth(entries: list[bytes]) -> bytes:
    if not entries:
        return sha256(b"").digest()
    if len(entries) == 1:
        return sha256(b"\0" + entries[0]).digest()
    k = split(len(entries))
    return sha256(b"\1" + mth(entries[:k]) + mth(entries[k:])).digest()


def path(m: int, entries: list[bytes]) -> list[bytes]:
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if m < k:
        return [*path(m, entries[:k]), mth(entries[k:])]
    return [*path(m - k, entries[k:]), mth(entries[:k])]


def subproof(m: int, entries: list[bytes], whole: bool) -> list[bytes]:
    if m == len(entries):
        return [] if whole else [mth(entries)]
    k = split(len(entries))
    if m <= k:
        return [*subproof(m, entries[:k], whole), mth(entries[k:])]
    return [*subproof(m - k, entries[k:], False), mth(entries[:k])]


class Log:
    """Tiles in a dictionary."""

    def __init__(self) -> None:
        self.tiles: dict[tuple[int, int], bytes] = {}
        self.size = 0
        self.read = 0

    def append(self, *entries: bytes) -> None:
        leaves = [leaf_hash(entry) for entry in entries]
        self.tiles |= tiles_after(self.size, leaves, self.read_tile)
        self.size += len(entries)

    def node(self, level: int, index: int) -> bytes:
        return node_reader(self.read_tile)(level, index)

    def read_tile(self, height: int, index: int) -> bytes:
        self.read += 1
        return self.tiles.get((height, index), b"")


def log_of(*entries: bytes, at_once: int = 1_000_000) -> Log:
    log = Log()
    for start in range(0, len(entries), at_once):
        log.append(*entries[start : start + at_once])
    return log


def numbered(count: int) -> list[bytes]:
    return [b"entry %d" % number for number in range(count)]


# --------------------------------------------------------------------------------------------------


def test_the_heads_of_certificate_transparencys_vectors():
    for count, head in enumerate(HEADS, start=1):
        assert root(count, log_of(*VECTORS).node).hex() == head
    assert root(0, Log().node).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_paths_of_certificate_transparencys_vectors():
    log = log_of(*VECTORS)
    assert [step.hex()[:8] for step in inclusion_path(5, 8, log.node)] == ["bc1a0643", "ca854ea1", "d37ee418"]
    assert [step.hex()[:8] for step in inclusion_path(2, 3, log.node)] == ["fac54203"]
    assert [step.hex()[:8] for step in consistency_path(1, 8, log.node)] == ["96a296d2", "5f083f0a", "6b47aaf2"]
    assert [step.hex()[:8] for step in consistency_path(6, 8, log.node)] == ["0ebc5d34", "ca854ea1", "d37ee418"]
    assert [step.hex()[:8] for step in consistency_path(2, 5, log.node)] == ["5f083f0a", "bc1a0643"]


@given(st.lists(st.binary(max_size=40), max_size=200), st.integers(1, 90), st.data())
def test_as_the_definition_has_it(entries: list[bytes], at_once: int, data: st.DataObject):
    log = log_of(*entries, at_once=at_once)
    size = data.draw(st.integers(0, len(entries)))
    head = root(size, log.node)
    assert head == mth(entries[:size])
    first = data.draw(st.integers(0, size))
    if first:
        proof = consistency_path(first, size, log.node)
        assert proof == subproof(first, entries[:size], True)
        assert is_consistent(first, mth(entries[:first]), size, head, proof)
    if size:
        number = data.draw(st.integers(0, size - 1))
        steps = inclusion_path(number, size, log.node)
        assert steps == path(number, entries[:size])
        assert is_included(leaf_hash(entries[number]), number, size, steps, head)


@given(st.integers(2, 150), st.data())
def test_no_other_entry_place_or_path_is_proved(size: int, data: st.DataObject):
    log = log_of(*numbered(size))
    number = data.draw(st.integers(0, size - 1))
    head, steps = root(size, log.node), inclusion_path(number, size, log.node)
    other = data.draw(st.integers(0, size + 70).filter(lambda one: one != number))
    leaf = leaf_hash(b"entry %d" % number)
    assert not is_included(leaf_hash(b"another"), number, size, steps, head)
    assert not is_included(leaf, other, size, steps, head)
    assert not is_included(leaf, number, size, [*steps, head], head)
    assert not is_included(leaf, number, size, steps[:-1], head)
    at = data.draw(st.integers(0, len(steps) - 1))
    assert not is_included(leaf, number, size, [*steps[:at], flipped(steps[at]), *steps[at + 1 :]], head)


@given(st.integers(2, 150), st.data())
def test_a_rewritten_log_is_consistent_with_nothing_that_came_before(size: int, data: st.DataObject):
    entries = numbered(size)
    first = data.draw(st.integers(1, size - 1))
    changed = data.draw(st.integers(0, first - 1))
    honest = log_of(*entries)
    entries[changed] += b"!"
    rewritten = log_of(*entries)
    before = root(first, honest.node)
    for steps in (consistency_path(first, size, honest.node), consistency_path(first, size, rewritten.node)):
        assert not is_consistent(first, before, size, root(size, rewritten.node), steps)
    assert not is_consistent(first, before, size, root(size, honest.node), [])
    good = consistency_path(first, size, honest.node)
    assert not is_consistent(first, before, size, root(size, honest.node), [*good, before])
    assert not is_consistent(size, root(size, honest.node), first, before, good)


def test_an_append_and_a_proof_touch_a_few_tiles_however_long_the_log():
    log = log_of(*numbered(64**3 + 1), at_once=50_000)
    log.read = 0
    log.append(b"one more")
    assert log.read <= 4
    for ask in (
        lambda node: inclusion_path(4_242, log.size, node),
        lambda node: consistency_path(70_000, log.size, node),
    ):
        log.read = 0
        ask(node_reader(log.read_tile))
        assert log.read <= 2 * 4
    assert max(map(len, log.tiles.values())) == TILE_BYTES


def test_hashes_that_are_lacking_are_named():
    log = log_of(*numbered(200))
    del log.tiles[0, 2]
    with pytest.raises(LogDamaged, match="from 128 on"):
        inclusion_path(130, 200, log.node)
    with pytest.raises(LogDamaged):
        tiles_after(200, [leaf_hash(b"")], lambda height, index: b"")


def test_there_is_no_proof_of_what_is_not_there():
    log = log_of(*VECTORS)
    for number in (-1, 8):
        with pytest.raises(ValueError, match="no entry"):
            inclusion_path(number, 8, log.node)
    with pytest.raises(ValueError, match="come before"):
        consistency_path(9, 8, log.node)


def flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]
