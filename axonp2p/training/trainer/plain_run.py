"""A task in one process, with an ordinary PyTorch loop: the baseline that rounds and exchanges are measured against."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch

from axonp2p.errors import SettingsError
from axonp2p.tensors import flat
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.training.plan import batch_indices, seed_for
from axonp2p.training.trainer.batches import Shards
from axonp2p.training.trainer.file_layout import file_layout
from axonp2p.training.trainer.flops import FlopCounts
from axonp2p.training.trainer.inner_step import InnerStep
from axonp2p.training.trainer.local_trainer import evaluate
from axonp2p.training.trainer.task import Task, seed_all

MOST_SHARDS = 64
_INDICES_AHEAD = 1000


class PlainRun:
    """One model, one shard, one process. Everything raises `TaskMistake` for what the task's code does wrong."""

    def __init__(self, task: Task, batch: int, seed: int, clip_gradients: float = 0.0) -> None:
        self._task = task
        self._batch = batch
        self._clip_gradients = clip_gradients
        self._seed = seed
        seed_all(seed)
        self._model = task.model()
        self._shards = Shards(task, 1, seed)

    def train(self, samples: int) -> dict[str, Any]:
        """Train on (at least) so many samples, then evaluate on all test data."""
        model, task = self._model, self._task
        optimizer = task.optimizer(model)
        batches = self._shards.train([0])
        stream = seed_for(self._seed, 0, [0])
        steps = math.ceil(samples / self._batch)
        inner_step = InnerStep(task, optimizer, steps, self._clip_gradients)
        flops = self._count(batches.take(batch_indices(len(batches), self._batch, stream, 0, 1)[0]))
        model.train()
        seed_all(self._seed)
        begun = time.monotonic()
        for first in range(0, steps, _INDICES_AHEAD):
            ahead = min(_INDICES_AHEAD, steps - first)
            for step, numbers in enumerate(batch_indices(len(batches), self._batch, stream, first, ahead), first):
                optimizer.zero_grad()
                loss = task.loss(model, batches.take(numbers))
                with task.code("the backward pass of loss()"):
                    loss.backward()  # type: ignore[no-untyped-call]
                inner_step.take(step)
        seconds = time.monotonic() - begun
        trained = steps * self._batch
        return {
            **self._evaluated(self._shards),
            "samples": trained,
            "seconds": seconds,
            "samples_per_second": trained / seconds if seconds else 0.0,
            "parameters": self._parameters(),
            "flops_per_sample": flops / self._batch,
        }

    def check(self, most_samples: int, steps: int) -> dict[str, Any]:
        """One step of everything, of a job of `steps`; about so many test samples are evaluated at the most."""
        batches = self._shards.train([0])
        numbers = batch_indices(len(batches), self._batch, self._seed, 0, 1)[0]
        self._model.train()
        optimizer = self._task.optimizer(self._model)
        with self._task.code("model()"):
            layout = flat.layout_of(self._model, optimizer)
            start = flat.read(self._model, layout)
            flat.write(start, self._model, layout)
            frozen = FrozenTensors(flat.frozen_tensors(self._model, layout), layout.frozen)
        with self._task.code("data()"):
            batch = batches.take(numbers)
        flops = self._count(batch)
        InnerStep(self._task, optimizer, steps, self._clip_gradients).take(0)
        for step in (steps // 2, steps - 1):
            self._task.schedule(step, steps)
        with self._task.code("local steps"):
            flat.difference(start, self._model, layout)
            frozen.check(flat.frozen_tensors(self._model, layout))
        with self._task.code("model()"):
            file_layout(self._model, layout)
        test_samples = sum(len(test) for test in self._shards.test([0]))
        # A smaller shard instead of a part of this one: `evaluate` may count on what `data` gives.
        few = Shards(self._task, min(MOST_SHARDS, max(1, test_samples // most_samples)), self._seed)
        return {
            **self._evaluated(few),
            "parameters": self._parameters(),
            "train_samples": len(batches),
            "test_samples": test_samples,
            "flops_per_sample": flops / self._batch,
        }

    def evaluate_file(self, weights: Path) -> dict[str, Any]:
        """Metrics of a safetensors file on all test data. Raises `SettingsError` when it is not this model's."""
        try:
            self._model.load_state_dict(safetensors.torch.load_file(weights))
        except (OSError, safetensors.SafetensorError, RuntimeError) as error:
            raise SettingsError(
                f"{weights} does not hold this task's weights: {error}", fix="axon fetch JOB -o OUT"
            ) from error
        return {**self._evaluated(self._shards), "parameters": self._parameters()}

    def _count(self, batch: Any) -> int:
        """Operations of one step; leaves gradients behind."""

        def gradients() -> float:
            loss = self._task.loss(self._model, batch)
            with self._task.code("the backward pass of loss()"):
                loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        return FlopCounts().count(batch, gradients)[1]

    def _evaluated(self, shards: Shards) -> dict[str, Any]:
        tests = shards.test([0])
        metrics, samples = evaluate(self._task, self._model, tests, self._batch) if tests else ({}, 0)
        return {**metrics, "metrics": metrics, "test_samples": samples}

    def _parameters(self) -> int:
        return sum(parameter.numel() for parameter in self._model.parameters())
