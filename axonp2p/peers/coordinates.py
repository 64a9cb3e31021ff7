"""Network coordinates: where a peer stands, so that round trips can be guessed without measuring them (pure).

Vivaldi (Dabek, Cox, Kaashoek, Morris, SIGCOMM 2004) in four dimensions with a height, which stands for the access line
that every path of a peer shares. Two additions of Ledlie, Gardner and Seltzer (NSDI 2007) for real networks: a filter
over the last round trips to each neighbour, of which the least counts, and a little gravity, so that all coordinates
together do not drift away.

On home links a guess is wrong by about a third: guesses say whom to measure first, and never whom to take.
"""

from __future__ import annotations

import math
import random
import struct
from collections import OrderedDict, deque
from dataclasses import dataclass

DIMENSIONS = 4
LONGEST_RTT_S = 5.0
"""A round trip above that says more of a queue than of a distance."""
NEIGHBOURS = 64
"""Of how many others the last round trips are remembered."""
SAMPLES = 3
WORTH_TELLING_MS = 10.0
"""A move by less changes no order that matters: guesses are wrong by more."""
ENOUGH = 5
"""After so many round trips a coordinate is worth telling: one that joins a settled network needs five to ten."""

_FORM = struct.Struct("<6e")
"""Four dimensions and the height in milliseconds, then the relative error: half floats, 12 bytes."""
_FURTHEST_MS = 10_000.0
_LEAST_HEIGHT_MS = 0.1
_MOST_ERROR = 1.5
_LEAST_ERROR = 0.01
_ERROR_STEP = 0.25
_STEP = 0.25
_GRAVITY_MS = 500.0


@dataclass(frozen=True)
class Coordinate:
    """A place, the height above it (both in milliseconds), and how wrong they are, relatively (0 to 1.5)."""

    place: tuple[float, ...]
    height: float
    error: float


ORIGIN = Coordinate((0.0,) * DIMENSIONS, _LEAST_HEIGHT_MS, _MOST_ERROR)


def read_coordinate(data: bytes) -> Coordinate | None:
    """The coordinate in a row or a DHT answer; None when there is none, or it is no place on earth."""
    if len(data) != _FORM.size:
        return None
    *place, height, error = _FORM.unpack(data)
    if not math.isfinite(sum(place) + height + error):  # half floats: their sum is finite just when all of them are
        return None
    if not 0 <= height <= _FURTHEST_MS or not 0 <= error <= _MOST_ERROR or math.hypot(*place) > 1.01 * _FURTHEST_MS:
        return None
    return Coordinate(tuple(place), max(_LEAST_HEIGHT_MS, height), max(_LEAST_ERROR, error))


def write_coordinate(coordinate: Coordinate) -> bytes:
    """The 12 bytes that `read_coordinate` reads."""
    return _FORM.pack(*coordinate.place, coordinate.height, coordinate.error)


def steady(last: bytes, newest: bytes) -> bytes:
    """Which of two coordinates of one peer to publish: `last` stays while the newest says little that is new.

    Coordinates never stand still; a published one that follows every tremble makes every row differ (the same paper:
    application coordinates, apart from the ones that are computed with).
    """
    before, now = read_coordinate(last), read_coordinate(newest)
    if before is None or now is None:
        return newest
    far = math.dist(before.place, now.place) + abs(before.height - now.height) > WORTH_TELLING_MS
    surer = not before.error / 2 <= now.error <= before.error * 2
    return newest if far or surer else last


def guess_rtt(one: Coordinate, other: Coordinate) -> float:
    """The round trip between two coordinates, in seconds."""
    return (math.dist(one.place, other.place) + one.height + other.height) / 1000


def guess_between(one: bytes, other: bytes) -> float | None:
    """The same from what two rows tell; None when one of them tells no place."""
    here, there = read_coordinate(one), read_coordinate(other)
    return guess_rtt(here, there) if here and there else None


def moved(own: Coordinate, other: Coordinate, rtt_s: float, chance: random.Random) -> Coordinate:
    """`own` after a round trip of `rtt_s` seconds to `other`: a spring between them, stiffer the surer `other` is."""
    rtt = rtt_s * 1000
    guess = guess_rtt(own, other) * 1000
    weight = own.error / (own.error + other.error)
    step = _ERROR_STEP * weight
    error = min(_MOST_ERROR, max(_LEAST_ERROR, abs(guess - rtt) / rtt * step + own.error * (1 - step)))
    force = _STEP * weight * (rtt - guess)
    apart = math.dist(own.place, other.place)
    if apart > 1e-6:
        direction = [(mine - theirs) / apart for mine, theirs in zip(own.place, other.place, strict=True)]
        height = max(_LEAST_HEIGHT_MS, own.height + (own.height + other.height) * force / guess)
    else:
        direction, height = _any_direction(chance), own.height
    place = [mine + force * part for mine, part in zip(own.place, direction, strict=True)]
    pull = min(1.0, math.hypot(*place) / _GRAVITY_MS**2)
    settled = tuple(part * (1 - pull) for part in place)
    return Coordinate(_within(settled), min(_FURTHEST_MS, height), error)


class Position:
    """Where one program stands, moved by the round trips that it notices anyway."""

    def __init__(self, chance: random.Random, last: bytes = b"") -> None:
        """`last` is what `told` was in an earlier run: one begins there, as unsure as it was then."""
        self._chance = chance
        known = read_coordinate(last)
        self._at = known or ORIGIN
        self._heard = ENOUGH if known else 0
        self._samples: OrderedDict[str, deque[float]] = OrderedDict()

    @property
    def at(self) -> Coordinate:
        """The coordinate, however unsure."""
        return self._at

    @property
    def told(self) -> bytes:
        """The coordinate that others are told; nothing before enough was heard."""
        return write_coordinate(self._at) if self._heard >= ENOUGH else b""

    def heard(self, who: str, rtt_s: float, coordinate: bytes) -> None:
        """A round trip to `who` (any name that stays the same) took so long; `coordinate` is what it told of itself.

        A neighbour that tells none counts as one that knows nothing, and only for who knows nothing either: that is
        how a network begins.
        """
        told = read_coordinate(coordinate)
        if not 0 < rtt_s <= LONGEST_RTT_S or (told is None and self._heard >= ENOUGH):
            return
        samples = self._samples.pop(who, None) or deque(maxlen=SAMPLES)
        samples.append(rtt_s)
        self._samples[who] = samples
        if len(self._samples) > NEIGHBOURS:
            self._samples.popitem(last=False)
        self._at = moved(self._at, told or ORIGIN, min(samples), self._chance)
        self._heard += 1


def _any_direction(chance: random.Random) -> list[float]:
    parts = [chance.gauss(0, 1) for _ in range(DIMENSIONS)]
    length = math.hypot(*parts) or 1.0
    return [part / length for part in parts]


def _within(place: tuple[float, ...]) -> tuple[float, ...]:
    length = math.hypot(*place)
    return place if length <= _FURTHEST_MS else tuple(part * _FURTHEST_MS / length for part in place)
