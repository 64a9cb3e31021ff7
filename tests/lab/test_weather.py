"""When packets arrive, told in figures."""

from __future__ import annotations

import random

import pytest

from tests.lab.weather import Weather


def weather() -> Weather:
    """Three sites, 10 ms apart each way."""
    return Weather([[0.0 if a == b else 0.01 for b in range(3)] for a in range(3)], random.Random(1))


def test_a_packet_is_there_after_the_delay_of_its_pair() -> None:
    found = weather()
    found.set_delay(0, 2, 0.05)
    assert found.arrival(0, 1, 7.0) == pytest.approx(7.01)
    assert found.arrival(0, 2, 7.0) == pytest.approx(7.05)
    assert found.arrival(2, 0, 7.0) == pytest.approx(7.05)


def test_nobody_overtakes_when_a_delay_becomes_shorter() -> None:
    found = weather()
    assert found.arrival(0, 1, 7.0) == pytest.approx(7.01)
    found.set_delay(0, 1, 0.001)
    assert found.arrival(0, 1, 7.001) == pytest.approx(7.01)
    assert found.arrival(0, 1, 7.02) == pytest.approx(7.021)


def test_a_cut_has_one_direction_and_is_mended() -> None:
    found = weather()
    found.cut(0, 1)
    assert found.arrival(0, 1, 7.0) is None
    assert found.arrival(1, 0, 7.0) is not None
    found.mend(0, 1)
    assert found.arrival(0, 1, 7.0) is not None


def test_who_is_in_no_group_is_alone_until_it_heals() -> None:
    found = weather()
    found.partition([[0, 1]])
    assert found.arrival(0, 1, 7.0) is not None
    assert found.arrival(0, 2, 7.0) is None
    assert found.arrival(2, 1, 7.0) is None
    found.heal()
    assert found.arrival(0, 2, 7.0) is not None


def test_about_the_share_is_lost_at_either_end() -> None:
    found = weather()
    found.set_loss(1, 0.25)
    there = sum(found.arrival(0, 1, time) is None for time in range(1000))
    back = sum(found.arrival(1, 0, time) is None for time in range(1000))
    assert 200 < there < 300
    assert 200 < back < 300
    assert found.arrival(0, 2, 1.0) is not None
