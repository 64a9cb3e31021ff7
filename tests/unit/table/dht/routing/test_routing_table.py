"""Whom a node knows: the true nearest, no more of a network than is fair, and nobody dead for long."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.table.dht.routing.contact import Contact, network_of
from axonp2p.table.dht.routing.routing_table import ContactTable
from tests.unit.table.dht.rows import contact_by

OWN = bytes(20)


def distance(contact: Contact, target: bytes) -> int:
    return int.from_bytes(contact.id) ^ int.from_bytes(target)


def filled(seed: int, count: int, host: str = "") -> ContactTable:
    chance = random.Random(seed)
    table = ContactTable(chance.randbytes(20))
    for _ in range(count):
        table.add_contact(contact_by(chance, host), 0.0)
    return table


def near(number: int, host: str = "", prefix: bytes = b"\xff") -> Contact:
    """The contact with a number, in the half of all ids away from `OWN`."""
    return Contact(prefix + number.to_bytes(19), host or f"{11 + number // 250}.1.{number % 250}.1", 7071)


@pytest.mark.parametrize("count", [0, 1, 5, 19, 20, 21, 60, 400])
def test_the_search_is_exact(count: int) -> None:
    table = filled(count, count)
    chance = random.Random(7)
    known = table.contacts()
    assert len(known) == len(table) <= count
    for k in (1, 3, 8, 20):
        for target in (chance.randbytes(20), OWN, b"\xff" * 20, *(contact.id for contact in known[:3])):
            expected = sorted(known, key=lambda contact: distance(contact, target))
            assert table.nearest(target, k) == expected[:k]
            without = [contact for contact in expected if contact.id != target]
            assert table.nearest(target, k, exclude=target) == without[:k]


@given(st.integers(0, 10_000), st.integers(0, 120), st.binary(min_size=20, max_size=20))
def test_the_search_is_exact_in_any_table(seed: int, count: int, target: bytes) -> None:
    table = filled(seed, count, host="127.0.0.1")
    assert table.nearest(target, 8) == sorted(table.contacts(), key=lambda contact: distance(contact, target))[:8]


def test_the_neighbourhood_is_known_wholly() -> None:
    chance = random.Random(5)
    everybody = [contact_by(chance) for _ in range(500)]
    own = chance.randbytes(20)
    table = ContactTable(own)
    for contact in everybody:
        table.add_contact(contact, 0.0)
    assert table.nearest(own, 16) == sorted(everybody, key=lambda contact: distance(contact, own))[:16]
    assert 100 < len(table) < 300


def test_a_network_gets_two_of_a_bucket_and_ten_of_a_table() -> None:
    chance = random.Random(1)
    table = ContactTable(OWN)
    for _ in range(300):
        table.add_contact(contact_by(chance, f"8.8.4.{chance.randint(1, 254)}"), 0.0)
    assert len(table) <= 10
    for bucket in table.buckets:
        assert len(bucket.nodes) <= 2
    for _ in range(100):
        table.add_contact(contact_by(chance), 0.0)
    assert max(Counter(network_of(contact.ip) for contact in table.contacts()).values()) <= 10


def test_local_addresses_have_no_such_limit() -> None:
    assert len(filled(1, 300, "127.0.0.1")) > 60


def test_what_leaves_makes_room_for_its_network() -> None:
    table = ContactTable(OWN)
    for number in range(3):
        table.add_contact(near(number, f"8.8.4.{number + 1}"), 0.0)
    assert table.contacts() == [near(0, "8.8.4.1"), near(1, "8.8.4.2")]
    table.remove_contact(near(0, "8.8.4.1"))
    assert table.would_take(near(2, "8.8.4.3"))
    table.add_contact(near(2, "8.8.4.3"), 0.0)
    assert len(table) == 2


def test_one_contact_an_address_and_one_address_an_id() -> None:
    table = ContactTable(OWN)
    first, second = near(1, "8.8.4.4"), near(2, "8.8.4.4")
    moved = near(2, "9.9.9.9")
    table.add_contact(first, 0.0)
    table.add_contact(second, 0.0)
    assert table.contacts() == [second]
    table.add_contact(moved, 0.0)
    assert table.contacts() == [moved]
    assert table.knows(moved)
    assert not table.knows(second)
    assert table.find(moved.id) == moved
    assert table.find(first.id) is None


def full() -> ContactTable:
    """A table whose far half is in full buckets of two bits less."""
    table = ContactTable(OWN)
    for number in range(20):
        table.add_contact(near(number), float(number))
    for number in range(20):
        table.add_contact(near(number, f"40.1.{number}.1", b"\x00"), 100.0)
    return table


def test_a_full_bucket_lets_newcomers_wait_and_asks_after_its_oldest() -> None:
    table = full()
    for number in range(20):  # the far half may split once more, then no further
        table.add_contact(near(number, f"50.1.{number}.1", b"\xbf"), 100.0)
    before = len(table)
    newcomer = near(100)
    assert table.would_take(newcomer)
    assert table.add_contact(newcomer, 899.0) is None, "heard less than 15 minutes ago"
    assert len(table) == before
    assert table.add_contact(near(101), 1000.0) == near(0)
    assert table.add_contact(near(102), 1005.0) is None, "one question in ten seconds"
    assert table.add_contact(near(103), 1011.0) == near(0)
    table.heard(near(0), 1012.0)
    assert table.add_contact(near(104), 1030.0) == near(1)


def test_the_second_silence_in_a_row_evicts_and_the_latest_replacement_moves_up() -> None:
    table = full()
    for number in range(20):
        table.add_contact(near(number, f"50.1.{number}.1", b"\xbf"), 100.0)
    for number in (100, 101):
        table.add_contact(near(number), 50.0)
    assert not table.failed(near(5))
    table.heard(near(5), 60.0)
    assert not table.failed(near(5))
    assert table.knows(near(5))
    assert table.failed(near(5))
    assert not table.knows(near(5))
    assert table.knows(near(101))
    assert not table.knows(near(100))


def test_a_silent_contact_that_nobody_replaces_goes_too() -> None:
    table = ContactTable(OWN)
    table.add_contact(near(1), 0.0)
    assert not table.failed(near(2))
    assert not table.failed(near(1))
    assert table.failed(near(1))
    assert len(table) == 0


def test_no_place_for_itself() -> None:
    table = ContactTable(OWN)
    itself = Contact(OWN, "8.8.4.4", 1)
    assert not table.would_take(itself)
    assert table.add_contact(itself, 0.0) is None
    assert len(table) == 0


def test_a_known_contact_needs_no_challenge_and_is_only_heard() -> None:
    table = full()
    assert not table.would_take(near(3))
    before = table.contacts()
    assert table.add_contact(near(3), 50.0) is None
    assert sorted(contact.id for contact in table.contacts()) == sorted(contact.id for contact in before)


def test_ranges_without_look_ups_are_refreshed_once_an_hour() -> None:
    table = filled(2, 200)
    chance = random.Random(3)
    assert table.refresh_targets(3599.0, chance) == []
    targets = table.refresh_targets(3600.0, chance)
    assert len(targets) == len(table.buckets)
    for target, bucket in zip(targets, table.buckets, strict=True):
        assert bucket.low <= int.from_bytes(target) < bucket.low + 2**bucket.bits
        table.touch(target, 3600.0)
    assert table.refresh_targets(3700.0, chance) == []


moves = st.lists(
    st.tuples(st.sampled_from(["add", "fail", "remove", "hear"]), st.integers(0, 60), st.integers(0, 5)), max_size=150
)


@given(moves)
def test_all_that_is_counted_stays_true(steps: list[tuple[str, int, int]]) -> None:
    table = ContactTable(OWN, bucket_size=3)
    for at, (move, number, host) in enumerate(steps):
        contact = Contact(bytes([number * 4]) * 20, f"8.8.{host}.{number % 3 + 1}", 1000 + number // 7)
        if move == "add":
            table.add_contact(contact, float(at))
        elif move == "fail":
            table.failed(contact)
        elif move == "remove":
            table.remove_contact(contact)
        else:
            table.heard(contact, float(at))
        inside = [other for bucket in table.buckets for other in bucket.nodes.values()]
        assert sorted(other.id for other in inside) == sorted(other.id for other in table.contacts())
        assert len(table) == len(inside) == len({other.address for other in inside})
        networks = Counter(network_of(other.ip) for other in inside)
        assert max(networks.values(), default=0) <= 10
        for bucket in table.buckets:
            assert len(bucket.nodes) <= 3
            assert all(bucket.low <= other.long_id < bucket.low + 2**bucket.bits for other in bucket.nodes.values())
            assert max(Counter(network_of(o.ip) for o in bucket.nodes.values()).values(), default=0) <= 2
