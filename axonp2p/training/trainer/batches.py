"""Shards of data, loaded once each, and batches out of them by sample numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import ConcatDataset, TensorDataset

from axonp2p.errors import TaskMistake
from axonp2p.training.trainer.task import Task, seed_all


class Batches:
    """Batches of one dataset, put together as a `DataLoader` would, without its cost for each batch."""

    def __init__(self, task: Task, dataset: Any) -> None:
        self._task = task
        self._dataset = dataset
        # A TensorDataset can be read many samples at a time: the same batch, some ten times faster.
        self._tensors = dataset.tensors if type(dataset) is TensorDataset and not task.collates else None

    def __len__(self) -> int:
        return len(self._dataset)

    def take(self, numbers: Sequence[int]) -> Any:
        """The samples with these numbers as one batch."""
        if self._tensors is not None:
            picked = torch.tensor(numbers)
            return [tensor[picked] for tensor in self._tensors]
        many = getattr(self._dataset, "__getitems__", None)
        return self._task.collate(many(numbers) if many else [self._dataset[number] for number in numbers])


class Shards:
    """A task's data in `count` shards. Whatever chance `data()` draws is the same for every shard of a job."""

    def __init__(self, task: Task, count: int, seed: int) -> None:
        self._task = task
        self._count = count
        self._seed = seed
        self._loaded: dict[tuple[str, int], Any | None] = {}
        self._train: tuple[tuple[int, ...], Batches] | None = None

    def train(self, numbers: Sequence[int]) -> Batches:
        """The training samples of these shards as one dataset. Raises `TaskMistake` when there are none."""
        key = tuple(sorted(numbers))
        if self._train is None or self._train[0] != key:
            with self._task.code("data()"):
                parts = [part for part in (self._shard("train", number) for number in key) if len(part)]
                joined = _joined(parts)
            if joined is None:
                doing = f'data("train", {key[0]}, {self._count})'
                raise TaskMistake(
                    doing, cause=f"{doing}: there are no samples in it. Are there more shards than samples?"
                )
            self._train = key, Batches(self._task, joined)
        return self._train[1]

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
