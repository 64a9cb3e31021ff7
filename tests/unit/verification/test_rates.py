"""How much of whose work is done again, and how soon a cheat is found."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.verification.claims import MOST_MARKS
from axonp2p.verification.rates import (
    MEMORY_SHARE,
    ROUNDS_IN_MEMORY,
    Trust,
    chance_of_check,
    cut_for,
    share_redone,
)
from tests.laboratory.checked_job import checks_until_found, rounds_until_found

GIB = 2**30


@pytest.mark.parametrize(
    ("passed", "share"), [(0, 0.2), (9, 0.2), (10, 0.05), (20, 0.025), (40, 0.0125), (1000, 0.0125)]
)
def test_a_new_key_is_checked_much_a_known_one_rarely_and_nobody_never(passed, share):
    assert share_redone(Trust(passed), 0.05) == pytest.approx(share)


def test_one_segment_of_six_is_a_sixth_of_a_round():
    assert chance_of_check(Trust(), 0.05, 6) == 1.0
    assert chance_of_check(Trust(40), 0.05, 6) == pytest.approx(0.075)


def test_places_are_on_a_line_for_a_fiftieth_of_its_time() -> None:
    assert chance_of_check(Trust(), 0.05, 6, place_s=5, round_s=12) == pytest.approx(0.048)
    assert chance_of_check(Trust(), 0.05, 6, place_s=0.001, round_s=12) == 1.0
    assert chance_of_check(Trust(40), 0.05, 6, place_s=0.1, round_s=12) == pytest.approx(0.075)


@pytest.mark.parametrize(
    ("skipped", "certainty", "checks"),
    [(0.02, 0.99, 228), (0.1, 0.99, 44), (0.5, 0.99, 7), (0.5, 0.5, 1), (1, 0.99, 1)],
)
def test_the_table_of_trust_md(skipped, certainty, checks):
    assert checks_until_found(skipped, certainty) == checks


def test_in_rounds_it_takes_as_much_longer_as_checks_are_rare():
    assert rounds_until_found(0.5, 0.99, 1.0) == 7
    assert rounds_until_found(0.5, 0.99, 0.075) == 121


@pytest.mark.parametrize("skipped", [0.1, 0.3])
def test_as_many_checks_find_as_many_cheats(skipped):
    chance = random.Random(1)
    checks = checks_until_found(skipped, 0.9)
    missed = sum(all(chance.random() >= skipped for _ in range(checks)) for _ in range(5000))
    assert 0.05 < missed / 5000 <= 0.105


@pytest.mark.parametrize(("skipped", "certainty"), [(0, 0.5), (1.1, 0.5), (0.5, 0), (0.5, 1)])
def test_nonsense_is_refused(skipped, certainty):
    with pytest.raises(ValueError, match="shares"):
        checks_until_found(skipped, certainty)


@pytest.mark.parametrize(
    ("values", "steps", "every", "cut"),
    [
        (10_000, 48, 8, 8),
        (10_000, 48, 5, 5),
        (10_000, 20, 48, 8),
        (1_000_000, 30, 8, 8),
        (1_000_000, 60, 60, 12),  # 5 fit the memory
        (1_000_000, 200, 200, 40),
    ],
)
def test_legs_are_cut_short_and_longer_where_memory_is(values, steps, every, cut):
    assert cut_for(values, steps, every, GIB).every == cut


def test_what_does_not_fit_is_said_with_what_would():
    large = cut_for(100_000_000, 10, 10, GIB)
    assert large.every == 0
    assert 'memory = "18311 MiB"' in large.why_not
    assert cut_for(100_000_000, 10, 10, 18_400 * 2**20).every == 10
    many = cut_for(1000, 200, 2, GIB)
    assert many.every == 0
    assert "200 steps with 100 exchanges has too many parts" in many.why_not


@given(st.integers(1, 10**8), st.integers(1, 2000), st.integers(1, 2000), st.integers(2**20, 2**36))
def test_every_cut_fits_memory_and_message(values, steps, every, memory):
    cut = cut_for(values, steps, every, memory)
    if not cut.every:
        assert cut.why_not
        return
    leg = min(every, steps)
    legs = -(-steps // leg)
    segments = legs * -(-leg // cut.every)
    assert segments + legs <= MOST_MARKS
    assert ROUNDS_IN_MEMORY * segments * values * 16 <= memory * MEMORY_SHARE
