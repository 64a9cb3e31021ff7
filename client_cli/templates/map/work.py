"""One call of the job: it estimates pi from points at random, other ones for each item."""

import random

POINTS = 500_000


def estimate(item):
    """The estimate. The value that a call returns comes home: numbers, text, lists and dicts of them."""
    chance = random.Random(item)
    inside = sum(chance.random() ** 2 + chance.random() ** 2 <= 1 for _ in range(POINTS))
    return {"item": item, "pi": 4 * inside / POINTS}
