"""Classes: whoever meets a need stands in a class that is asked for it, and nowhere it does not belong."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from axonp2p.table.dht.records.compact import CompactRow, withdrawal_of
from axonp2p.table.dht.records.index_keys import (
    EVERYBODY,
    RowQuery,
    belongs,
    class_names,
    classes_for,
    environment_tags,
    meets,
    tags_needed,
    tier_of,
)
from axonp2p.table.dht.routing.keys import DEEPEST, index_key, row_key
from tests.unit.table.dht.rows import key_number, keys_of, row_of

ROW = row_of(key_number(1))
tags = st.sets(st.sampled_from(["jax0", "tensorflow2", "torch2", "transformers4"])).map(lambda t: tuple(sorted(t)))
sizes = st.integers(0, 20).map(lambda power: 2**power) | st.integers(0, 2**20)
some_rows = st.builds(
    row_of,
    st.just(key_number(1)),
    cores=st.integers(1, 512),
    memory_mb=sizes,
    gpu_memory_mb=st.just(0) | sizes,
    tags=tags,
)
wants = st.builds(
    RowQuery,
    cores=st.integers(1, 64),
    memory_mb=sizes,
    gpu_memory_mb=st.just(0) | sizes,
    tags=tags.map(lambda t: t[:2]),
)


@given(some_rows, wants)
def test_who_meets_a_need_is_in_a_class_that_is_asked(row: CompactRow, wanted: RowQuery) -> None:
    if meets(row, wanted):
        assert set(class_names(row)) & set(classes_for(wanted))


@given(some_rows, st.integers(0, DEEPEST))
def test_a_row_belongs_under_its_own_keys_only(row: CompactRow, depth: int) -> None:
    keys = keys_of(row, dict.fromkeys(class_names(row), depth))
    assert len(keys) == 2 + len(row.tags)
    assert all(belongs(row, key, depth) for key in keys.values())
    assert not any(belongs(row, key, depth + 1) for key in keys.values())
    assert belongs(row, row_key(row.public_key), 0)
    assert not belongs(row, row_key(row.public_key), 1)


def test_a_row_does_not_belong_elsewhere() -> None:
    other = row_of(key_number(2))
    assert not belongs(ROW, row_key(other.public_key), 0)
    assert not belongs(ROW, index_key("torch2|gpu24|7", ""), 0)
    assert not belongs(ROW, index_key("jax0|gpu0|3", ""), 0)
    assert not belongs(ROW, random.Random(1).randbytes(20), 0)
    wrong_shard = {"0": "1", "1": "0"}
    key = next(bits for bits in "01" if belongs(ROW, index_key(EVERYBODY, bits), 1))
    assert not belongs(ROW, index_key(EVERYBODY, wrong_shard[key]), 1)
    assert not belongs(ROW, index_key(EVERYBODY, ""), -1)
    assert not belongs(ROW, index_key(EVERYBODY, ""), DEEPEST + 1)


def test_a_withdrawn_row_stands_where_the_row_stood() -> None:
    left = withdrawal_of(ROW, 6, 0)
    assert keys_of(left, {}) == keys_of(ROW, {})
    assert not meets(left, RowQuery())


@pytest.mark.parametrize(
    ("cores", "memory_gib", "tier"),
    [(1, 1, 0), (2, 4, 1), (4, 8, 2), (4, 7.9, 1), (8, 16, 3), (16, 4, 1), (7, 64, 2), (512, 512, 7), (0, 0, 0)],
)
def test_tiers(cores: int, memory_gib: float, tier: int) -> None:
    assert tier_of(cores, int(memory_gib * 1024)) == tier


def test_near_classes_come_first() -> None:
    asked = classes_for(RowQuery(cores=4, memory_mb=8192))
    assert asked[:2] == ["any|gpu0|2", "any|gpu0|3"]
    assert asked[-1] == "any|gpu24|7"
    assert len(set(asked)) == len(asked) == 24
    assert classes_for(RowQuery(gpu_memory_mb=16 * 1024, tags=("torch2",)))[0] == "torch2|gpu12|0"


def test_who_takes_no_work_does_not_meet() -> None:
    assert meets(ROW, RowQuery())
    assert not meets(replace(ROW, flags=2), RowQuery())
    assert not meets(ROW, RowQuery(tags=("jax0",)))


def test_tags_of_an_environment() -> None:
    assert environment_tags({"torch": "2.13.0+cpu", "numpy": "2.4.6", "jax": "odd"}) == ("torch2",)
    assert environment_tags({}) == ()


@pytest.mark.parametrize(
    ("requirement", "tags"),
    [
        ("torch", ()),
        ("torch>=2", ()),
        ("torch>=2.1,<3", ("torch2",)),
        ("torch~=2.1", ("torch2",)),
        ("torch==2.13.0", ("torch2",)),
        ("torch==2.*", ("torch2",)),
        ("torch<2,>=1.9", ("torch1",)),
        ("torch!=2.0", ()),
        ("numpy==2.0", ()),
        ("Transformers>=4.30,<5", ("transformers4",)),
    ],
)
def test_tags_that_a_requirement_needs(requirement: str, tags: tuple[str, ...]) -> None:
    assert tags_needed([requirement]) == tags


@given(st.integers(0, 3), st.integers(0, 20), st.sampled_from([">=", "<=", "==", "~=", "<", ">", "!="]))
def test_who_meets_a_requirement_has_the_tags_it_needs(major: int, minor: int, operator: str) -> None:
    from packaging.specifiers import SpecifierSet

    for version in ("0.4.1", "1.0", "1.13.1", "2.0", "2.13.0", "3.1"):
        if SpecifierSet(f"{operator}{major}.{minor}").contains(version):
            needed = tags_needed([f"torch{operator}{major}.{minor}"])
            assert set(needed) <= set(environment_tags({"torch": version}))
