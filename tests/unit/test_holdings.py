"""Who gets a place, and who gives way: idle holders of the same key, of the same source, of whoever holds most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import Busy, TooOften
from axonp2p.holdings import Bounds, Holdings


def places(in_all: int = 4, of_source: int = 3, of_key: int = 2, least_age_s: float = 10.0) -> Holdings[str]:
    return Holdings("leases", Bounds(in_all, of_source, of_key, least_age_s))


def test_a_key_that_holds_as_many_as_it_may_waits_until_one_of_its_own_has_idled_long_enough() -> None:
    held = places()
    assert held.take("a", "s", "k", 0) == []
    assert held.take("b", "s", "k", 1) == []
    with pytest.raises(TooOften, match="2 leases are held for one key"):
        held.take("c", "s", "k", 9)
    assert held.take("c", "s", "k", 10) == ["a"]
    assert "a" not in held
    assert len(held) == 2


def test_other_keys_of_one_source_are_one_source() -> None:
    held = places()
    for number in range(3):
        held.take(f"{number}", "s", f"key {number}", 0)
    with pytest.raises(TooOften, match="3 leases are held for s,"):
        held.take("more", "s", "another", 5)
    assert held.take("elsewhere", "t", "another", 5) == []


def test_when_all_is_full_the_source_that_holds_most_gives_way() -> None:
    held = places()
    held.take("small", "t", "t", 0)
    for number in range(3):
        held.take(f"{number}", "s", f"key {number}", 1)
    assert held.take("new", "u", "u", 20) == ["0"]


def test_who_works_keeps_its_place() -> None:
    held = places(in_all=2)
    held.take("works", "s", "k", 0)
    held.works("works")
    held.take("waits", "t", "l", 5)
    assert held.take("new", "u", "m", 100) == ["waits"]
    held.works("new")
    with pytest.raises(Busy, match="no room for more leases"):
        held.take("late", "v", "n", 1000)
    held.waits("works", 1000)
    assert held.idle_for(60, 1000) == []
    assert held.idle_for(60, 1060) == ["works"]


def test_taking_twice_and_leaving_twice_are_harmless() -> None:
    held = places()
    held.take("a", "s", "k", 0)
    assert held.take("a", "s", "k", 50) == []
    held.release("a")
    held.release("a")
    assert len(held) == 0


ORDERS = st.lists(
    st.tuples(
        st.sampled_from(["take", "release", "works", "waits"]),
        st.integers(0, 30),
        st.sampled_from("stu"),
        st.sampled_from("klm"),
        st.floats(0, 20),
    ),
    max_size=60,
)


@given(ORDERS)
def test_no_bound_is_ever_passed_and_no_worker_ever_crowded_out(orders: list[tuple[str, int, str, str, float]]) -> None:
    held: Holdings[int] = Holdings("places", Bounds(5, 3, 2, 10.0))
    alive: dict[int, tuple[str, str]] = {}
    busy: set[int] = set()
    now = 0.0
    for order, name, source, key, later in orders:
        now += later
        if order == "take" and name not in alive:
            try:
                going = held.take(name, source, key, now)
            except Busy:
                continue
            assert not busy & set(going)
            for one in going:
                del alive[one]
            alive[name] = (source, key)
        elif order == "release":
            held.release(name)
            alive.pop(name, None)
            busy.discard(name)
        elif order == "works" and name in alive:
            held.works(name)
            busy.add(name)
        elif order == "waits" and name in alive:
            held.waits(name, now)
            busy.discard(name)
        assert len(held) == len(alive) <= 5
        for place in (0, 1):
            for one in {pair[place] for pair in alive.values()}:
                assert sum(pair[place] == one for pair in alive.values()) <= (3, 2)[place]
