"""With which relays a peer registers, told as what happened and whom it asks."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.transport.relay.choice import LINGER_S, LONGEST_RETRY_S, STEADY_S, RelayCandidate, RelayChoice
from tests.fakes import key_of


def candidate(name: str, *, is_peer: bool = False) -> RelayCandidate:
    return RelayCandidate(f"https://{name}:7070#{'a' * 52}", key_of(name).peer_id, name, is_peer)


ONE, TWO, THREE = candidate("one"), candidate("two"), candidate("three")
HOME = candidate("home", is_peer=True)


def choice(*offered: RelayCandidate, needed: bool = True) -> RelayChoice:
    made = RelayChoice(random.Random(1))
    made.offer(offered)
    made.need(needed, 0)
    return made


def test_whoever_can_be_dialled_asks_nobody():
    assert choice(ONE, TWO, needed=False).to_open(0) == []


def test_two_of_those_there_are_trackers_before_volunteers():
    relays = choice(HOME, ONE)
    assert relays.to_open(0) == [ONE, HOME]
    assert relays.to_open(0) == []  # they are being asked
    assert relays.held == []
    relays.registered(HOME.address, 1)
    relays.registered(ONE.address, 2)
    assert relays.held == [HOME.address, ONE.address]


def test_who_says_no_is_left_alone_ever_longer_and_another_is_asked():
    relays = choice(ONE)
    now, pauses = 0.0, []
    for _ in range(15):
        assert relays.to_open(now) == [ONE]
        relays.ended(ONE.address, now)
        assert relays.to_open(now) == []
        pauses.append(relays.wait(now))
        now += pauses[-1]
    assert pauses[0] < 3
    assert 0.75 * LONGEST_RETRY_S <= pauses[-1] <= 1.25 * LONGEST_RETRY_S
    relays.offer([ONE, TWO])
    assert relays.to_open(now - 1) == [TWO]


def test_a_relay_that_held_long_is_asked_again_soon_after_it_was_lost():
    relays = choice(ONE, TWO)
    for _ in range(5):
        relays.ended(ONE.address, 0)
    relays.offer([ONE])
    (one,) = relays.to_open(1e6)
    relays.registered(one.address, 1e6)
    relays.ended(one.address, 1e6 + STEADY_S)
    assert relays.wait(1e6 + STEADY_S) < 3


def test_when_one_is_lost_the_third_takes_its_place():
    relays = choice(ONE, TWO, THREE)
    first, second = relays.to_open(0)
    relays.registered(first.address, 1)
    relays.registered(second.address, 1)
    relays.ended(first.address, 10)
    (third,) = relays.to_open(10)
    assert {first, second, third} == {ONE, TWO, THREE}
    assert relays.held == [second.address]


def test_relays_are_kept_for_a_while_after_a_router_was_opened():
    relays = choice(ONE, TWO)
    for one in relays.to_open(0):
        relays.registered(one.address, 0)
    relays.need(False, 100)
    assert relays.to_close(100 + LINGER_S - 1) == []
    assert relays.wait(100) == LINGER_S
    assert set(relays.to_close(100 + LINGER_S)) == {ONE.address, TWO.address}


def test_it_says_when_it_knows_too_few():
    assert choice(ONE).too_few
    assert not choice(ONE, TWO).too_few
    assert not choice(needed=False).too_few


def test_trackers_that_carry_for_nobody_are_not_enough():
    relays = choice(ONE, TWO)
    for one in relays.to_open(0):
        relays.ended(one.address, 0)
    assert relays.too_few
    relays.offer([ONE, TWO, THREE, HOME])
    assert not relays.too_few
    assert set(relays.to_open(0)) == {THREE, HOME}
    for one in (THREE, HOME):
        relays.registered(one.address, 1)
    assert not relays.too_few


@given(st.lists(st.tuples(st.sampled_from(["open", "yes", "end", "need", "offer"]), st.integers(0, 3)), max_size=60))
def test_never_more_open_than_wanted_and_never_the_same_twice(steps):
    relays, everybody = choice(ONE, TWO, THREE, HOME), [ONE, TWO, THREE, HOME]
    opened: list[RelayCandidate] = []
    for now, (step, number) in enumerate(steps):
        if step == "open":
            fresh = relays.to_open(now)
            assert not set(fresh) & set(opened)
            opened += fresh
        elif step == "need":
            relays.need(number > 0, now)
        elif step == "offer":
            relays.offer(everybody[: number + 1])
        elif opened and step == "yes":
            relays.registered(opened[number % len(opened)].address, now)
        elif opened:
            relays.ended(opened.pop(number % len(opened)).address, now)
        assert len(opened) <= 2
        assert set(relays.held) <= {one.address for one in opened}
