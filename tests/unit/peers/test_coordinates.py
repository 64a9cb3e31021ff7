from __future__ import annotations

import math
import random
import statistics
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.peers.coordinates import (
    DIMENSIONS,
    ENOUGH,
    NEIGHBOURS,
    ORIGIN,
    Coordinate,
    Position,
    guess_rtt,
    moved,
    read_coordinate,
    steady,
    write_coordinate,
)

finite = st.floats(-3000, 3000, width=16)


def coordinates():
    return st.builds(
        Coordinate,
        st.tuples(*[finite] * DIMENSIONS),
        st.floats(0.125, 3000, width=16),
        st.floats(0.015625, 1.5, width=16),
    )


@settings(deadline=None)
@given(coordinates())
def test_twelve_bytes_hold_a_coordinate(coordinate):
    data = write_coordinate(coordinate)
    assert len(data) == 12
    assert read_coordinate(data) == coordinate


@settings(deadline=None)
@given(st.binary(max_size=16))
def test_rubbish_is_none_or_a_place(data):
    coordinate = read_coordinate(data)
    if coordinate is not None:
        assert math.isfinite(guess_rtt(coordinate, ORIGIN))


@pytest.mark.parametrize(
    "numbers",
    [(math.nan, 0, 0, 0, 1, 1), (0, 0, 0, 0, math.inf, 1), (0, 0, 0, 0, -1, 1), (0, 0, 0, 0, 1, 2), (60000,) * 6],
)
def test_no_place_on_earth(numbers):
    assert read_coordinate(struct.pack("<6e", *numbers)) is None


@settings(deadline=None)
@given(coordinates(), coordinates(), st.floats(1e-5, 5))
def test_whatever_a_neighbour_says_a_coordinate_stays_one(own, other, rtt_s):
    after = moved(own, other, rtt_s, random.Random(1))
    assert read_coordinate(write_coordinate(after)) is not None


def test_nothing_is_told_before_enough_was_heard():
    position = Position(random.Random(1))
    for number in range(ENOUGH):
        assert position.told == b""
        position.heard(f"n{number}", 0.05, b"")
    assert len(position.told) == 12
    assert Position(random.Random(1), position.told).told == position.told


def test_impossible_round_trips_are_ignored():
    position = Position(random.Random(1))
    for rtt in (0.0, -1.0, 6.0, math.inf, math.nan):
        position.heard("n", rtt, b"")
    assert position.at == ORIGIN


def test_neighbours_are_bounded():
    position = Position(random.Random(1))
    for number in range(3 * NEIGHBOURS):
        position.heard(f"n{number}", 0.05, write_coordinate(ORIGIN))
    assert len(position._samples) == NEIGHBOURS


def test_the_least_of_the_last_three_counts():
    one, other = Position(random.Random(1)), Position(random.Random(1))
    for position, late in ((one, 0.05), (other, 1.9)):
        position.heard("n", 0.05, b"")
        position.heard("n", late, b"")
    assert one.at == other.at


def world(chance: random.Random, count: int) -> list[Coordinate]:
    """Homes in four dimensions, each behind an access line of its own."""
    return [
        Coordinate(tuple(chance.gauss(0, 40) for _ in range(DIMENSIONS)), chance.uniform(2, 20), 0)
        for _ in range(count)
    ]


def errors(positions: list[Position], homes: list[Coordinate]) -> list[float]:
    pairs = [(one, other) for one in range(len(homes)) for other in range(one)]
    return [
        abs(guess_rtt(positions[one].at, positions[other].at) / guess_rtt(homes[one], homes[other]) - 1)
        for one, other in pairs
    ]


def test_guesses_settle_although_one_round_trip_in_five_hits_a_queue():
    chance = random.Random(7)
    homes = world(chance, 60)
    positions = [Position(chance) for _ in homes]
    neighbours = [chance.sample([other for other in range(60) if other != one], 16) for one in range(60)]
    for _ in range(10):
        for one, position in enumerate(positions):
            for other in neighbours[one]:
                rtt = guess_rtt(homes[one], homes[other]) * chance.uniform(1, 1.1)
                if chance.random() < 0.2:
                    rtt += chance.expovariate(1 / 0.5)
                position.heard(str(other), rtt, positions[other].told)
    assert statistics.median(errors(positions, homes)) < 0.15


def test_who_joins_a_settled_network_needs_few_round_trips():
    chance = random.Random(3)
    homes = world(chance, 80)
    settled = [write_coordinate(Coordinate(home.place, home.height, 0.1)) for home in homes]
    wrong = []
    for one in range(40):
        newcomer = Position(chance)
        for other in chance.sample(range(40, 80), 10):
            newcomer.heard(str(other), guess_rtt(homes[one], homes[other]), settled[other])
        wrong += [abs(guess_rtt(newcomer.at, homes[o]) / guess_rtt(homes[one], homes[o]) - 1) for o in range(40, 80)]
    assert statistics.median(wrong) < 0.3


def test_what_is_published_does_not_follow_every_tremble():
    def at(*place: float, height: float = 5.0, error: float = 0.2) -> bytes:
        return write_coordinate(Coordinate(place, height, error))

    here = at(100, 0, 0, 0)
    assert steady(here, at(104, 3, 0, 0, error=0.15)) == here
    for moved_away in (at(111, 0, 0, 0), at(106, 0, 0, 0, height=10.0), at(100, 0, 0, 0, error=0.05)):
        assert steady(here, moved_away) == moved_away
    assert steady(b"", here) == here
    assert steady(here, b"") == b""
