from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import Busy
from axonp2p.reservation.calendar import Calendar

CLIENT = "a" * 52


def test_a_slot_is_promised_once():
    calendar = Calendar(1)
    calendar.hold("one", CLIENT, 10, 20)
    with pytest.raises(Busy):
        calendar.hold("two", CLIENT, 19.9, 30)
    calendar.hold("three", CLIENT, 20, 30)


def test_a_name_is_used_once_while_it_lives():
    calendar = Calendar(4)
    calendar.hold("one", CLIENT, 10, 20)
    with pytest.raises(Busy, match="in use"):
        calendar.hold("one", CLIENT, 30, 40)
    calendar.release("one")
    calendar.hold("one", CLIENT, 30, 40)


def test_a_later_promise_stands_in_the_way_of_a_long_one():
    calendar = Calendar(1)
    calendar.hold("later", CLIENT, 100, 200)
    with pytest.raises(Busy):
        calendar.hold("long", CLIENT, 0, 300)
    calendar.hold("short", CLIENT, 0, 100)


def test_free_counts_only_what_is_held_now():
    calendar = Calendar(2)
    calendar.hold("one", CLIENT, 10, 20)
    assert [calendar.free(now) for now in (9, 10, 19, 20)] == [2, 1, 1, 2]


def test_expiry_forgets_only_what_ended():
    calendar = Calendar(2)
    calendar.hold("one", CLIENT, 10, 20)
    calendar.hold("two", CLIENT, 10, 30)
    assert [held.lease for held in calendar.expire(20)] == ["one"]
    assert [held.lease for held in calendar.expire(30)] == ["two"]


def test_releasing_what_is_not_there_is_no_mistake():
    Calendar(1).release("nothing")


def test_no_slots_promise_nothing():
    with pytest.raises(Busy):
        Calendar(0).hold("one", CLIENT, 0, 1)


moments = st.integers(0, 40)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("hold"), st.integers(0, 12), moments, st.integers(1, 20)),
        st.tuples(st.just("release"), st.integers(0, 12), moments, st.just(0)),
        st.tuples(st.just("expire"), st.just(0), moments, st.just(0)),
    ),
    max_size=60,
)


@given(slots=st.integers(0, 4), steps=steps)
def test_it_never_promises_a_slot_twice(slots, steps):
    calendar = Calendar(slots)
    promised: dict[str, tuple[int, int]] = {}
    for what, name, start, length in steps:
        lease = str(name)
        if what == "hold":
            fits = lease not in promised and all(
                sum(a <= moment < b for a, b in promised.values()) < slots for moment in range(start, start + length)
            )
            if fits:
                calendar.hold(lease, CLIENT, start, start + length)
                promised[lease] = (start, start + length)
            else:
                with pytest.raises(Busy):
                    calendar.hold(lease, CLIENT, start, start + length)
        elif what == "release":
            calendar.release(lease)
            promised.pop(lease, None)
        else:
            calendar.expire(start)
            promised = {key: (a, b) for key, (a, b) in promised.items() if b > start}
        for moment in range(61):
            taken = sum(a <= moment < b for a, b in promised.values())
            assert taken <= slots
            assert calendar.free(moment) == slots - taken
