"""A sketch of a long vector: a few numbers that keep distances (Alon, Matias and Szegedy 1996; Charikar et al. 2002).

Each value is added to one of `NUMBERS` sums with a sign of its own. The expected square of a sketch's norm is that of
the vector's, and sketches of differences are differences of sketches: so how far two members' weights lie apart, as a
share of how far they moved, is known to about a quarter from 256 bytes each. The signs are the same on every machine.
"""

from __future__ import annotations

import numpy
import numpy.typing
from torch import Tensor

NUMBERS = 32
"""Float64, so that a small movement of large weights is not lost."""
_PORTION = NUMBERS * 2**15


class Sketcher:
    """Sketches of vectors of one length, in one job."""

    def __init__(self, values: int, seed: int) -> None:
        self._values = values
        # Bit generators' streams never change between versions of numpy, unlike what is made from them.
        words = numpy.random.PCG64(seed).random_raw(-(-values // 64))
        bits = numpy.unpackbits(numpy.asarray(words, dtype="<u8").view(numpy.uint8), bitorder="little")
        self._signs = (1 - 2 * bits[:values].astype(numpy.int8)).astype(numpy.int8)

    def of(self, vector: Tensor) -> bytes:
        """The sketch of a float32 vector."""
        plain = vector.detach().numpy()
        sums = numpy.zeros(NUMBERS)
        for begin in range(0, self._values, _PORTION):
            signed = plain[begin : begin + _PORTION].astype(numpy.float64)
            signed *= self._signs[begin : begin + _PORTION]
            missing = -len(signed) % NUMBERS
            sums += numpy.pad(signed, (0, missing)).reshape(-1, NUMBERS).sum(0)
        return sums.astype("<f8").tobytes()
