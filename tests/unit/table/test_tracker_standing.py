"""Who among learnt trackers gives way to a newcomer."""

from __future__ import annotations

import random

from axonp2p.table.tracker_standing import LEAST_AGE_S, MOST_LEARNT, MOST_OF_ONE_NETWORK, LearntTracker, place_for
from tests.fakes import NOW

NEWCOMER = "https://10.99.0.1:7070"


def of_use(number: int, age_s: float) -> LearntTracker:
    return LearntTracker(f"https://10.{number}.0.1:7070", NOW - age_s, lives=True, useful=True)


def test_where_all_are_of_use_one_of_the_younger_half_goes_by_chance_and_one_in_ten_minutes():
    # The older the number, the longer it is known.
    book = [of_use(number, LEAST_AGE_S * (1 + number)) for number in range(MOST_LEARNT)]
    gone = {place_for(NEWCOMER, book, NOW, random.Random(seed)) for seed in range(200)}
    assert gone == {one.address for one in book[: MOST_LEARNT // 2]}
    fresh = [of_use(0, LEAST_AGE_S - 1), *book[1:]]
    assert place_for(NEWCOMER, fresh, NOW, random.Random(1)) is None


def test_a_network_that_has_its_places_gives_one_of_its_own_and_nobody_elses():
    near = [LearntTracker(f"https://10.99.1.{number}:7070", NOW - 10 * LEAST_AGE_S * number, lives=True, useful=True)
            for number in range(1, 1 + MOST_OF_ONE_NETWORK)]  # fmt: skip
    assert place_for(NEWCOMER, [of_use(1, 5000), *near], NOW, random.Random(1)) == near[0].address
