"""A task's data in shards, loaded once each; read ahead by processes of their own where a job asks for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, TensorDataset

from axonp2p.errors import TaskMistake
from axonp2p.training.options import StepOptions
from axonp2p.training.plan import seed_for
from axonp2p.training.trainer.samples.step_batches import (
    Batches,
    BatchPart,
    Draw,
    NumberedBatches,
    StepBatches,
    StreamedBatches,
)
from axonp2p.training.trainer.task import CheckedTask, seed_all

LONGEST_READ_S = 600.0
"""A step whose samples take longer is the task's mistake."""


class PrefetchedBatches:
    """The same batches as without, in the same order, read ahead as a `DataLoader` with workers does.

    Each step is read with the chance that belongs to its number.
    """

    def __init__(self, task: CheckedTask, batches: NumberedBatches, workers: int) -> None:
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


_PLAIN = StepOptions()


class Shards:
    """A task's data in `count` shards. The chance that `data()` draws is the same for every shard of a job."""

    def __init__(self, task: CheckedTask, count: int, seed: int, batch: int, options: StepOptions = _PLAIN) -> None:
        """`batch`: samples a step."""
        self._task = task
        self._count = count
        self._seed = seed
        self._draw = Draw(batch, options.micro_batch, seed, ahead=options.loader_workers > 0)
        self._workers = options.loader_workers
        self._loaded: dict[tuple[str, int], Any | None] = {}
        self._train: tuple[tuple[int, ...], StepBatches] | None = None

    def train(self, numbers: Sequence[int], *, ahead: bool = True) -> StepBatches:
        """The training samples of these shards as one dataset. Raises `TaskMistake` when there are none.

        `ahead`: read by the processes that the job has for it.
        """
        key = tuple(sorted(numbers))
        if self._train is None or self._train[0] != key:
            batches = self._batches_of(key)
            if self._workers and ahead:
                if not isinstance(batches, NumberedBatches):
                    cause = (
                        "data(): loader-workers of job.toml are for datasets with len(); this is an IterableDataset."
                    )
                    raise TaskMistake("data()", cause=cause)
                batches = PrefetchedBatches(self._task, batches, self._workers)
            self._train = key, batches
        return self._train[1]

    def _batches_of(self, key: tuple[int, ...]) -> StepBatches:
        doing = f'data("train", {key[0]}, {self._count})'
        draw = replace(self._draw, seed=seed_for(self._seed, 0, key))
        found = [self._shard("train", number) for number in key]
        streams = [part for part in found if isinstance(part, IterableDataset)]
        if len(streams) == len(found):
            return StreamedBatches(self._task, streams, draw, doing)
        if streams:
            raise TaskMistake(doing, cause=f"{doing}: some shards are an IterableDataset, and others are not.")
        with self._task.code("data()"):
            joined = _joined([part for part in found if len(part)])
        if joined is None:
            cause = f"{doing}: there are no samples in it. Are there more shards than samples?"
            raise TaskMistake(doing, cause=cause)
        return NumberedBatches(self._task, Batches(self._task, joined), draw)

    def test(self, numbers: Sequence[int]) -> list[Any]:
        """The test datasets of these shards, as the task gave them; without those that are absent or empty."""
        found = []
        for number in sorted(numbers):
            dataset = self._shard("test", number)
            with self._task.code(f'data("test", {number}, {self._count})'):
                if dataset is not None and len(dataset):
                    found.append(dataset)
        return found

    def _shard(self, split: str, number: int) -> Any:
        key = split, number
        if key not in self._loaded:
            seed_all(self._seed)
            self._loaded[key] = self._task.data(split, number, self._count)
        return self._loaded[key]


def _joined(parts: list[Any]) -> Any | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    if all(type(part) is TensorDataset for part in parts):
        columns = list(zip(*(part.tensors for part in parts), strict=True))
        if all(len({(column.dtype, column.shape[1:]) for column in tensors}) == 1 for tensors in columns):
            return TensorDataset(*(torch.cat(tensors) for tensors in columns))
    return ConcatDataset(parts)
