"""A sketch of a long vector: a few numbers that keep distances (Alon, Matias and Szegedy 1996; Charikar et al. 2002).

Each value is added to one of `NUMBERS` sums with a sign of its own. The expected square of a sketch's norm is that of
the vector's, and sketches of differences are differences of sketches: so how far two members' weights lie apart, as a
share of how far they moved, is known to about a quarter from 256 bytes each. The signs are the same on every machine.
"""

from __future__ import annotations

import numpy
import torch
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
        self._signs = torch.from_numpy((1 - 2 * bits[:values].astype(numpy.int8)).astype(numpy.int8))

    def of(self, vector: Tensor) -> bytes:
        """The sketch of a float32 vector."""
        plain = vector.detach()
        sums = torch.zeros(NUMBERS, dtype=torch.float64)
        for begin in range(0, self._values, _PORTION):
            # Signs change nothing of a value but its sign, so 32 bits are enough for that.
            signed = plain[begin : begin + _PORTION] * self._signs[begin : begin + _PORTION]
            whole = len(signed) // NUMBERS * NUMBERS
            sums += signed[:whole].view(-1, NUMBERS).sum(0, dtype=torch.float64)
            sums[: len(signed) - whole] += signed[whole:]
        return sums.numpy().astype("<f8").tobytes()
