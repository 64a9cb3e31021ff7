"""The user's `class Task`, loaded from the bundle, with every answer of it checked.

All methods raise `TaskMistake` for what the task's code does wrong (see `mistakes`), and nothing else of its doing.
"""

from __future__ import annotations

import importlib.util
import math
import random
import sys
from collections.abc import Callable, Mapping, Sized
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, default_collate

from axonp2p.errors import TaskMistake
from axonp2p.training.trainer.mistakes import TaskCode

_NEEDED = {"model": "model(self)", "data": "data(self, split, shard, shards)", "loss": "loss(self, model, batch)"}
_MOST_METRICS = 32
_LONGEST_METRIC = 40


class Task:
    """The task in `file` of the bundle in `folder`."""

    def __init__(self, folder: Path, file: str) -> None:
        folder = folder.resolve()
        self._folder = folder
        self._user: Any = _make(folder, file)
        self._in_loss = self.code("loss()")
        self._loader_collate: Callable[[list[Any]], Any] | None = None
        """Of the first DataLoader that `data()` gave."""

    def code(self, doing: str) -> TaskCode:
        """A block whose exceptions are the task's mistake."""
        return TaskCode(doing, self._folder)

    def model(self) -> nn.Module:
        """A new model."""
        with self.code("model()"):
            model = self._user.model()
        if not isinstance(model, nn.Module):
            raise _wrong("model()", f"it returned {_kind(model)}; it must return a torch.nn.Module")
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise _wrong("model()", "the model has no parameters to train")
        return model

    def data(self, split: str, shard: int, shards: int) -> Any | None:
        """One shard as a dataset with a length and items by number; None only where there is no test data."""
        doing = f'data("{split}", {shard}, {shards})'
        with self.code(doing):
            dataset = self._user.data(split, shard, shards)
        if isinstance(dataset, DataLoader):
            dataset = self._taken_apart(dataset)
        if dataset is None and split == "test":
            return None
        if not isinstance(dataset, Sized) or not hasattr(dataset, "__getitem__"):
            endless = isinstance(dataset, IterableDataset)
            more = ", which an IterableDataset has not: a list of the shard's samples has" if endless else ""
            raise _wrong(
                doing, f"it returned {_kind(dataset)}; it must return a Dataset with len() and items by number{more}"
            )
        return dataset

    def _taken_apart(self, loader: DataLoader[Any]) -> Any:
        """Its dataset: which samples make a batch is decided by their numbers, so that a round can be redone."""
        if self._loader_collate is None:
            print("data(): of the DataLoader its dataset and collate_fn are used; batches are those of job.toml")
            self._loader_collate = loader.collate_fn
        return loader.dataset

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """The task's optimiser, or AdamW."""
        if not hasattr(self._user, "optimizer"):
            return torch.optim.AdamW(parameter for parameter in model.parameters() if parameter.requires_grad)
        with self.code("optimizer()"):
            optimizer = self._user.optimizer(model)
        if not isinstance(optimizer, torch.optim.Optimizer):
            schedule = isinstance(optimizer, tuple | list | Mapping)
            more = ". A schedule is a method of its own, schedule(self, step, steps)" if schedule else ""
            raise _wrong("optimizer()", f"it returned {_kind(optimizer)}; it must return a torch.optim.Optimizer{more}")
        return optimizer

    def schedule(self, step: int, steps: int) -> float | None:
        """By what the learning rates of this step of the job are multiplied; None: the task has no schedule."""
        if not hasattr(self._user, "schedule"):
            return None
        with self.code("schedule()"):
            factor = float(self._user.schedule(step, steps))
        if not 0 <= factor < math.inf:
            raise _wrong("schedule()", f"it returned {factor} for step {step} of {steps}; it must return 0 or more")
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
        with self._in_loss:
            loss = self._user.loss(model, batch)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise _wrong("loss()", f"it returned {_kind(loss)}; it must return a tensor with one number")
        if not loss.requires_grad and torch.is_grad_enabled():
            raise _wrong("loss()", "the loss does not depend on the model: was it computed with .detach() or .item()?")
        return loss

    @property
    def evaluates(self) -> bool:
        """True when the task has its own `evaluate`."""
        return hasattr(self._user, "evaluate")

    def evaluate(self, model: nn.Module, dataset: Any) -> dict[str, float]:
        """The task's own metrics on a dataset."""
        with self.code("evaluate()"):
            metrics = self._user.evaluate(model, dataset)
            if not isinstance(metrics, Mapping):
                raise _wrong("evaluate()", f"it returned {_kind(metrics)}; it must return a dict of numbers by name")
            found = {str(name): float(value) for name, value in metrics.items()}
        if len(found) > _MOST_METRICS or any(len(name) > _LONGEST_METRIC for name in found):
            raise _wrong("evaluate()", f"at most {_MOST_METRICS} metrics, with names of {_LONGEST_METRIC} characters")
        return found


def seed_all(seed: int) -> None:
    """Make everything repeatable that a task may draw chance from."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


def seed_again(seed: int) -> None:
    """The same, often and in little time: `torch.manual_seed` asks all kinds of devices, which are not here."""
    if _other_devices():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


@cache
def _other_devices() -> bool:
    return torch.accelerator.is_available()


def _make(folder: Path, file: str) -> Any:
    path = folder / file
    doing = f"loading {file}"
    # The bundle is read-only in the sandbox, and nobody wants a __pycache__ in their job's folder.
    sys.dont_write_bytecode = True
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("axon_task", path)
    if spec is None or spec.loader is None:
        raise _wrong(doing, f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["axon_task"] = module  # dataclasses and pickle look their module up
    with TaskCode(doing, folder):
        spec.loader.exec_module(module)
    kind = getattr(module, "Task", None)
    if not isinstance(kind, type):
        raise _wrong(doing, f"{file} has no class Task")
    for name, signature in _NEEDED.items():
        if not callable(getattr(kind, name, None)):
            raise _wrong(doing, f"class Task has no method {signature}")
    with TaskCode("Task()", folder):
        return kind()


def _wrong(doing: str, sentence: str) -> TaskMistake:
    return TaskMistake(doing, cause=f"{doing}: {sentence}.")


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"
