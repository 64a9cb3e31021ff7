"""One member's own part of a round: local steps from a state, and what came of them."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from axonp2p.errors import TaskMistake
from axonp2p.tensors import flat
from axonp2p.training.batches import Batches, Shards
from axonp2p.training.flops import FlopCounts
from axonp2p.training.messages import Prepare, StartRound
from axonp2p.training.outer_optimizer import State, first_state
from axonp2p.training.plan import batch_indices, seed_for
from axonp2p.training.task import Task, seed_all


@dataclass(frozen=True)
class LocalSteps:
    """What the local steps of a round led to."""

    delta: Tensor
    """Start minus end, flat."""
    loss: float
    """Mean over the steps."""
    samples: int
    flops: int
    seconds: float


Interrupted = Callable[[int, float, int], bool]
"""Told after each step (steps done, their mean loss, samples so far); True ends the round there."""


class LocalTrainer:
    """A task's model and optimiser. Raises `TaskMistake` wherever the task's code runs."""

    def __init__(self, task: Task, prepare: Prepare) -> None:
        self._task = task
        self._seed = prepare.seed
        self._batch = prepare.batch
        seed_all(prepare.seed)
        self._model = task.model()
        with task.code("model()"):
            self.layout = flat.layout_of(self._model)
        self._optimizer = task.optimizer(self._model)
        self._shards = Shards(task, prepare.shards, prepare.seed)
        self._flops = FlopCounts()
        self.accept()

    def first_state(self) -> State:
        """The state that the task's own first weights make."""
        return first_state(flat.read(self._model, self.layout), self.layout)

    def accept(self) -> None:
        """The last round counts: what the inner optimiser remembers of it stays."""
        self._remembered = copy.deepcopy(self._optimizer.state_dict())

    def put_back(self) -> None:
        """The last round does not count: the inner optimiser forgets it."""
        self._optimizer.load_state_dict(copy.deepcopy(self._remembered))

    def train(self, state: State, start: StartRound, interrupted: Interrupted) -> LocalSteps | None:
        """The local steps of a round; None when they were interrupted."""
        batches = self._shards.train(start.shards)
        stream = seed_for(self._seed, 0, start.shards)
        self._load(state)
        base = flat.read(self._model, self.layout)
        seed_all(seed_for(self._seed, start.round, start.shards))
        self._model.train()
        begun = time.monotonic()
        losses, samples, flops = 0.0, 0, 0
        for step in range(start.steps):
            numbers = batch_indices(len(batches), self._batch, stream, start.round * start.steps + step, 1)[0]
            loss, counted = self._step(batches, numbers)
            if not math.isfinite(loss):
                raise TaskMistake("local steps", cause=f"The loss became {loss} in round {start.round}, step {step}.")
            losses += loss
            samples += len(numbers)
            flops += counted
            if interrupted(step + 1, losses / (step + 1), samples):
                return None
        with self._task.code("local steps"):
            delta = base.sub_(flat.read(self._model, self.layout))
        if not bool(torch.isfinite(delta).all()):
            raise TaskMistake("local steps", cause=f"The weights became nan or infinite in round {start.round}.")
        return LocalSteps(delta, losses / start.steps, samples, flops, time.monotonic() - begun)

    def evaluate(self, state: State, shards: Sequence[int]) -> tuple[dict[str, float], int]:
        """Metrics of a state on the test data of these shards, weighted by samples, and how many samples that was."""
        self._load(state)
        return evaluate(self._task, self._model, self._shards.test(shards), self._batch)

    def model_file(self, state: State) -> bytes:
        """The model's state dict as a safetensors file; the same bytes for the same state."""
        self._load(state)
        with self._task.code("model()"):
            return model_file(self._model)

    def _load(self, state: State) -> None:
        with self._task.code("model()"):
            flat.write(state.weights, self._model, self.layout)

    def _step(self, batches: Batches, numbers: list[int]) -> tuple[float, int]:
        with self._task.code("data()"):
            batch = batches.take(numbers)
        loss, flops = self._flops.count(batch, lambda: self._gradients(batch))
        with self._task.code("optimizer()"):
            self._optimizer.step()
        return loss, flops

    def _gradients(self, batch: Any) -> float:
        self._optimizer.zero_grad()
        loss = self._task.loss(self._model, batch)
        with self._task.code("the backward pass of loss()"):
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()


def evaluate(task: Task, model: nn.Module, datasets: Sequence[Any], batch: int) -> tuple[dict[str, float], int]:
    """The task's metrics, or the mean loss, over datasets, weighted by their samples; and how many samples."""
    model.eval()
    sums: dict[str, float] = {}
    samples = 0
    with torch.no_grad():
        for dataset in datasets:
            count = len(dataset)
            metrics = task.evaluate(model, dataset) if task.evaluates else _mean_loss(task, model, dataset, batch)
            for name, value in metrics.items():
                sums[name] = sums.get(name, 0.0) + value * count
            samples += count
    means = {name: total / samples for name, total in sums.items()}
    for name in [name for name, value in means.items() if not math.isfinite(value)]:
        print(f"held-out {name} is {means.pop(name)}, so it is left out", file=sys.stderr)
    return means, samples


def model_file(model: nn.Module) -> bytes:
    """A model's state dict as safetensors. Tied tensors are written under each of their names."""
    tensors = {
        name: value.detach().clone().contiguous()
        for name, value in model.state_dict().items()
        if isinstance(value, Tensor)
    }
    return safetensors.torch.save(tensors)


def _mean_loss(task: Task, model: nn.Module, dataset: Any, batch: int) -> dict[str, float]:
    batches = Batches(dataset)
    total = 0.0
    for begin in range(0, len(batches), batch):
        numbers = list(range(begin, min(begin + batch, len(batches))))
        with task.code('data("test")'):
            taken = batches.take(numbers)
        total += task.loss(model, taken).item() * len(numbers)
    return {"loss": total / len(batches)}
