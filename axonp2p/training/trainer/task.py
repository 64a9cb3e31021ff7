"""The user's `class Task`, loaded from the bundle, with every answer of it checked.

All methods raise `TaskMistake` for what the task's code does wrong (see `task_file`), and nothing else of its doing.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, default_collate

from axonp2p.errors import TaskMistake
from axonp2p.training.trainer.device import seed_cards
from axonp2p.training.trainer.task_file import TaskCode, load_task, mistake_in

MOST_OPTIMIZERS = 16
MOST_TEST_SAMPLES = 2**20
"""Of a stream of test samples, which is read to its end."""
_MOST_NUMBERS = 2**28
_MOST_METRICS = 32
_LONGEST_METRIC = 40


class CheckedTask:
    """The `class Task` in `file` of the bundle in `folder`."""

    def __init__(self, folder: Path, file: str) -> None:
        folder = folder.resolve()
        self._folder = folder
        self._user: Any = load_task(folder, file)
        self._in_loss, self._in_step = self.code("loss()"), self.code("step()")
        self._loader_collate: Callable[[list[Any]], Any] | None = None
        """Of the first DataLoader that `data()` gave."""
        self._test_loaders: dict[int, tuple[Any, DataLoader[Any]]] = {}
        """Those that it gave for test data, with the dataset, by the identity of that."""

    def code(self, doing: str) -> TaskCode:
        """A block whose exceptions are the task's mistake."""
        return TaskCode(doing, self._folder)

    def model(self) -> nn.Module:
        """A new model."""
        with self.code("model()"):
            model = self._user.model()
        if not isinstance(model, nn.Module):
            raise mistake_in("model()", f"it returned {_kind(model)}; it must return a torch.nn.Module")
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise mistake_in("model()", "the model has no parameters to train")
        return model

    def data(self, split: str, shard: int, shards: int) -> Any | None:
        """One shard as a dataset with a length and items by number; None only where there is no test data."""
        doing = f'data("{split}", {shard}, {shards})'
        with self.code(doing):
            dataset = self._user.data(split, shard, shards)
        if isinstance(dataset, DataLoader):
            loader, dataset = dataset, self._taken_apart(dataset)
            if split == "test":
                if isinstance(dataset, IterableDataset):
                    dataset = self._read_to_its_end(dataset, doing)
                self._test_loaders[id(dataset)] = dataset, loader
        if dataset is None and split == "test":
            return None
        if isinstance(dataset, IterableDataset):
            return self._read_to_its_end(dataset, doing) if split == "test" else dataset
        if not isinstance(dataset, Sized) or not hasattr(dataset, "__getitem__"):
            once = isinstance(dataset, Iterable)
            more = ". What can be read only once is no dataset: a class of IterableDataset begins again" if once else ""
            raise mistake_in(
                doing,
                f"it returned {_kind(dataset)}; it must return a Dataset with len() and items by number, or an "
                f"IterableDataset{more}",
            )
        return dataset

    def _read_to_its_end(self, stream: Iterable[Any], doing: str) -> list[Any]:
        with self.code(doing):
            samples = list(islice(stream, MOST_TEST_SAMPLES + 1))
        if len(samples) > MOST_TEST_SAMPLES:
            raise mistake_in(doing, f"its stream has more than {MOST_TEST_SAMPLES} samples, or no end")
        return samples

    def _taken_apart(self, loader: DataLoader[Any]) -> Any:
        """Its dataset: which samples make a batch is decided by their numbers, so that a round can be redone."""
        if self._loader_collate is None:
            print("data(): of the DataLoader its dataset and collate_fn are used; batches are those of job.toml")
            if type(loader.sampler).__name__ not in ("RandomSampler", "SequentialSampler", "_InfiniteConstantSampler"):
                print("data(): its sampler is not used: class Task may have its own sampler(self, dataset, epoch)")
            self._loader_collate = loader.collate_fn
        return loader.dataset

    def optimizers(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """The task's optimisers, or one AdamW."""
        if not hasattr(self._user, "optimizer"):
            return [torch.optim.AdamW(parameter for parameter in model.parameters() if parameter.requires_grad)]
        with self.code("optimizer()"):
            made = self._user.optimizer(model)
        given = list(made) if isinstance(made, list | tuple) else [made]
        if not given or not all(isinstance(one, torch.optim.Optimizer) for one in given):
            schedule = isinstance(made, tuple | list | Mapping)
            more = ". A schedule is a method of its own, schedule(self, step, steps)" if schedule else ""
            raise mistake_in(
                "optimizer()", f"it returned {_kind(made)}; it must return a torch.optim.Optimizer, or several{more}"
            )
        if len(given) > MOST_OPTIMIZERS:
            raise mistake_in("optimizer()", f"it returned {len(given)} optimisers; {MOST_OPTIMIZERS} are the most")
        for one in given:
            with self.code("optimizer()"):
                lacks = {"state", "param_groups"} - one.state_dict().keys()
            if lacks or not getattr(one, "param_groups", None):
                lack = " and ".join(sorted(lacks)) or "param_groups"
                raise mistake_in("optimizer()", f"the state_dict() of its {type(one).__name__} has no {lack}")
        if not self.steps_itself and _overlapping(given):
            both = "two of its optimisers have the same parameter: class Task then needs "
            raise mistake_in("optimizer()", f"{both}step(self, model, batch, optimizers)")
        return given

    def schedule(self, step: int, steps: int) -> float | None:
        """By what the learning rates of this step of the job are multiplied; None: the task has no schedule."""
        if not hasattr(self._user, "schedule"):
            return None
        with self.code("schedule()"):
            factor = float(self._user.schedule(step, steps))
        if not 0 <= factor < math.inf:
            raise mistake_in("schedule()", f"it returned {factor} for step {step} of {steps}; it must return 0 or more")
        return factor

    def collate(self, samples: list[Any]) -> Any:
        """One batch of these samples, as the task, its DataLoader or PyTorch makes it."""
        if own := self._own_collate:
            with self.code("collate()"):
                return own(samples)
        try:
            return default_collate(samples)
        except (RuntimeError, TypeError) as error:
            cause = (
                f"no batch can be made of these samples: {error}. class Task may have its own collate(self, samples)."
            )
            raise TaskMistake("making a batch", cause=cause) from None

    @property
    def collates(self) -> bool:
        """Whether batches are made otherwise than PyTorch makes them."""
        return self._own_collate is not None

    @property
    def _own_collate(self) -> Callable[[list[Any]], Any] | None:
        own = getattr(self._user, "collate", None) or self._loader_collate
        return None if own is default_collate else own

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """The loss of a batch: one number that can be differentiated, unless gradients are off."""
        if not hasattr(self._user, "loss"):
            raise mistake_in(
                "loss()", "class Task has no loss(self, model, batch), nor an evaluate() that does without"
            )
        with self._in_loss:
            loss = self._user.loss(model, batch)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise mistake_in("loss()", f"it returned {_kind(loss)}; it must return a tensor with one number")
        if not loss.requires_grad and torch.is_grad_enabled():
            raise mistake_in(
                "loss()", "the loss does not depend on the model: was it computed with .detach() or .item()?"
            )
        return loss

    @property
    def steps_itself(self) -> bool:
        """True when the task has its own `step`."""
        return hasattr(self._user, "step")

    def step(self, model: nn.Module, batch: Any, optimizers: Sequence[torch.optim.Optimizer]) -> float:
        """The task's own step with its optimisers; gives its loss."""
        with self._in_step:
            loss = self._user.step(model, batch, list(optimizers))
        if not isinstance(loss, int | float) and not (isinstance(loss, Tensor) and loss.numel() == 1):
            raise mistake_in("step()", f"it returned {_kind(loss)}; it must return the loss, which is one number")
        return loss.item() if isinstance(loss, Tensor) else float(loss)

    @property
    def samples_itself(self) -> bool:
        """True when the task has its own `sampler`."""
        return hasattr(self._user, "sampler")

    def sampler(self, dataset: Any, epoch: int) -> array[int]:
        """The task's own order of an epoch: numbers of samples, some of them perhaps never or several times."""
        with self.code("sampler()"):
            numbers = array("q", (int(number) for number in islice(self._user.sampler(dataset, epoch), _MOST_NUMBERS)))
        count = len(dataset)
        if not numbers or not all(0 <= number < count for number in numbers):
            raise mistake_in("sampler()", f"it must give numbers of samples, from 0 to {count - 1}, at least one")
        return numbers

    @property
    def evaluates(self) -> bool:
        """True when the task has its own `evaluate`."""
        return hasattr(self._user, "evaluate")

    def evaluate(self, model: nn.Module, dataset: Any) -> dict[str, float]:
        """The task's own metrics on a dataset."""
        with self.code("evaluate()"):
            metrics = self._user.evaluate(model, self._as_given(dataset))
            if not isinstance(metrics, Mapping):
                raise mistake_in(
                    "evaluate()", f"it returned {_kind(metrics)}; it must return a dict of numbers by name"
                )
            found = {str(name): float(value) for name, value in metrics.items()}
        if len(found) > _MOST_METRICS or any(len(name) > _LONGEST_METRIC for name in found):
            raise mistake_in(
                "evaluate()", f"at most {_MOST_METRICS} metrics, with names of {_LONGEST_METRIC} characters"
            )
        return found

    def _as_given(self, dataset: Any) -> Any:
        """A test dataset, in batches where the task gave a DataLoader: in this process, and in order."""
        if id(dataset) not in self._test_loaders:
            return dataset
        _, loader = self._test_loaders[id(dataset)]
        if loader.batch_size is None and loader.batch_sampler is not None:
            return DataLoader(dataset, batch_sampler=loader.batch_sampler, collate_fn=loader.collate_fn)
        return DataLoader(dataset, batch_size=loader.batch_size, collate_fn=loader.collate_fn)


def seed_all(seed: int) -> None:
    """Make everything repeatable that a task may draw chance from."""
    seed_processor(seed)
    seed_cards(seed)


def seed_processor(seed: int) -> None:
    """The same but for cards, which reading samples must leave as they are: a step of another draws there.

    Often and in little time: `torch.manual_seed` asks all kinds of devices, which are not here.
    """
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


def _overlapping(optimizers: Sequence[torch.optim.Optimizer]) -> bool:
    trained = [id(one) for optimizer in optimizers for group in optimizer.param_groups for one in group["params"]]
    return len(trained) > len(set(trained))


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"
