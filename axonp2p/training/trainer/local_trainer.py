"""One member's own part of a round: legs of local steps, and what came of them."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Literal

import torch
from torch import Tensor, nn

from axonp2p.blobs.pieces import PieceBook
from axonp2p.errors import TaskMistake
from axonp2p.tensors import flat
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.training.messages import Prepare, RedoSegment, StartRound
from axonp2p.training.plan import seed_at, seed_for
from axonp2p.training.trainer.device import CPU, meeting_on, on_device, placed
from axonp2p.training.trainer.file_layout import file_layout
from axonp2p.training.trainer.inner_step import InnerOptimizers, InnerStep
from axonp2p.training.trainer.marking import Marking
from axonp2p.training.trainer.marks import MarkBytes, from_bytes
from axonp2p.training.trainer.outer_optimizer import State, check_size, first_state
from axonp2p.training.trainer.samples.shards import Shards
from axonp2p.training.trainer.samples.step_batches import Batches, BatchPart, StepBatches
from axonp2p.training.trainer.step_scale import averaged_by
from axonp2p.training.trainer.task import CheckedTask, seed_all
from axonp2p.verification.claims import SegmentRedone


class LegVerdict(Enum):
    """The outcome of a leg after a step."""

    GO_ON = auto()
    ENOUGH = auto()
    """The leg ends here, and counts."""
    ABANDON = auto()
    """Nothing of it is wanted any more."""


Judge = Callable[[int, float, int], LegVerdict]
"""Told after each step: steps of the round done, their mean loss, samples so far."""


@dataclass(frozen=True)
class Leg:
    """The result of the local steps between two exchanges."""

    difference: Tensor
    """Start minus end, flat."""
    steps: int
    samples: int
    loss: float
    """Mean over the steps."""
    flops: int
    places: tuple[MarkBytes, ...] = ()
    """The states committed to: where it began, those on the way, and where it ended."""
    mark_seconds: float = 0.0
    """Spent on that."""
    moved: bool = True
    """Whether any parameter is another one than before."""


@dataclass
class _Round:
    """A round that is being trained."""

    round: int
    most_steps: int
    """Of the round: each round's samples begin where so many steps of the one before would have ended."""
    shards: Sequence[int]
    batches: StepBatches
    legs: int = 0
    steps: int = 0
    samples: int = 0
    losses: float = 0.0
    """Their sum over the steps."""
    mark_seconds: float = 0.0


class LocalTrainer:
    """A task's model and optimisers, on `device`; all vectors that go in and come out are on the processor.

    Raises `TaskMistake` wherever the task's code runs.
    """

    def __init__(self, task: CheckedTask, prepare: Prepare, device: torch.device = CPU) -> None:
        self.device = device
        self._task = task
        self._prepare = prepare
        self._seed = prepare.seed
        self._batch = prepare.batch
        seed_all(prepare.seed)
        made = task.model()
        with task.code("model()"):
            self._model = placed(made, device)
        self._optimizers = InnerOptimizers(task.optimizers(self._model))
        with task.code("model()"):
            self.layout = flat.layout_of(self._model, self._optimizers.each)
            check_size(self.layout)
            self.file_layout = file_layout(self._model, self.layout)
            self.frozen = FrozenTensors(flat.frozen_tensors(self._model, self.layout), self.layout.frozen)
        with task.code("optimizer()"):
            self.averaged = averaged_by(self._optimizers.each)
        self.made_other_frozen = False
        """Whether `model()` makes other frozen parameters here than the job has."""
        options = prepare.step_options
        self._shards = Shards(task, prepare.shards, prepare.seed, prepare.batch, options)
        self._inner_step = InnerStep(task, self._model, self._optimizers, prepare.steps, options)
        self._round: _Round | None = None
        self._start: StartRound | None = None
        with task.code("optimizer()"):
            self._marking = Marking(self._optimizers, self.layout, prepare.seed)
        self._factors: list[tuple[Tensor, Tensor]] = []
        self.accept()

    def first_state(self) -> State:
        """The state that the task's own first weights make."""
        return first_state(flat.read(self._model, self.layout), self.layout)

    def take_frozen(self, data: memoryview, pieces: PieceBook) -> None:
        """The model has these frozen parameters from now on, whatever `model()` made."""
        with self._task.code("model()"):
            self.frozen.take(data, pieces)
            self.made_other_frozen = True
            self.layout = replace(self.layout, frozen=pieces)

    def accept(self) -> None:
        """The last round counts: what the inner optimiser remembers of it stays."""
        with self._task.code("optimizer()"):
            self._remembered = copy.deepcopy(self._optimizers.state_dict())

    def put_back(self) -> None:
        """The last round does not count: the inner optimiser forgets it."""
        with self._task.code("optimizer()"):
            self._optimizers.load_state_dict(copy.deepcopy(self._remembered))

    def begin(self, start: StartRound) -> None:
        """Make ready for a round. The rest of the one before is forgotten."""
        self._start = start
        self._enter(start.round, start.steps, start.shards)
        seed_all(seed_for(self._seed, start.round, start.shards))
        self._inner_step.begin_segment()

    @property
    def why_no_marks(self) -> str:
        """Why nothing can be committed to, once that was tried; empty when it can."""
        return self._marking.why_not

    @property
    def flops(self) -> dict[str, int]:
        """Operations of a step, by shape of batch, as far as they were counted."""
        return self._inner_step.flops.known

    def leg(self, weights: Tensor, judge: Judge, factors: Tensor | None = None) -> Leg | None:
        """The next leg of the round, from these weights; None when it was abandoned. `factors` lengthen its steps.

        The round's legs read one sample after the other, however many steps each of them took.
        """
        now, start = self._round, self._start
        assert now is not None
        assert start is not None
        most = min(start.settings.exchange_every, start.steps - now.legs * start.settings.exchange_every)
        now.legs += 1
        self._load(weights)
        self._optimizers.weights_were_replaced()
        with self._task.code("model()"):
            base = flat.read(self._model, self.layout)
        self._model.train()
        with self._task.code("model()"):
            self._factors = flat.parameters(factors, self._model, self.layout) if factors is not None else []
        before = replace(now)
        flops = 0
        places: list[MarkBytes] = []
        verdict = LegVerdict.GO_ON
        while verdict is LegVerdict.GO_ON and now.steps - before.steps < most:
            if start.mark_every and (now.steps - before.steps) % start.mark_every == 0:
                places += self._mark(now, factors, draws=True)
            flops += self._next_step(now)
            verdict = judge(now.steps, now.losses / now.steps, now.samples)
        if verdict is LegVerdict.ABANDON:
            return None
        if start.mark_every:
            places += self._mark(now, factors)
        with self._task.code("local steps"):
            difference = flat.difference(base, self._model, self.layout)
        # Buffers such as BatchNorm's move whether anything is learnt or not.
        moved = bool(difference[: self.layout.parameters + self.layout.rows].any()) or bool(
            difference[self.layout.bounds["wide floats"]].any()
        )
        steps = now.steps - before.steps
        loss = (now.losses - before.losses) / steps
        marking = now.mark_seconds - before.mark_seconds
        return Leg(difference, steps, now.samples - before.samples, loss, flops, tuple(places), marking, moved)

    def redo(self, order: RedoSegment, data: memoryview, flops: Mapping[str, int]) -> SegmentRedone:
        """Take another member's steps again, from what it committed to.

        Of use once, in a trainer of its own (`redo_server`): it ends with that member's weights, and with whatever its
        task keeps. `flops`: operations of a step, as far as they were counted before (`FlopCounts.known`). Raises
        `PeerMisbehaved` when `data` is no place to begin from.
        """
        self._inner_step.flops.known |= flops
        start = order.start
        weights, factors, memory = from_bytes(data, self.layout.values)
        ours = flat.frozen_name(weights, self.layout) == self.layout.frozen_name
        if not ours or not self._marking.fits(start, weights, memory):
            return redone(order, failed="other bytes")
        self._load(weights)
        with self._task.code("optimizer()"):
            self._marking.remember(memory)
        self._model.train()
        self._factors = flat.parameters(factors, self._model, self.layout) if factors is not None else []
        now = self._enter(order.round, order.round_steps, order.shards, ahead=False)
        now.legs, now.steps = start.leg + 1, start.step
        self._draw_anew(now)
        spent = 0
        before_last = start.sketch
        while now.steps < start.step + order.steps:
            if now.steps == start.step + order.steps - 1:
                with self._task.code("local steps"):
                    before_last = self._marking.sketch(flat.read(self._model, self.layout))
            spent += self._next_step(now)
        ends = self._mark(now, factors)
        return redone(order, ends[0], before_last, spent) if ends else redone(order, failed="cannot be done")

    def evaluate(self, weights: Tensor, shards: Sequence[int]) -> tuple[dict[str, float], int]:
        """Metrics of weights on the test data of these shards, weighted by samples, and how many samples that was.

        Raises `TaskMistake` too when the steps before it have changed a frozen parameter.
        """
        with self._task.code("local steps"):
            self.frozen.check(flat.frozen_tensors(self._model, self.layout))
        self._load(weights)
        return evaluate(self._task, self._model, self._shards.test(shards), self._batch)

    def _load(self, weights: Tensor) -> None:
        with self._task.code("model()"):
            flat.write(weights, self._model, self.layout)

    def _enter(self, round: int, most_steps: int, shards: Sequence[int], *, ahead: bool = True) -> _Round:
        self._round = _Round(round, most_steps, shards, self._shards.train(shards, ahead=ahead))
        return self._round

    def _draw_anew(self, now: _Round) -> None:
        """Chance begins anew at each mark, so that whoever goes on from there draws the same."""
        seed_all(seed_at(self._seed, now.round, now.shards, now.steps))
        self._inner_step.begin_segment()

    def _mark(self, now: _Round, factors: Tensor | None, *, draws: bool = False) -> list[MarkBytes]:
        """Commit to where the steps are; nothing when this optimiser cannot be committed to."""
        began = time.perf_counter()
        with self._task.code("local steps"):
            weights = flat.read(self._model, self.layout)
        with self._task.code("optimizer()"):
            place = self._marking.place(now.legs - 1, now.steps, weights, factors)
        if draws:
            self._draw_anew(now)
        now.mark_seconds += time.perf_counter() - began
        return [place] if place else []

    def _next_step(self, now: _Round) -> int:
        """Take a step, and count it; gives its operations."""
        place = now.round * now.most_steps + now.steps
        parts = now.batches.at(place)
        loss, flops = self._step(place, parts)
        if not math.isfinite(loss):
            cause = f"The loss became {loss} in round {now.round + 1}, step {now.steps + 1}."
            raise TaskMistake("local steps", cause=cause)
        now.steps += 1
        now.samples += self._batch
        now.losses += loss
        return flops

    def _step(self, number: int, parts: Sequence[BatchPart]) -> tuple[float, int]:
        """The step with this number in the job, lengthened where it is to be; gives its loss and its operations."""
        before = [parameter.detach().clone() for parameter, _ in self._factors]
        taken = self._inner_step.take(number, parts)
        with torch.no_grad():
            for (parameter, factor), start in zip(self._factors, before, strict=True):
                parameter.copy_(torch.lerp(start, parameter, factor.to(parameter.dtype)))
        return taken


def redone(
    order: RedoSegment,
    end: MarkBytes | None = None,
    before_last: bytes = b"",
    flops: int = 0,
    failed: Literal["", "not handed over", "other bytes", "cannot be done"] = "",
) -> SegmentRedone:
    """The result of such an order."""
    return SegmentRedone(
        of=order.of,
        round=order.round,
        attempt=order.attempt,
        step=order.start.step,
        start=order.start.name,
        end=end.mark if end else None,
        before_last=before_last,
        flops=flops,
        failed=failed,
    )


def evaluate(task: CheckedTask, model: nn.Module, datasets: Sequence[Any], batch: int) -> tuple[dict[str, float], int]:
    """The task's metrics, or the mean loss, over datasets, weighted by their samples; and how many samples."""
    model.eval()
    sums: dict[str, float] = {}
    samples = 0
    with torch.no_grad(), meeting_on(next(model.parameters()).device):
        for dataset in datasets:
            count = len(dataset)
            metrics = task.evaluate(model, dataset) if task.evaluates else _mean_loss(task, model, dataset, batch)
            for name, value in metrics.items():
                sums[name] = sums.get(name, 0.0) + value * count
            samples += count
    means = {name: total / samples for name, total in sums.items()}
    for name in [name for name, value in means.items() if not math.isfinite(value)]:
        print(f"held-out {name} is {means.pop(name)}, so it is left out", file=sys.stderr)
    return means, samples


def _mean_loss(task: CheckedTask, model: nn.Module, dataset: Any, batch: int) -> dict[str, float]:
    batches = Batches(task, dataset)
    total = 0.0
    for begin in range(0, len(batches), batch):
        numbers = list(range(begin, min(begin + batch, len(batches))))
        with task.code('data("test")'):
            taken = on_device(batches.take(numbers), next(model.parameters()).device)
        total += task.loss(model, taken).item() * len(numbers)
    return {"loss": total / len(batches)}
