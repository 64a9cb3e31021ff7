"""A look-up: nearest first, nobody waited for in vain, no network in the majority."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.table.dht.routing.contact import Contact, network_of
from axonp2p.table.dht.routing.lookup import Lookup
from tests.unit.table.dht.rows import contact_by

TARGET = bytes(20)


def place(number: int, host: str = "") -> Contact:
    """A contact at this distance from the target, each in a network of its own."""
    return Contact(number.to_bytes(20), host or f"{20 + number // 250}.7.{number % 250}.1", 7071)


def test_the_nearest_are_asked_first_and_not_more_at_a_time_than_allowed() -> None:
    lookup = Lookup(TARGET, [place(n) for n in (9, 3, 7, 1, 5)], alpha=3)
    assert lookup.next() == [place(1), place(3), place(5)]
    assert lookup.next() == []
    lookup.answered(place(3), [place(2)])
    assert lookup.next() == [place(2)]
    lookup.failed(place(1))
    assert lookup.next() == [place(7)]
    assert not lookup.done


def test_it_ends_when_the_nearest_have_answered() -> None:
    lookup = Lookup(TARGET, [place(n) for n in range(1, 30)], alpha=4, width=8)
    for _ in range(2):
        for contact in lookup.next():
            lookup.answered(contact, [])
    assert lookup.done
    assert lookup.next() == []
    assert lookup.nearest == [place(n) for n in range(1, 9)]


def test_a_slow_one_frees_its_place_and_still_counts_when_it_answers() -> None:
    lookup = Lookup(TARGET, [place(n) for n in range(1, 4)], alpha=1, width=2)
    assert lookup.next() == [place(1)]
    lookup.slow(place(1))
    assert lookup.next() == [place(2), place(3)], "its own place, and one more as somebody was lost"
    lookup.answered(place(2), [])
    assert not lookup.done
    lookup.answered(place(1), [])
    assert lookup.done
    assert lookup.nearest == [place(1), place(2)]


def test_where_many_are_lost_more_are_asked_at_a_time() -> None:
    lookup = Lookup(TARGET, [place(n) for n in range(1, 100)], alpha=4)
    at_a_time, under_way = [], 0
    for _ in range(6):
        asked = lookup.next()
        under_way += len(asked)
        at_a_time.append(under_way)
        for contact in asked:
            lookup.slow(contact)
            under_way -= 1
    assert at_a_time == [4, 8, 12, 12, 12, 12]


def test_the_end_does_not_wait_for_slow_ones_when_enough_have_answered() -> None:
    lookup = Lookup(TARGET, [place(n) for n in range(1, 6)], alpha=3, width=2)
    lookup.next()
    lookup.slow(place(1))
    lookup.answered(place(2), [])
    lookup.answered(place(3), [])
    assert lookup.done
    assert lookup.nearest == [place(2), place(3)]


def test_when_too_few_have_answered_slow_ones_are_waited_for() -> None:
    lookup = Lookup(TARGET, [place(1), place(2)])
    lookup.next()
    lookup.answered(place(1), [])
    lookup.slow(place(2))
    assert not lookup.done
    lookup.failed(place(2))
    assert lookup.done
    assert lookup.nearest == [place(1)]


def test_nobody_to_ask_is_an_end() -> None:
    assert Lookup(TARGET, []).done
    lookup = Lookup(TARGET, [place(1)])
    lookup.next()
    lookup.failed(place(1))
    assert lookup.done
    assert lookup.nearest == []


def test_what_is_told_twice_or_of_strangers_changes_nothing() -> None:
    lookup = Lookup(TARGET, [place(1), place(2), place(3)], alpha=2)
    lookup.next()
    for _ in range(2):
        lookup.slow(place(1))
        lookup.failed(place(2))
        lookup.failed(place(99))
        lookup.answered(place(98), [place(1)])
    assert lookup.next() == [place(3)]
    assert lookup.next() == []
    assert not lookup.done


def test_it_does_not_ask_itself() -> None:
    lookup = Lookup(TARGET, [place(1), place(2)], own_id=place(1).id)
    assert lookup.next() == [place(2)]


def test_two_of_a_network_at_most() -> None:
    near = [place(n, f"8.8.4.{n}") for n in range(1, 21)]
    honest = [place(n) for n in range(100, 120)]
    lookup = Lookup(TARGET, [*near, *honest])
    while not lookup.done:
        for contact in lookup.next():
            lookup.answered(contact, near)
    assert Counter(network_of(contact.ip) for contact in lookup.nearest)[network_of("8.8.4.1")] == 2
    assert lookup.nearest[2:] == honest[:6]


def test_a_network_that_names_nobody_is_left_alone_soon() -> None:
    nobody = [place(n, f"8.8.4.{n}") for n in range(1, 100)]
    lookup = Lookup(TARGET, [*nobody, *(place(n) for n in range(200, 220))])
    failed = 0
    while not lookup.done:
        for contact in lookup.next():
            if network_of(contact.ip) == network_of("8.8.4.1"):
                lookup.failed(contact)
                failed += 1
            else:
                lookup.answered(contact, nobody)
    assert failed <= 6
    assert len(lookup.nearest) == 8


def test_local_nodes_have_no_such_limit() -> None:
    lookup = Lookup(TARGET, [Contact(n.to_bytes(20), "127.0.0.1", n) for n in range(1, 20)])
    while not lookup.done:
        for contact in lookup.next():
            lookup.answered(contact, [])
    assert len(lookup.nearest) == 8


def test_a_true_id_at_a_false_address_does_not_hide_the_true_one() -> None:
    false = Contact(place(1).id, "99.9.9.9", 666)
    lookup = Lookup(TARGET, [false])
    lookup.next()
    lookup.slow(false)
    lookup.answered(false, [])
    lookup.answered(false, [place(1)])
    assert lookup.next() == [place(1)]


@given(st.integers(0, 10_000), st.floats(0, 0.6), st.floats(0, 0.5))
@settings(max_examples=60)
def test_in_any_network_it_ends_and_finds_the_nearest_living(seed: int, dead: float, slow: float) -> None:
    chance = random.Random(seed)
    nodes = [contact_by(chance) for _ in range(150)]
    living = {contact for contact in nodes if chance.random() >= dead}
    known = {contact: chance.sample(nodes, 60) for contact in nodes}
    target = chance.randbytes(20)
    where = int.from_bytes(target)
    lookup = Lookup(target, chance.sample(nodes, 20))
    late: list[Contact] = []
    steps = 0
    while not lookup.done:
        asked = lookup.next()
        assert len(asked) <= 12
        steps += 1 + len(asked)
        assert steps < 1000
        for contact in asked:
            if contact not in living or chance.random() < slow:
                lookup.slow(contact)
                late.append(contact)
            else:
                nearest = sorted(known[contact], key=lambda other: other.long_id ^ where)[:16]
                lookup.answered(contact, nearest)
        if late and (not asked or chance.random() < 0.3):
            contact = late.pop(0)
            (lookup.answered(contact, []) if contact in living else lookup.failed(contact))
    assert set(lookup.nearest) <= living
    assert lookup.nearest == sorted(lookup.nearest, key=lambda contact: contact.long_id ^ where)
