"""One step of the task's optimiser, with its schedule and its bound for gradients."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import optim

from axonp2p.errors import TaskMistake
from axonp2p.training.trainer.task import Task


class InnerStep:
    """Of one model's optimiser, in a job of `steps` local steps.

    The schedule is a function of the step's number in the job. So a member that joins late, a round that is redone and
    a job that is resumed take a step at the same rate. Between steps the optimiser has the rates that the task gave it:
    its memory holds nothing of the schedule, and a check of its work sees settings that never change.
    """

    def __init__(self, task: Task, optimizer: optim.Optimizer, steps: int, clip_gradients: float) -> None:
        """`clip_gradients`: the largest norm of all gradients together; 0: any."""
        self._task = task
        self._optimizer = optimizer
        self._steps = steps
        self._clip_gradients = clip_gradients

    def take(self, step: int) -> None:
        """The step with that number, from 0. Raises `TaskMistake` for a schedule that gives no factor."""
        groups = self._optimizer.param_groups
        with self._task.code("optimizer()"):
            if self._clip_gradients:
                trained = list(chain.from_iterable(group["params"] for group in groups))
                torch.nn.utils.clip_grad_norm_(trained, self._clip_gradients)
        rates: list[Any] = [group.get("lr") for group in groups]
        if (factor := self._task.schedule(step, self._steps)) is not None:
            if None in rates:
                raise TaskMistake("schedule()", cause="schedule(): the optimiser has no learning rate to multiply.")
            for group, rate in zip(groups, rates, strict=True):
                group["lr"] = rate * factor
        with self._task.code("optimizer()"):
            self._optimizer.step()
        if factor is not None:
            for group, rate in zip(groups, rates, strict=True):
                group["lr"] = rate
