from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.table.tracker_health import LONGEST_RETRY_S, TrackerHealth
from peer_daemon.announcing.announce_rota import LONGEST_WAIT_S, WANTED, Rota

A, B, C = (f"https://192.0.2.{number}:7070" for number in (1, 2, 3))
LEARNT = "https://198.51.100.1:7070"
NOW = 1_800_000_000.0


class NeverChanges(random.Random):
    """Chance that changes no tracker for another of its own accord."""

    def random(self):
        return 0.5


def make_rota(*addresses: str, chance: random.Random | None = None) -> tuple[Rota, TrackerHealth]:
    health = TrackerHealth(addresses)
    return Rota(health, chance or NeverChanges(1)), health


def announce(rota, health, now, dead=(), again_in=300.0):
    """One round, in which only the `dead` do not answer; whom it went to."""
    due = rota.due(now)
    for address in due:
        if address in dead:
            health.failed(address, now, 0.5)
            rota.failed(address)
        else:
            health.answered(address, now)
            rota.answered(address, again_in, now)
    return due


def test_two_get_the_row_and_again_when_they_want_it():
    rota, health = make_rota(A, B, C)
    first = announce(rota, health, NOW)
    assert len(first) == WANTED
    assert announce(rota, health, NOW) == []
    assert 270 <= rota.wait(NOW) <= 300
    assert set(announce(rota, health, NOW + 300)) == set(first)
    assert set(rota.chosen) == set(first) == set(rota.told)


def test_one_tracker_is_enough_where_there_is_one():
    rota, health = make_rota(A)
    assert announce(rota, health, NOW) == [A]
    assert 260 <= rota.wait(NOW + 10) <= 290


def test_those_whose_turns_are_close_hear_the_same_row():
    rota, health = make_rota(A, B)
    announce(rota, health, NOW)
    rota.answered(B, 300, NOW + 20)
    assert set(rota.due(NOW + 285)) == {A, B}


def test_a_third_stands_in_at_once_for_one_that_is_away():
    rota, health = make_rota(A, B, C)
    first = announce(rota, health, NOW)
    dead = first[0]
    rota.changed()
    assert set(announce(rota, health, NOW + 10, dead={dead})) == set(first)
    assert rota.wait(NOW + 10) == 0
    (other,) = announce(rota, health, NOW + 10)
    assert other not in first
    assert set(rota.chosen) == {first[1], other}
    assert rota.wait(NOW + 10) > 200  # the dead one is left alone: two have the row


def test_all_away_are_asked_at_their_own_pace_and_the_first_back_is_found():
    rota, health = make_rota(A, B)
    announce(rota, health, NOW, dead={A, B})
    assert announce(rota, health, NOW + 0.5) == []
    assert rota.wait(NOW) == 1
    now = NOW
    while now < NOW + 120:
        now += rota.wait(now)
        announce(rota, health, now, dead={A, B})
    assert 5 < rota.wait(now) < 10
    now += rota.wait(now)
    assert B in announce(rota, health, now, dead={A})
    assert rota.chosen == [B]


def test_news_goes_to_those_who_have_the_row_and_does_not_hurry_the_others():
    rota, health = make_rota(A, B)
    announce(rota, health, NOW, dead={B})
    rota.changed()
    assert rota.due(NOW + 0.5) == [A]


def test_one_of_the_two_stands_in_the_settings():
    rota, health = make_rota(A)
    for number in range(9):
        health.learn(f"https://198.51.100.{number}:7070", NOW)
    assert A in announce(rota, health, NOW)
    rota.changed()
    announce(rota, health, NOW + 1, dead={A})
    announce(rota, health, NOW + 1, dead={A})
    assert A not in rota.chosen
    assert len(rota.chosen) == WANTED
    now = NOW + 1
    for _ in range(20):
        now += rota.wait(now)
        announce(rota, health, now)
    assert A in rota.chosen
    assert len(rota.chosen) == WANTED


def test_peers_spread_over_the_trackers_and_move_back_slowly():
    chance = random.Random(5)
    peers = [make_rota(A, B, C, chance=chance) for _ in range(300)]
    for rota, health in peers:
        announce(rota, health, NOW, dead={C})
        announce(rota, health, NOW, dead={C})
    shares = []
    now = NOW
    for _ in range(30):
        now += LONGEST_RETRY_S + 75
        for rota, health in peers:
            announce(rota, health, now)
            announce(rota, health, now)
        shares.append(Counter(address for rota, _ in peers for address in rota.chosen)[C])
    assert shares[0] < 120  # of 600
    assert shares[-1] > 150
    assert all(len(rota.chosen) == WANTED for rota, _ in peers)


def test_a_tracker_that_was_forgotten_has_no_turn():
    rota, health = make_rota(A)
    health.learn(LEARNT, NOW, "l" * 52)
    announce(rota, health, NOW)
    assert set(rota.chosen) == {A, LEARNT}
    health.answered(A, NOW, tracker="l" * 52)  # the same tracker
    rota.due(NOW)
    assert rota.chosen == [A]
    assert rota.told == [A]


def test_a_clock_that_was_put_back_silences_nobody():
    rota, health = make_rota(A, B)
    announce(rota, health, NOW)
    assert set(rota.due(NOW - 3600)) == {A, B}
    assert rota.wait(NOW - 3600) == 0


def test_who_has_the_row_is_looked_at_in_between():
    rota, health = make_rota(A, B)
    announce(rota, health, NOW)
    rota.answered(A, 300, NOW, ping_in=10)
    assert rota.to_ping(NOW) == []
    assert rota.wait(NOW) == 10
    assert rota.to_ping(NOW + 10) == [A]
    rota.pinged(A, NOW + 10)
    assert rota.wait(NOW + 10) == 10
    assert rota.to_ping(NOW - 3600) == [A]
    health.failed(A, NOW + 20, 0.5)
    rota.failed(A)
    rota.pinged(A, NOW + 20)
    assert rota.to_ping(NOW + 500) == []


def test_no_trackers_wait_long():
    rota, health = make_rota()
    assert rota.due(NOW) == []
    assert rota.wait(NOW) == LONGEST_WAIT_S
    health.learn(LEARNT, NOW)
    assert rota.wait(NOW) == 0
    assert announce(rota, health, NOW) == [LEARNT]


@settings(deadline=None)
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 31), st.floats(0, 400), st.booleans()), max_size=30),
    st.integers(0, 1000),
)
def test_somebody_is_always_due_some_day(count, history, seed):
    addresses = [f"https://192.0.2.{number}:7070" for number in range(count)]
    rota, health = make_rota(*addresses, chance=random.Random(seed))
    now = NOW
    for dead_bits, passed, news in history:
        now += passed
        if news:
            rota.changed()
        announce(rota, health, now, dead={one for index, one in enumerate(addresses) if dead_bits >> index & 1})
        assert len(rota.chosen) <= WANTED
    rounding = 1e-3
    wait = rota.wait(now)
    assert 0 <= wait <= 2 * LONGEST_RETRY_S
    assert rota.due(now + wait + rounding)
