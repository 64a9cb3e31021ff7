"""The marks of one optimiser's steps: made on the way, and gone on from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, optim

from axonp2p.tensors.flat import Layout
from axonp2p.training.messages import Mark
from axonp2p.training.trainer.marks import MarkBytes, Memory, norms_of, to_bytes
from axonp2p.training.trainer.sketch import Sketcher
from axonp2p.training.verification.distances import same_memory, same_vector


class Marking:
    """For one model and its optimiser, whose settings must stay what they are now."""

    def __init__(self, optimizer: optim.Optimizer, layout: Layout, seed: int) -> None:
        self._optimizer = optimizer
        self._settings = _settings_of(optimizer)
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
        if _settings_of(self._optimizer) != self._settings:
            self.why_not = "the optimiser changes its own settings"
            return None
        memory: Memory = self._optimizer.state_dict()["state"]
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
        self._optimizer.load_state_dict({"state": memory, "param_groups": self._optimizer.state_dict()["param_groups"]})


def _settings_of(optimizer: optim.Optimizer) -> Any:
    """As they are told apart: by what they look like, since some may be tensors."""
    return [{name: repr(value) for name, value in group.items()} for group in _groups(optimizer)]


def _groups(optimizer: optim.Optimizer) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = optimizer.state_dict()["param_groups"]
    return groups
