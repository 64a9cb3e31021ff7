"""A task in one process, with an ordinary PyTorch loop: the baseline that rounds and exchanges are measured against."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from axonp2p.errors import SettingsError
from axonp2p.training.options import StepOptions
from axonp2p.training.trainer.device import CPU, placed
from axonp2p.training.trainer.inner_step import InnerOptimizers, InnerStep
from axonp2p.training.trainer.local_trainer import evaluate
from axonp2p.training.trainer.samples.shards import Shards
from axonp2p.training.trainer.task import CheckedTask, seed_all

_PLAIN = StepOptions()


class PlainRun:
    """One model, one shard, one process. Everything raises `TaskMistake` for what the task's code does wrong."""

    def __init__(
        self, task: CheckedTask, batch: int, seed: int, options: StepOptions = _PLAIN, device: torch.device = CPU
    ) -> None:
        self._task = task
        self._batch = batch
        self._options = options
        self._seed = seed
        seed_all(seed)
        self._model = placed(task.model(), device)
        self._shards = Shards(task, 1, seed, batch, options)

    def train(self, samples: int) -> dict[str, Any]:
        """Train on (at least) so many samples, then evaluate on all test data."""
        batches = self._shards.train([0])
        steps = math.ceil(samples / self._batch)
        inner_step = self._inner_step(steps)
        first = batches.at(0)
        flops = 0 if self._task.steps_itself else inner_step.gradients(first)[1]  # counted before the clock runs
        self._model.train()
        seed_all(self._seed)
        begun = time.monotonic()
        for step in range(steps):
            _, counted = inner_step.take(step, batches.at(step))
            flops = flops or counted
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

    def evaluate_file(self, weights: Path) -> dict[str, Any]:
        """Metrics of a safetensors file on all test data. Raises `SettingsError` when it is not this model's."""
        try:
            self._model.load_state_dict(safetensors.torch.load_file(weights))
        except (OSError, safetensors.SafetensorError, RuntimeError) as error:
            raise SettingsError(
                f"{weights} does not hold this task's weights: {error}", fix="axon fetch JOB -o OUT"
            ) from error
        return {**self._evaluated(self._shards), "parameters": self._parameters()}

    def _inner_step(self, steps: int) -> InnerStep:
        self._optimizers = InnerOptimizers(self._task.optimizers(self._model))
        return InnerStep(self._task, self._model, self._optimizers, steps, self._options)

    def _evaluated(self, shards: Shards) -> dict[str, Any]:
        tests = shards.test([0])
        metrics, samples = evaluate(self._task, self._model, tests, self._batch) if tests else ({}, 0)
        return {**metrics, "metrics": metrics, "test_samples": samples}

    def _parameters(self) -> int:
        return sum(parameter.numel() for parameter in self._model.parameters())
