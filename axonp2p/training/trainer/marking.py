"""The marks of one optimiser's steps: made on the way, compared by sketches, and gone on from."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from torch import Tensor

from axonp2p.tensors.layout import Layout
from axonp2p.training.trainer.inner_step import InnerOptimizers
from axonp2p.training.trainer.marks import MarkBytes, Memory, norms_of, to_bytes
from axonp2p.verification.claims import Mark
from axonp2p.verification.distances import same_memory, same_vector

NUMBERS = 32
"""Float64, so that a small movement of large weights is not lost."""
_PORTION = NUMBERS * 2**15


class Sketcher:
    """Sketches of vectors of one length, in one job: a few numbers that keep distances.

    Each value is added to one of `NUMBERS` sums with a sign of its own (Alon, Matias and Szegedy 1996; Charikar et al.
    2002). The expected square of a sketch's norm is that of the vector's, and sketches of differences are differences
    of sketches: so how far two members' weights lie apart, as a share of how far they moved, is known to about a
    quarter from 256 bytes each. The signs are the same on every machine.
    """

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


class Marking:
    """For one model and its optimisers, whose settings must stay what they are now."""

    def __init__(self, optimizers: InnerOptimizers, layout: Layout, seed: int) -> None:
        self._optimizers = optimizers
        self._settings = _settings_in(optimizers.state_dict())
        # Whole numbers come last, and are left out: beside 2**62 no sum of weights keeps its digits.
        self._compared, self._seed = layout.bounds["wide integers"].start, seed
        self._sketcher: Sketcher | None = None
        self.why_not = ""
        """Why nothing can be committed to."""

    def sketch(self, weights: Tensor) -> bytes:
        """By which these weights are compared."""
        if self._sketcher is None:
            self._sketcher = Sketcher(self._compared, self._seed)
        return self._sketcher.of(weights[: self._compared])

    def place(self, leg: int, step: int, weights: Tensor, factors: Tensor | None) -> MarkBytes | None:
        """Where the steps are now; None when this optimiser is not one that can be committed to."""
        if self.why_not:
            return None
        said = self._optimizers.state_dict()
        if _settings_in(said) != self._settings:
            self.why_not = "the optimiser changes its own settings"
            return None
        memory: Memory = said["state"]
        try:
            with torch.no_grad():
                data, norms = to_bytes(weights, factors, memory)
        except ValueError as error:
            self.why_not = str(error)[:200]
            return None
        return MarkBytes(leg, step, self.sketch(weights), norms, data)

    def fits(self, mark: Mark, weights: Tensor, memory: Memory) -> bool:
        """Whether what was handed over is what the rest of the mark says of it."""
        try:
            norms = norms_of(memory)
        except ValueError:
            return False
        return same_vector(self.sketch(weights), mark.sketch) and same_memory(norms, mark.memory)

    def remember(self, memory: Memory) -> None:
        """The optimiser goes on with what another one remembers, and its own settings."""
        self._optimizers.load_state_dict(
            {"state": memory, "param_groups": self._optimizers.state_dict()["param_groups"]}
        )


def _settings_in(said: dict[str, Any]) -> Any:
    """As they are told apart: by what they look like, since some may be tensors."""
    return [{name: repr(value) for name, value in group.items()} for group in said["param_groups"]]
