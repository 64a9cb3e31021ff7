"""Which samples a step reads, and batches of them: of a dataset by the step's place in the job, of a stream in turn."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy
import torch
from torch.utils.data import TensorDataset

from axonp2p.errors import TaskMistake
from axonp2p.training.plan import batch_indices, positions, seed_of_epoch, seed_of_reading
from axonp2p.training.trainer.task import CheckedTask, seed_processor


class Batches:
    """Batches of one dataset, put together as a `DataLoader` would, without its cost for each batch."""

    def __init__(self, task: CheckedTask, dataset: Any) -> None:
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


@dataclass(frozen=True)
class BatchPart:
    """Samples of which gradients are computed at a time."""

    batch: Any
    samples: int


@dataclass(frozen=True)
class Draw:
    """How steps draw from the samples of some shards."""

    batch: int
    """Samples a step."""
    micro_batch: int
    """Samples a part; 0: all."""
    seed: int
    ahead: bool = False
    """Whether steps may be read ahead: what is drawn by chance while one is read then depends on its number alone."""

    def parts(self, samples: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """A step's samples, or their numbers, part by part."""
        most = self.micro_batch or len(samples)
        return (samples[begin : begin + most] for begin in range(0, len(samples), most))


class StepBatches(Protocol):
    """The batches of one member's steps."""

    @property
    def samples(self) -> int | None:
        """How many samples the data has; None: nobody knows."""

    def at(self, step: int) -> list[BatchPart]:
        """The batch of this step of the job, from 0. Raises `TaskMistake`."""


class NumberedBatches:
    """Of a dataset whose samples have numbers: shuffled anew for each epoch, or as the task's own `sampler` says."""

    def __init__(self, task: CheckedTask, batches: Batches, draw: Draw) -> None:
        self._task = task
        self._batches = batches
        self._draw = draw
        self._own_epoch = lru_cache(maxsize=3)(self._sampled)

    @property
    def samples(self) -> int:
        """As `StepBatches`."""
        return len(self._batches)

    def at(self, step: int) -> list[BatchPart]:
        """As `StepBatches`."""
        chance = OwnChance(seed_of_reading(self._draw.seed, step)) if self._draw.ahead else nullcontext()
        with self._task.code("data()"), chance:
            return [BatchPart(self._batches.take(part), len(part)) for part in self._draw.parts(self._numbers(step))]

    def _numbers(self, step: int) -> Sequence[int]:
        draw = self._draw
        if not self._task.samples_itself:
            return batch_indices(len(self._batches), draw.batch, draw.seed, step, 1)[0]
        first = len(self._own_epoch(0))
        return positions(self._own_epoch, first, step * draw.batch, draw.batch)

    def _sampled(self, epoch: int) -> array[int]:
        with OwnChance(seed_of_epoch(self._draw.seed, epoch)):
            numbers = self._task.sampler(self._batches.dataset, epoch)
        if epoch and len(numbers) != (first := len(self._own_epoch(0))):
            cause = f"sampler(): it gave {len(numbers)} numbers for epoch {epoch}, and {first} for epoch 0."
            raise TaskMistake("sampler()", cause=cause)
        return numbers


class StreamedBatches:
    """Of streams that are read from their beginning, again and again, in turn where there are several.

    A step reads the samples behind those of the steps before it. A member that begins in the middle of a job reads
    past them. A stream's draws by chance are its own: the steps between two of its samples change nothing in it.
    """

    def __init__(self, task: CheckedTask, streams: Sequence[Any], draw: Draw, doing: str) -> None:
        """`doing`: the call that gave them, as the author knows it."""
        self._task = task
        self._streams = streams
        self._draw = draw
        self._doing = doing
        self._samples = self._endless()
        self._read = 0
        self._chance = OwnChance(draw.seed)

    @property
    def samples(self) -> None:
        """As `StepBatches`."""
        return None

    def at(self, step: int) -> list[BatchPart]:
        """As `StepBatches`."""
        first = step * self._draw.batch
        if first < self._read:
            self._samples, self._read, self._chance = self._endless(), 0, OwnChance(self._draw.seed)
        with self._task.code(self._doing), self._chance:
            for _ in itertools.islice(self._samples, first - self._read):
                pass
            taken = list(itertools.islice(self._samples, self._draw.batch))
        self._read = first + self._draw.batch
        return [BatchPart(self._task.collate(list(part)), len(part)) for part in self._draw.parts(taken)]

    def _endless(self) -> Iterator[Any]:
        while True:
            reading = [iter(stream) for stream in self._streams]
            empty = True
            while reading:
                for one in tuple(reading):
                    try:
                        sample = next(one)
                    except StopIteration:
                        reading.remove(one)
                        continue
                    empty = False
                    yield sample
            if empty:
                raise TaskMistake(
                    self._doing, cause=f"{self._doing}: there are no samples in it. Are there more shards than samples?"
                )


class OwnChance:
    """A block whose draws by chance go on where those of the block before ended, and leave all others as they are."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._inside: Any = None
        self._outside: Any = None

    def __enter__(self) -> None:
        self._outside = _chance()
        if self._inside is None:
            seed_processor(self._seed)
        else:
            _go_on_with(self._inside)

    def __exit__(self, *error: object) -> None:
        self._inside = _chance()
        _go_on_with(self._outside)


def _chance() -> tuple[Any, Any, Any]:
    return torch.default_generator.get_state(), random.getstate(), numpy.random.get_state()


def _go_on_with(chance: tuple[Any, Any, Any]) -> None:
    torch.default_generator.set_state(chance[0])
    random.setstate(chance[1])
    numpy.random.set_state(chance[2])
