"""What a node holds: true rows in their places, within bounds, and never an old one again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.table.dht.records.compact import CompactRow, open_compact, sign_compact, withdrawal_of
from axonp2p.table.dht.records.index_keys import EVERYBODY
from axonp2p.table.dht.records.record_store import PutResult, RecordStore, StoreLimits, StoreOutcome
from axonp2p.table.dht.routing.keys import index_key, page_order, row_key, shard_bits
from tests.unit.table.dht.rows import NOW, key_number, keys_of, row_of

HERE = "10.0.0.1"
ALL = index_key(EVERYBODY, "")


def put(
    store: RecordStore,
    number: int,
    key: bytes = ALL,
    depth: int = 0,
    source: str = HERE,
    now: float = NOW,
    **row: object,
) -> PutResult:
    signer = key_number(number)
    data = sign_compact(signer, row_of(signer, **row))
    return store.put(key, depth, data, token=store.tokens.token_for(source, now), source=source, now=now)


def rows_in(store: RecordStore, key: bytes = ALL, now: float = NOW) -> list[CompactRow]:
    return [open_compact(data, now) for data in store.get(key, bytes(8), 10**6, now).rows]


@pytest.fixture
def store() -> RecordStore:
    return RecordStore(b"secret")


def test_a_row_is_held_under_each_of_its_keys(store: RecordStore) -> None:
    row = row_of(key_number(1))
    keys = [row_key(row.public_key), *keys_of(row, {}).values()]
    assert [put(store, 1, key).outcome for key in keys] == [StoreOutcome.STORED] * 4
    assert all(rows_in(store, key) == [row] for key in keys)
    assert len(store) == 4


def test_nothing_without_a_token_of_this_node_for_this_address_and_time(store: RecordStore) -> None:
    data = sign_compact(key_number(1), row_of(key_number(1)))
    others = [
        b"",
        bytes(8),
        RecordStore(b"other").tokens.token_for(HERE, NOW),
        store.tokens.token_for("10.0.0.2", NOW),
        store.tokens.token_for(HERE, NOW - 600),
        store.tokens.token_for(HERE, NOW + 300),
    ]
    for token in others:
        assert store.put(ALL, 0, data, token=token, source=HERE, now=NOW).outcome is StoreOutcome.REFUSED
    yesterday = store.tokens.token_for(HERE, NOW - 300)
    assert store.put(ALL, 0, data, token=yesterday, source=HERE, now=NOW).outcome is StoreOutcome.STORED


def test_unsigned_stale_and_misplaced_rows_are_refused(store: RecordStore) -> None:
    assert put(store, 1, random.Random(1).randbytes(20)).outcome is StoreOutcome.REFUSED
    assert put(store, 1, ALL, depth=1).outcome is StoreOutcome.REFUSED
    assert put(store, 1, expires=int(NOW) - 60).outcome is StoreOutcome.REFUSED
    assert put(store, 1, expires=int(NOW)).outcome is StoreOutcome.REFUSED
    assert put(store, 1, expires=int(NOW) + 9000).outcome is StoreOutcome.REFUSED
    data = bytearray(sign_compact(key_number(1), row_of(key_number(1))))
    data[0] ^= 1
    token = store.tokens.token_for(HERE, NOW)
    assert store.put(ALL, 0, bytes(data), token=token, source=HERE, now=NOW).outcome is StoreOutcome.REFUSED
    assert len(store) == 0


@given(st.binary(max_size=400), st.binary(min_size=20, max_size=20), st.integers(-5, 200))
def test_whatever_the_bytes_are_putting_never_raises(data: bytes, key: bytes, depth: int) -> None:
    store = RecordStore(b"secret")
    token = store.tokens.token_for(HERE, NOW)
    assert store.put(key, depth, data, token=token, source=HERE, now=NOW).outcome is StoreOutcome.REFUSED


def test_the_highest_sequence_stays(store: RecordStore) -> None:
    assert put(store, 1, sequence=7, cores=8).outcome is StoreOutcome.STORED
    assert put(store, 1, sequence=6, cores=8).outcome is StoreOutcome.OLDER
    assert put(store, 1, sequence=7, cores=8).outcome is StoreOutcome.STORED
    assert put(store, 1, sequence=8, cores=9).outcome is StoreOutcome.STORED
    assert [row.cores for row in rows_in(store)] == [9]
    assert len(store) == 1


@given(st.permutations([10, 11, 12, 13]))
@settings(max_examples=24)
def test_of_two_rows_with_one_number_all_nodes_keep_the_same(order: list[int]) -> None:
    store = RecordStore(b"secret")
    for cores in order:
        put(store, 1, cores=cores)
    first = RecordStore(b"secret")
    for cores in (10, 11, 12, 13):
        put(first, 1, cores=cores)
    assert rows_in(store) == rows_in(first)


def test_who_left_does_not_come_back(store: RecordStore) -> None:
    row = row_of(key_number(1))
    put(store, 1)
    left = sign_compact(key_number(1), withdrawal_of(row, row.sequence + 1, int(NOW) + 60))
    store.put(ALL, 0, left, token=store.tokens.token_for(HERE, NOW), source=HERE, now=NOW)
    assert put(store, 1).outcome is StoreOutcome.OLDER
    assert [row.withdrawn for row in rows_in(store)] == [True]


def test_a_newer_row_that_ends_sooner_still_keeps_the_old_one_out(store: RecordStore) -> None:
    put(store, 1, sequence=5, expires=int(NOW) + 600)
    put(store, 1, sequence=6, expires=int(NOW) + 100)
    assert rows_in(store, now=NOW + 200) == []
    assert put(store, 1, sequence=5, now=NOW + 200).outcome is StoreOutcome.OLDER
    assert store.expire(NOW + 600) == 1
    assert len(store) == 0


def test_what_has_expired_is_not_served_and_leaves_nothing_behind(store: RecordStore) -> None:
    for number in range(1, 6):
        put(store, number, expires=int(NOW) + 100 * number)
    assert len(rows_in(store, now=NOW + 300)) == 2
    assert len(store) == 2
    put(store, 4, sequence=6, expires=int(NOW) + 1000, now=NOW + 300)
    assert len(rows_in(store, now=NOW + 500)) == 1
    assert store.expire(NOW + 1000) == 1
    assert store.get(ALL, bytes(8), 1000, NOW + 1000).total == 0


def test_pages_follow_each_other_and_go_round(store: RecordStore) -> None:
    for number in range(1, 31):
        put(store, number)
    start, seen = b"\x80" + bytes(7), []
    for _ in range(30):
        page = store.get(ALL, start, 1100, NOW)
        assert sum(map(len, page.rows)) <= 1100
        assert page.total == 30
        seen += [open_compact(data, NOW).public_key for data in page.rows]
        start = (int.from_bytes(page_order(seen[-1])) + 1).to_bytes(8)
        if len(seen) >= 30:
            break
    assert len(set(seen[:30])) == 30
    assert seen[30:] == seen[: len(seen) - 30]


def test_no_room_no_rows(store: RecordStore) -> None:
    put(store, 1)
    page = store.get(ALL, bytes(8), 0, NOW)
    assert page.rows == []
    assert page.total == 1


def test_a_crowded_set_says_so_and_sends_new_ones_deeper() -> None:
    store = RecordStore(b"secret", StoreLimits(rows_a_set=12, split_above=8))
    outcomes = [put(store, number).outcome for number in range(1, 16)]
    assert outcomes == [StoreOutcome.STORED] * 8 + [StoreOutcome.SPLIT] * 7
    assert store.get(ALL, bytes(8), 1000, NOW).split
    assert store.get(ALL, bytes(8), 1000, NOW).total == 12
    assert put(store, 1, sequence=6).outcome is StoreOutcome.STORED
    deeper = index_key(EVERYBODY, shard_bits(row_of(key_number(15)).public_key, 1))
    assert put(store, 15, deeper, depth=1).outcome is StoreOutcome.STORED
    assert not store.get(deeper, bytes(8), 1000, NOW).split


def test_one_network_cannot_fill_a_set(store: RecordStore) -> None:
    outcomes = [put(store, number, source=f"8.8.4.{number}").outcome for number in range(1, 20)]
    assert outcomes == [StoreOutcome.STORED] * 16 + [StoreOutcome.FULL] * 3
    assert put(store, 20, source="8.8.5.1").outcome is StoreOutcome.STORED
    assert put(store, 1, source="8.8.4.1", sequence=6).outcome is StoreOutcome.STORED
    assert put(store, 19, source="8.8.4.19", now=NOW + 600, expires=int(NOW) + 900).outcome is StoreOutcome.STORED


def test_one_address_cannot_put_without_end(store: RecordStore) -> None:
    outcomes = [put(store, 1, source="8.8.4.1", sequence=number).outcome for number in range(1, 111)]
    assert outcomes == [StoreOutcome.STORED] * 100 + [StoreOutcome.FULL] * 10
    assert put(store, 1, source="8.8.4.1", sequence=200, now=NOW + 1).outcome is StoreOutcome.STORED
    assert put(store, 1, source="8.8.4.2", sequence=201).outcome is StoreOutcome.STORED


def test_bounds_of_the_whole() -> None:
    few_keys = RecordStore(b"secret", StoreLimits(keys=3))
    outcomes = [put(few_keys, n, row_key(row_of(key_number(n)).public_key)).outcome for n in range(1, 6)]
    assert outcomes == [StoreOutcome.STORED] * 3 + [StoreOutcome.FULL] * 2
    few_bytes = RecordStore(b"secret", StoreLimits(bytes=600))
    assert [put(few_bytes, n).outcome for n in range(1, 6)] == [StoreOutcome.STORED] * 3 + [StoreOutcome.FULL] * 2
    few_of_a_network = RecordStore(b"secret", StoreLimits(rows_a_network_in_all=2))
    keys = [row_key(row_of(key_number(n)).public_key) for n in range(1, 4)]
    outcomes = [put(few_of_a_network, n, key, source="8.8.4.4").outcome for n, key in enumerate(keys, 1)]
    assert outcomes == [StoreOutcome.STORED, StoreOutcome.STORED, StoreOutcome.FULL]
    assert put(few_of_a_network, 3, keys[2], source="8.8.5.5").outcome is StoreOutcome.STORED
    few_rows = RecordStore(b"secret", StoreLimits(rows_a_signer=2))
    keys = list(keys_of(row_of(key_number(1)), {}).values())
    assert [put(few_rows, 1, key).outcome for key in keys] == [
        StoreOutcome.STORED,
        StoreOutcome.STORED,
        StoreOutcome.FULL,
    ]


steps = st.tuples(
    st.integers(1, 4),  # signer
    st.integers(1, 8),  # sequence
    st.integers(1, 60),  # seconds that the row lives
    st.integers(0, 40),  # seconds that pass before
    st.sampled_from(["10.0.0.1", "8.8.4.1", "9.9.9.9"]),
)


@given(st.lists(steps, max_size=30))
def test_whatever_comes_no_superseded_or_expired_row_is_served(
    given_steps: list[tuple[int, int, int, int, str]],
) -> None:
    store = RecordStore(b"secret")
    now, stored = int(NOW), {}
    for number, sequence, life, passed, source in given_steps:
        now += passed
        if (
            put(store, number, source=source, now=now, sequence=sequence, expires=now + life).outcome
            is StoreOutcome.STORED
        ):
            before, alive_until = stored.get(number, (0, 0))
            assert sequence >= before or alive_until <= now
            stored[number] = sequence, max(alive_until, now + life)
        for row in rows_in(store, now=now):
            assert row.expires > now
        assert len(store) <= 4
    assert store.expire(now + 61) == len(stored) or len(store) == 0
    assert len(store) == 0
    assert store.get(ALL, bytes(8), 1000, now + 61).total == 0
