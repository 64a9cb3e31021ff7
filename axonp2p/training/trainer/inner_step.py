"""One local step: gradients and the task's optimisers, or the task's own `step`, at the rates of its schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn, optim

from axonp2p.errors import TaskMistake
from axonp2p.training.options import StepOptions
from axonp2p.training.trainer.device import meeting_on, on_device
from axonp2p.training.trainer.flops import FlopCounts
from axonp2p.training.trainer.samples.step_batches import BatchPart
from axonp2p.training.trainer.task import CheckedTask

FIRST_LOSS_SCALE = 2.0**16
"""As `torch.amp.GradScaler` begins."""
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class InnerOptimizers:
    """The optimisers of one task as if they were one: their groups in order, and one numbering of their parameters."""

    def __init__(self, each: Sequence[optim.Optimizer]) -> None:
        self.each = tuple(each)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Of all of them: changing a group changes its optimiser."""
        return [group for one in self.each for group in one.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Their memories and their settings; parameters are numbered through."""
        state: dict[int, Any] = {}
        groups: list[dict[str, Any]] = []
        for first, one in self._numbered():
            said = one.state_dict()
            state |= {first + number: remembered for number, remembered in said["state"].items()}
            groups += [{**group, "params": [first + number for number in group["params"]]} for group in _groups(said)]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, said: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        groups = iter(said["param_groups"])
        for first, one in self._numbered():
            own = [next(groups) for _ in one.param_groups]
            last = first + _parameters(one)
            state = {number - first: value for number, value in said["state"].items() if first <= number < last}
            lowered = [{**group, "params": [number - first for number in group["params"]]} for group in own]
            one.load_state_dict({"state": state, "param_groups": lowered})

    def weights_were_replaced(self) -> None:
        """L-BFGS forgets its curvature pairs: they hold only between points that its own steps connect."""
        for one in self.each:
            if isinstance(one, optim.LBFGS):
                one.state.clear()

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for one in self.each:
            one.zero_grad()

    def _numbered(self) -> Iterable[tuple[int, optim.Optimizer]]:
        """Each with the number of its first parameter."""
        first = 0
        for one in self.each:
            yield first, one
            first += _parameters(one)


class InnerStep:
    """Of one model, in a job of `steps` local steps.

    The schedule is a function of the step's number in the job. So a member that joins late, a round that is redone and
    a job that is resumed take a step at the same rate. Between steps the optimisers have the rates that the task gave
    them: their memory holds nothing of the schedule, and a check of the work sees settings that never change.
    """

    def __init__(
        self, task: CheckedTask, model: nn.Module, optimizers: InnerOptimizers, steps: int, options: StepOptions
    ) -> None:
        if task.steps_itself and (options.micro_batch or options.autocast != "off"):
            cause = (
                "micro-batch and autocast of job.toml are for loss(); class Task has its own step(), which does both."
            )
            raise TaskMistake("step()", cause=cause)
        self._task = task
        self._model = model
        self._optimizers = optimizers
        self._steps = steps
        self._options = options
        self._loss_scale = 1.0
        self.flops = FlopCounts(model)
        for one in optimizers.each if options.clip_gradients else ():
            # Before each step of each optimiser, since a step() of the task's own may take several.
            one.register_step_pre_hook(self._clip)
        self.begin_segment()

    def begin_segment(self) -> None:
        """The scale of the loss begins anew, so that the steps from here on are the same when they are done again."""
        self._loss_scale = FIRST_LOSS_SCALE if self._options.autocast == "fp16" else 1.0

    def take(self, number: int, parts: Sequence[BatchPart]) -> tuple[float, int]:
        """The step with that number, from 0, on a batch in parts; gives its loss and its operations.

        Raises `TaskMistake` for a schedule that gives no factor too.
        """
        groups = self._optimizers.param_groups
        rates: list[Any] = [group.get("lr") for group in groups]
        if (factor := self._task.schedule(number, self._steps)) is not None:
            if None in rates:
                raise TaskMistake("schedule()", cause="schedule(): the optimiser has no learning rate to multiply.")
            for group, rate in zip(groups, rates, strict=True):
                group["lr"] = rate * factor
        if self._task.steps_itself:
            (part,) = self._here(parts)
            loss, flops = self.flops.count(part.batch, lambda: self._own_step(part.batch))
        else:
            loss, flops = self.gradients(parts)
            with self._task.code("optimizer()"):
                for one in self._optimizers.each:
                    one.step()
        if factor is not None:
            for group, rate in zip(groups, rates, strict=True):
                group["lr"] = rate
        return loss, flops

    def gradients(self, parts: Sequence[BatchPart]) -> tuple[float, int]:
        """Of a batch in parts, without a step; gives its loss and its operations.

        In float16 the loss is scaled, so that small gradients are not rounded to 0 (Micikevicius et al. 2018, mixed
        precision training). Where they become infinite, they are computed once more at half the scale: a step is never
        left out, and no scale is remembered from one segment to the next.
        """
        parts = self._here(parts)
        loss, flops = self._backward(parts)
        while self._loss_scale > 1 and math.isfinite(loss) and not _finite(self._gradients()):
            self._loss_scale /= 2
            loss, flops = self._backward(parts)
        if self._loss_scale > 1:
            for gradient in self._gradients():
                gradient.div_(self._loss_scale)
        return loss, flops

    def _backward(self, parts: Sequence[BatchPart]) -> tuple[float, int]:
        with self._task.code("optimizer()"):
            self._optimizers.zero_grad()
        total = sum(part.samples for part in parts)
        loss, flops = 0.0, 0
        for part in parts:
            share = part.samples / total
            one, operations = self.flops.count(part.batch, lambda part=part, share=share: self._part(part, share))  # type: ignore[misc]
            loss += one * share
            flops += operations
        return loss, flops

    @property
    def _device(self) -> torch.device:
        return next(self._model.parameters()).device

    def _here(self, parts: Sequence[BatchPart]) -> list[BatchPart]:
        """The same where the model is."""
        with self._task.code("making a batch"):
            return [BatchPart(on_device(part.batch, self._device), part.samples) for part in parts]

    def _own_step(self, batch: Any) -> float:
        with meeting_on(self._device):
            return self._task.step(self._model, batch, self._optimizers.each)

    def _part(self, part: BatchPart, share: float) -> float:
        with self._autocast(), meeting_on(self._device):
            loss = self._task.loss(self._model, part.batch)
        weight = share * self._loss_scale
        with self._task.code("the backward pass of loss()"):
            (loss if weight == 1 else loss * weight).backward()  # type: ignore[no-untyped-call]
        return loss.item()

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._options.autocast == "off":
            return nullcontext()
        return torch.autocast(self._device.type, dtype=_TYPES[self._options.autocast])

    def _gradients(self) -> list[Tensor]:
        groups = self._optimizers.param_groups
        parameters = chain.from_iterable(group["params"] for group in groups)
        return [parameter.grad for parameter in parameters if parameter.grad is not None]

    def _clip(self, optimizer: optim.Optimizer, *_: Any) -> None:
        trained = list(chain.from_iterable(group["params"] for group in optimizer.param_groups))
        torch.nn.utils.clip_grad_norm_(trained, self._options.clip_gradients)


def _finite(gradients: Sequence[Tensor]) -> bool:
    """Whether all are; a card is waited for once, and not for each."""
    values = [one.coalesce().values() if one.is_sparse else one for one in gradients]
    return not values or bool(torch.stack([torch.isfinite(one).all() for one in values]).all())


def _parameters(optimizer: optim.Optimizer) -> int:
    return sum(len(group["params"]) for group in optimizer.param_groups)


def _groups(said: dict[str, Any]) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = said["param_groups"]
    return groups
