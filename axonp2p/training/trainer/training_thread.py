"""The thread that trains: it alone touches the model and the inner optimiser, once they are made.

Legs run here while the worker's own thread hears, averages and says (torch lets go of the interpreter while it
computes). Orders lie in a queue; only `Abandon` and `EndLegEarly` take effect at once: the leg ends after its step.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from axonp2p.errors import TaskMistake
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.tensors.layout import Layout
from axonp2p.training.messages import RedoSegment, StartRound
from axonp2p.training.trainer.device import label_of
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.long_steps import LongSteps
from axonp2p.training.trainer.marks import MarkBytes
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.own_trials import OwnTrials
from axonp2p.training.trainer.trainer_orders import (
    Abandon,
    Accept,
    Done,
    EndLegEarly,
    Evaluate,
    Evaluated,
    FrozenTaken,
    LegDone,
    NextLeg,
    Redo,
    Redone,
    RollBack,
    Stepped,
    TakeFrozen,
    TaskWentWrong,
    TrainRound,
    Work,
    exchanges_of,
    key_of,
)
from axonp2p.verification.claims import SegmentRedone

PROGRESS_SECONDS = 0.5
CLOSING_SECONDS = 5.0
"""How long a step may take to end when the worker does: Python ends badly while torch computes."""


@dataclass(frozen=True)
class Built:
    """The model is made; these are the task's own first weights."""

    first: State = field(repr=False)
    layout: Layout
    averaged: float | None
    """As `step_scale.averaged_by` has it, of the task's optimiser."""
    file_layout: bytes = field(repr=False)
    """Of the model's file, packed."""
    frozen: FrozenTensors = field(repr=False)
    """Where others may read them; the trainer alone writes there."""
    device: str = "cpu"
    """On which kind the model is (`device.label_of`)."""


Say = Callable[[Done | Built | BaseException], None]
Redoing = Callable[[RedoSegment, memoryview, LocalTrainer, Callable[[], bool]], SegmentRedone | None]
"""Takes steps again without touching the trainer, from these bytes; None when they are not wanted any more."""


class TrainingThread:
    """Trains with what `make` makes, on the new thread, and says what came of it. `clock` gives monotonic seconds.

    `say` is called on the new thread, with an exception when something went wrong that is not the task's mistake. Steps
    to be done again `redo` does elsewhere; the thread waits for it. `long_steps` tells where the task's code is.
    """

    def __init__(
        self,
        make: Callable[[], LocalTrainer],
        say: Say,
        clock: Callable[[], float],
        redo: Redoing,
        long_steps: LongSteps,
        rank: int = 0,
    ) -> None:
        self._make = make
        self._say = say
        self._clock = clock
        self._redo_elsewhere = redo
        self._long_steps = long_steps
        self._trials = OwnTrials(rank)
        self._not_repeated = ""
        self._orders: queue.Queue[tuple[int, Work] | None] = queue.Queue()
        self._abandoned = 0
        """Orders with a smaller number than this are not wanted any more."""
        self._hurried: EndLegEarly | None = None
        self._round: StartRound | None = None
        self._exchange = 0
        self._stopped_at = self._next_progress = 0.0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="training", daemon=True)

    def open(self) -> None:
        """Start the thread; `Built` or `TaskWentWrong` follows."""
        self._thread.start()
        self._long_steps.watch(self._thread)

    def give(self, work: Work) -> None:
        """To be done when all before it is."""
        if isinstance(work, Abandon):
            self._abandoned += 1
        elif isinstance(work, EndLegEarly):
            self._hurried = work
        else:
            self._orders.put((self._abandoned, work))

    def close(self) -> None:
        """End the thread after the step that it takes; waits for that, but not long."""
        self._abandoned += 1
        self._closing = True
        self._long_steps.close()
        self._orders.put(None)
        self._thread.join(CLOSING_SECONDS)

    def _run(self) -> None:
        try:
            try:
                self._long_steps.begins()
                trainer = self._make()
                self._long_steps.ends()
                first, layout = trainer.first_state(), trainer.layout
                device = label_of(trainer.device)
                self._say(Built(first, layout, trainer.averaged, trainer.file_layout, trainer.frozen, device))
                if layout.by_hand:
                    print(
                        f"no optimiser has {layout.by_hand} of the parameters: those that nothing changes are better "
                        "frozen (requires_grad_(False)), which keeps them out of every state",
                        file=sys.stderr,
                    )
            except TaskMistake as mistake:
                self._say(TaskWentWrong(mistake))
                return
            while (order := self._orders.get()) is not None:
                try:
                    self._carry_out(trainer, *order)
                except TaskMistake as mistake:
                    if not self._unwanted(*order):
                        self._say(TaskWentWrong(mistake))
                finally:
                    self._long_steps.ends()
        except BaseException as error:
            self._say(error)

    def _carry_out(self, trainer: LocalTrainer, number: int, work: Work) -> None:
        if isinstance(work, Accept):
            trainer.accept()
        elif isinstance(work, RollBack):
            trainer.put_back()
        elif isinstance(work, Redo):
            self._redo(trainer, work)
        elif isinstance(work, TakeFrozen):
            trainer.take_frozen(work.data, work.pieces)
            self._say(FrozenTaken(work.pieces.name))
        elif self._unwanted(number, work):
            return
        elif isinstance(work, TrainRound):
            self._round, self._exchange = work.start, 0
            self._stopped_at, self._next_progress = self._clock(), 0.0
            self._long_steps.begins()
            trainer.begin(work.start)
            self._leg(trainer, number, work)
        elif isinstance(work, NextLeg):
            self._leg(trainer, number, work)
        elif isinstance(work, Evaluate):
            self._long_steps.begins()
            waited = self._clock() - self._stopped_at
            metrics, samples = trainer.evaluate(work.weights, work.shards)
            self._say(Evaluated(work.key, metrics, samples, waited, self._not_repeated))

    def _redo(self, trainer: LocalTrainer, work: Redo) -> None:
        """Between two legs, or while this member's own exchange is under way."""
        began = self._clock()
        message = self._redo_elsewhere(work.order, work.start, trainer, lambda: not self._closing)
        self._stopped_at += self._clock() - began  # so long it did not stand waiting
        if message:
            self._say(Redone(message))

    def _try_own(self, trainer: LocalTrainer, number: int, start: StartRound, places: tuple[MarkBytes, ...]) -> None:
        """At the start of a job: what this member commits to must be what others can come to."""
        tried = self._trials.order(start, places)
        if tried is None:
            return
        order, begin, claim = tried
        began = self._clock()
        message = self._redo_elsewhere(order, begin, trainer, lambda: number >= self._abandoned)
        self._stopped_at += self._clock() - began
        if message and (why := self._trials.why_not(claim, message)):
            print(f"no work can be checked here: {why}", file=sys.stderr)
            self._not_repeated = why

    def _unwanted(self, number: int, work: Work) -> bool:
        return number < self._abandoned and isinstance(work, TrainRound | NextLeg | Evaluate)

    def _leg(self, trainer: LocalTrainer, number: int, work: TrainRound | NextLeg) -> None:
        start = self._round
        assert start is not None
        begun = self._clock()
        budget = start.seconds / exchanges_of(start) if start.seconds else float("inf")

        this = EndLegEarly(key_of(start), self._exchange)
        told = Stepped(key_of(start), 0, 0.0, 0)
        stepped = told

        def judge(step: int, loss: float, samples: int) -> LegVerdict:
            nonlocal told, stepped
            self._long_steps.begins()
            if number < self._abandoned:
                return LegVerdict.ABANDON
            stepped = Stepped(key_of(start), step, loss, samples)
            now = self._clock()
            if now >= self._next_progress:
                self._next_progress = now + PROGRESS_SECONDS
                told = stepped
                self._say(told)
            enough = now - begun >= budget or self._hurried == this
            return LegVerdict.ENOUGH if enough else LegVerdict.GO_ON

        waited = begun - self._stopped_at if self._exchange else 0.0
        self._long_steps.begins()
        leg = trainer.leg(work.weights, judge, work.factors)
        self._long_steps.ends()
        if leg is None:
            return
        self._stopped_at = self._clock()
        if told is not stepped:
            self._say(stepped)  # by it the coordinator knows who keeps the others waiting
        self._say(
            LegDone(
                key_of(start),
                self._exchange,
                leg.difference,
                leg.steps,
                leg.samples,
                leg.loss,
                leg.flops,
                self._stopped_at - begun,
                waited,
                leg.places,
                trainer.why_no_marks if start.mark_every else "",
                leg.mark_seconds,
                leg.moved,
            )
        )
        self._exchange += 1
        if not leg.moved:
            print(f"round {start.round + 1}: {leg.steps} local steps changed no weight at all", file=sys.stderr)
        if self._exchange == exchanges_of(start):
            self._try_own(trainer, number, start, leg.places)
