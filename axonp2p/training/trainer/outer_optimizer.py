"""The outer step of DiLoCo: Nesterov momentum for parameters, the plain mean for buffers and what travels exactly.

Every member computes it for itself and all must get the same bits. So it is made of single multiplications,
additions and subtractions of elements, each rounded by itself as IEEE 754 says; nothing that a processor or a
library may fuse, reorder or sum in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy
import torch
from torch import Tensor

from axonp2p.blobs.pieces import PieceBook, book_of
from axonp2p.tensors.coding import BYTES_A_VALUE
from axonp2p.tensors.dense import SPAN, bytes_to_values, values_to_bytes
from axonp2p.tensors.flat import less_wide
from axonp2p.tensors.layout import Layout
from axonp2p.training.state_transfer.pieces import MOST_STATE_BYTES


@dataclass(frozen=True)
class State:
    """Where a job stands: one vector of all weights, then the outer momentum of the parameters. Never changed."""

    vector: Tensor
    layout: Layout

    @cached_property
    def pieces(self) -> PieceBook:
        """The hashes of its pieces; made when they are first asked for, as most states inside a round never are."""
        return book_of(self.file)

    @property
    def name(self) -> bytes:
        """SHA-256 of the BLAKE3s of its pieces."""
        return self.pieces.name

    @property
    def weights(self) -> Tensor:
        """The weights' part of the vector (not a copy)."""
        return self.vector[: self.layout.values]

    @property
    def momentum(self) -> Tensor:
        """The momentum's part of the vector (not a copy)."""
        return self.vector[self.layout.values :]

    @property
    def file(self) -> memoryview:
        """The bytes of the state file (not a copy)."""
        return values_to_bytes(self.vector)


def state_values(layout: Layout) -> int:
    """The length of a state's vector."""
    return layout.values + layout.parameters


def check_size(layout: Layout) -> None:
    """Raises `ValueError` for a model whose state, or whose frozen parameters, are too large to be handed on."""
    if layout.frozen_bytes > MOST_STATE_BYTES:
        raise ValueError(
            f"the frozen parameters take {layout.frozen_bytes} bytes; {MOST_STATE_BYTES} are the most that peers can "
            "hand to each other"
        )
    if state_values(layout) * BYTES_A_VALUE > MOST_STATE_BYTES:
        most = MOST_STATE_BYTES // BYTES_A_VALUE // 2
        raise ValueError(f"the model has {layout.values} values; {most} are the most that peers can hand to each other")


def first_state(weights: Tensor, layout: Layout) -> State:
    """The state before any round: no momentum yet."""
    return State(torch.cat([weights, torch.zeros(layout.parameters)]), layout)


def state_from_file(data: bytes | memoryview, layout: Layout) -> State:
    """The state in a state file. Raises `ValueError` when its size is not the model's."""
    expected = state_values(layout) * BYTES_A_VALUE
    if len(data) != expected:
        raise ValueError(f"a state of {len(data)} bytes, where this model has {expected}")
    return State(bytes_to_values(data), layout)


class OuterStep:
    """The way from a state to the next one, taken as the mean difference (start minus end) of all members comes in.

    DiLoCo's settings are 0.7 and 0.9 (Douillard et al., arXiv 2311.08105). With 1 and 0 it is plain averaging, which
    leaves no momentum: half of the state is zeros then, which nobody needs to send.
    """

    def __init__(self, state: State, learning_rate: float, momentum: float) -> None:
        self._before = state
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._wide_from = state.layout.wide.start
        # Of zeros that nobody writes to, the system makes no pages.
        self._vector = torch.from_numpy(numpy.zeros(len(state.vector), numpy.float32))

    def take(self, begin: int, mean: Tensor) -> None:
        """The mean difference of the values from `begin` on; each value comes once."""
        inside = min(max(self._before.layout.parameters - begin, 0), len(mean))
        narrow = min(max(self._wide_from - begin, inside), len(mean))
        if inside:
            self._take_parameters(begin, mean[:inside])
        if inside < narrow:
            place = slice(begin + inside, begin + narrow)
            torch.sub(self._before.vector[place], mean[inside:narrow], out=self._vector[place])
        if narrow < len(mean):  # a wide number's three values may come in three parts: it is put together in the end
            self._vector[begin + narrow : begin + len(mean)] = mean[narrow:]

    def state(self) -> State:
        """The next state, once all values have come. Nothing can be taken after it."""
        layout = self._before.layout
        self._vector[layout.bounds["small integers"]].round_()
        if layout.wide_floats or layout.wide_integers:
            taken = self._vector[layout.wide]
            taken.copy_(less_wide(self._before.vector[layout.wide], taken, layout))
        return State(self._vector, layout)

    def _take_parameters(self, begin: int, gradient: Tensor) -> None:
        place = slice(begin, begin + len(gradient))
        if self._momentum:
            values = self._before.layout.values
            gathered = self._vector[values + begin : values + begin + len(gradient)]
            torch.mul(self._before.momentum[place], self._momentum, out=gathered)
            gathered.add_(gradient)
            step = torch.mul(gathered, self._momentum)
            step.add_(gradient)
            step.mul_(self._learning_rate)
        else:
            step = torch.mul(gradient, self._learning_rate)
        torch.sub(self._before.vector[place], step, out=self._vector[place])


def outer_step(state: State, mean: Tensor, learning_rate: float, momentum: float) -> State:
    """The next state, from a mean difference that is all there."""
    step = OuterStep(state, learning_rate, momentum)
    for begin in range(0, len(mean), SPAN):
        step.take(begin, mean[begin : begin + SPAN])
    return step.state()
