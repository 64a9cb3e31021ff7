"""Batches out of a dataset, by the numbers of their samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import TensorDataset

from axonp2p.training.trainer.task import Task


class Batches:
    """Batches of one dataset, put together as a `DataLoader` would, without its cost for each batch."""

    def __init__(self, task: Task, dataset: Any) -> None:
        self._task = task
        self.dataset = dataset
        # A TensorDataset can be read many samples at a time: the same batch, some ten times faster.
        self._tensors = dataset.tensors if type(dataset) is TensorDataset and not task.collates else None

    def __len__(self) -> int:
        return len(self.dataset)

    def take(self, numbers: Sequence[int]) -> Any:
        """The samples with these numbers as one batch."""
        if self._tensors is not None:
            picked = torch.tensor(numbers)
            return [tensor[picked] for tensor in self._tensors]
        many = getattr(self.dataset, "__getitems__", None)
        return self._task.collate(many(numbers) if many else [self.dataset[number] for number in numbers])
