"""How far apart ends of the same steps lie, from their sketches. Pure."""

from __future__ import annotations

import math
import struct

from axonp2p.verification.claims import SKETCH_BYTES

_NUMBERS = SKETCH_BYTES // 8
SAME_BYTES = 1e-9
"""Relative: two sums over the same values, on whatever machine, are as near as this."""
NOWHERE_NEAR = 1000.0
"""Farther than this, in movements, is as far: it may be divided by a movement of nothing."""


def apart(one: bytes, other: bytes) -> float:
    """The distance of two vectors, from their sketches. Not a number anywhere: infinitely far."""
    return _norm([a - b for a, b in zip(_numbers(one), _numbers(other), strict=True)])


def relative(one: bytes, other: bytes, start: bytes) -> float:
    """How far apart two ends are, as a share of how far the first of them is from where both began.

    Never more than `NOWHERE_NEAR`.
    """
    distance = apart(one, other)
    movement = apart(one, start)
    return min(distance / movement, NOWHERE_NEAR) if movement and distance < math.inf else NOWHERE_NEAR * bool(distance)


def same_vector(one: bytes, other: bytes) -> bool:
    """Whether these can be sketches of the very same values."""
    return one == other or apart(one, other) <= SAME_BYTES * max(_norm(_numbers(one)), _norm(_numbers(other)))


def same_memory(one: list[float], other: list[float], factor: float = 1 + SAME_BYTES) -> bool:
    """Whether norms of what optimisers remember are the same but for this factor."""
    return len(one) == len(other) and all(
        min(a, b) * factor >= max(a, b) for a, b in zip(map(abs, one), map(abs, other), strict=True)
    )


def _numbers(sketch: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{_NUMBERS}d", sketch)


def _norm(numbers: tuple[float, ...] | list[float]) -> float:
    norm = math.hypot(*numbers)
    return norm if math.isfinite(norm) else math.inf
