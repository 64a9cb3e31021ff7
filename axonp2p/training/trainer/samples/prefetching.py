"""Samples of the next steps, read ahead by processes of their own, as a `DataLoader` with workers does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, Dataset

from axonp2p.training.trainer.samples.step_batches import BatchPart, NumberedBatches
from axonp2p.training.trainer.task import Task

LONGEST_READ_S = 600.0
"""A step whose samples take longer is the task's mistake."""


class PrefetchedBatches:
    """The same batches as without, in the same order: each step is read with the chance that belongs to its number."""

    def __init__(self, task: Task, batches: NumberedBatches, workers: int) -> None:
        self._task = task
        self._batches = batches
        self._workers = workers
        self._next = -1
        self._read: Iterator[list[BatchPart]] = iter(())

    @property
    def samples(self) -> int:
        """As `StepBatches`."""
        return self._batches.samples

    def at(self, step: int) -> list[BatchPart]:
        """As `StepBatches`. Another step than the next one makes the processes begin anew."""
        with self._task.code("data()"):
            if step != self._next:
                self._read = iter(self._loader(step))
            self._next = step + 1
            return next(self._read)

    def _loader(self, first: int) -> DataLoader[Any]:
        return DataLoader(
            _Steps(self._batches),
            batch_size=None,
            sampler=itertools.count(first),
            num_workers=self._workers,
            timeout=LONGEST_READ_S,
            multiprocessing_context="fork",
        )


class _Steps(Dataset[list[BatchPart]]):
    """Batches by the number of their step."""

    def __init__(self, batches: NumberedBatches) -> None:
        self._batches = batches

    def __getitem__(self, step: int) -> list[BatchPart]:
        return self._batches.at(step)
