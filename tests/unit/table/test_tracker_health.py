from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.errors import SettingsError
from axonp2p.table.tracker_file import read_health, write_health
from axonp2p.table.tracker_health import FORGOTTEN_AFTER_S, LONGEST_RETRY_S, TrackerHealth
from axonp2p.table.tracker_standing import MOST_LEARNT

A, B, C = (f"https://192.0.2.{number}:7070" for number in (1, 2, 3))
NOW = 1_800_000_000.0


def learnt(number: int) -> str:
    return f"https://10.{number}.0.7:7070"


def test_healthy_ones_first_and_those_of_the_settings_before_learnt_ones():
    health = TrackerHealth([A, B, C])
    health.learn(learnt(1), NOW)
    health.failed(A, NOW, 0.5)
    health.busy(B, 60, NOW, 0)
    assert health.order(NOW, random.Random(1)) == [C, learnt(1), B, A]
    assert health.order(NOW + 2, random.Random(1)) == [C, learnt(1), A, B]
    assert health.order(NOW + 100, random.Random(1))[-1] == A


def test_equals_come_in_every_order():
    health = TrackerHealth([A, B, C])
    seen = {tuple(health.order(NOW, random.Random(seed))) for seed in range(60)}
    assert len(seen) == 6


def test_waits_are_a_sixteenth_of_the_outage():
    health = TrackerHealth([A])
    now, waits = NOW, []
    while now < NOW + 40_000:
        health.failed(A, now, 0.5)
        waits.append(health.next_try(A, now) - now)
        now = health.next_try(A, now)
    assert waits[:16] == [1.0] * 16
    assert all(one <= other + 1e-3 for one, other in pairwise(waits))
    assert waits[-1] == LONGEST_RETRY_S
    assert health.answered(A, now) is True
    assert health.answered(A, now) is False
    assert health.failed(A, now, 0) is True
    assert health.next_try(A, now) == pytest.approx(now + 0.75)
    assert health.failed(A, now + 1, 0) is False


def test_a_clock_that_was_set_back_keeps_nobody_out():
    health = TrackerHealth([A])
    health.failed(A, NOW, 0.5)
    assert health.next_try(A, NOW - 86_400) <= NOW - 86_400 + 2 * LONGEST_RETRY_S


def test_the_round_trip_is_smoothed():
    health = TrackerHealth([A])
    health.answered(A, NOW, 0.1)
    health.answered(A, NOW, 0.2)
    assert health.state(A).rtt_s == pytest.approx(0.13)


def test_a_tracker_that_is_known_already_is_not_learnt():
    health = TrackerHealth([A])
    health.answered(A, NOW, tracker="t" * 52)
    assert health.learn(A + "/", NOW) is False
    assert health.learn(learnt(1), NOW, "t" * 52) is False
    for rubbish in ("", "http://192.0.2.9:1", "https://x:70000", "https://x:1#short", "\0"):
        assert health.learn(rubbish, NOW) is False
    assert health.addresses == [A]


def test_the_same_tracker_learnt_under_another_address_goes_once_its_id_is_known():
    health = TrackerHealth([A])
    assert health.learn(learnt(1), NOW, "t" * 52) is True
    health.answered(A, NOW, tracker="t" * 52)
    assert health.addresses == [A]
    assert health.trusted(NOW) == {"t" * 52}


def test_there_is_room_for_so_many_and_who_is_away_makes_room():
    health = TrackerHealth([A])
    for number in range(MOST_LEARNT):
        assert health.learn(learnt(number), NOW)
    assert health.learn(learnt(99), NOW) is False
    health.failed(learnt(2), NOW + 1, 0.5)
    assert health.learn(learnt(99), NOW + 9) is True
    assert learnt(2) not in health.addresses
    assert len(health.addresses) == MOST_LEARNT + 1


def test_what_is_not_heard_of_for_a_week_is_forgotten():
    health = TrackerHealth([A])
    health.learn(learnt(1), NOW)
    health.learn(learnt(2), NOW)
    health.learn(learnt(2), NOW + FORGOTTEN_AFTER_S)
    health.learn(learnt(3), NOW + FORGOTTEN_AFTER_S + 1)
    assert health.addresses == [A, learnt(2), learnt(3)]


def test_a_wrong_address_in_the_settings_is_said():
    with pytest.raises(SettingsError):
        TrackerHealth(["tracker.example"])


def test_it_outlives_a_restart(tmp_path):
    path = tmp_path / "trackers.json"
    before = TrackerHealth([A, B])
    before.answered(A, NOW, 0.25, "a" * 52)
    before.failed(B, NOW, 0.5)
    before.learn(learnt(1), NOW, "l" * 51 + "a")
    write_health(path, before)
    after = read_health(path, [B, C], NOW + 60)
    assert set(after.addresses) == {B, C, learnt(1)}  # A stands in the settings no more
    assert after.trusted(NOW) == set()  # what was learnt is trusted no more after a restart than before
    assert not after.is_away(B)
    assert after.is_learnt(learnt(1))
    assert read_health(path, [A], NOW + 60).state(A).rtt_s == 0.25


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"trackers": [{"address": 7}]}', b"x" * 200_000, b"\xff"])
def test_a_damaged_file_is_none(tmp_path, content):
    (tmp_path / "trackers.json").write_bytes(content)
    assert read_health(tmp_path / "trackers.json", [A], NOW).addresses == [A]
    write_health(tmp_path / "missing" / "trackers.json", TrackerHealth([A]))


steps = st.lists(
    st.tuples(
        st.sampled_from(["learn", "answered", "failed", "busy"]),
        st.integers(0, 30),
        st.floats(0, 10_000),
        st.floats(0, 1),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(steps)
def test_whatever_happens_it_stays_bounded_and_can_be_kept(history):
    health = TrackerHealth([A, B])
    now = NOW
    for what, number, passed, chance in history:
        now += passed
        address = health.addresses[number % len(health.addresses)]
        if what == "learn":
            health.learn(learnt(number), now)
        elif what == "answered":
            health.answered(address, now, chance, f"{number}".rjust(52, "a"))
        elif what == "failed":
            health.failed(address, now, chance)
        else:
            health.busy(address, passed, now, chance)
    assert {A, B} <= set(health.addresses)
    assert len(health.addresses) <= 2 + MOST_LEARNT
    assert sorted(health.order(now, random.Random(0))) == sorted(health.addresses)
    assert all(health.next_try(one, now) <= now + 2 * LONGEST_RETRY_S for one in health.addresses)
    again = TrackerHealth([A, B])
    again.restore(json.loads(json.dumps(health.as_plain())), now)
    assert {A, B} <= set(again.addresses) <= set(health.addresses)
