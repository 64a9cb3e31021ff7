"""The training thread: what it says, in which order, and when it ends a leg. The clock moves with the steps alone."""

from __future__ import annotations

import queue
from pathlib import Path

import pytest
import torch

from axonp2p.blobs.pieces import book_of
from axonp2p.errors import TaskMistake
from axonp2p.tensors.layout import Layout
from axonp2p.training.trainer.local_trainer import Leg, LegVerdict
from axonp2p.training.trainer.long_steps import LongSteps
from axonp2p.training.trainer.trainer_orders import (
    Abandon,
    EndLegEarly,
    Evaluate,
    Evaluated,
    FrozenTaken,
    LegDone,
    NextLeg,
    RollBack,
    Stepped,
    TakeFrozen,
    TaskWentWrong,
    TrainRound,
)
from axonp2p.training.trainer.training_thread import Built, TrainingThread
from tests.unit.training.member_swarm import start_round

WEIGHTS = torch.zeros(3)


class Trainer:
    """Takes steps of `pace` seconds; waits for the test after every step when `stepwise`."""

    layout = Layout(parameters=3, float_buffers=0, integer_buffers=0, lengths=(3,))
    averaged = None
    why_no_marks = ""
    file_layout = b""
    frozen = None
    device = torch.device("cpu")

    def __init__(self, stepwise=False, pace=1.0):
        self.now = 0.0
        self.pace = pace
        self.calls = []
        self.may_go_on = queue.Queue() if stepwise else None
        self.stepped = queue.Queue()
        self.steps = 0

    def first_state(self):
        return None

    def accept(self):
        self.calls.append("accept")

    def put_back(self):
        self.calls.append("put back")

    def take_frozen(self, data, pieces):
        self.calls.append(f"frozen {len(data)}")

    def begin(self, start):
        self.calls.append(f"begin {start.round}")
        self.steps = 0

    def leg(self, weights, judge, factors=None):
        self.calls.append("leg")
        for taken in range(1, 1000):
            self.now = round(self.now + self.pace, 6)
            self.steps += 1
            self.stepped.put(self.steps)
            if self.may_go_on:
                self.may_go_on.get(timeout=20)
            verdict = judge(self.steps, 0.5, 4 * self.steps)
            if verdict is LegVerdict.ABANDON:
                return None
            if verdict is LegVerdict.ENOUGH:
                return Leg(weights, taken, 4 * taken, 0.5, 10 * taken)
        raise TaskMistake("local steps", cause="too many")

    def evaluate(self, weights, shards):
        return {"loss": 0.5}, len(shards)

    def redo(self, order, start, trainer, wanted):
        raise AssertionError("nothing is checked here")


@pytest.fixture
def work():
    opened = []

    def work(trainer):
        said = queue.Queue()
        watch = LongSteps(Path("/job"), lambda: trainer.now)
        thread = TrainingThread(lambda: trainer, said.put, lambda: trainer.now, trainer.redo, watch)
        thread.open()
        opened.append(thread)
        assert isinstance(said.get(timeout=20), Built)
        return thread, said

    yield work
    for thread in opened:
        thread.close()


def hear(said, kind):
    while not isinstance(message := said.get(timeout=20), kind):
        assert isinstance(message, Stepped)
    return message


def test_a_budget_of_time_is_divided_among_the_legs_and_waiting_is_counted(work):
    trainer = Trainer()
    thread, said = work(trainer)
    start = start_round(5, bytes(32), [0], steps=100, exchange_every=50, seconds=5.0)
    thread.give(TrainRound(start, WEIGHTS))
    first = hear(said, LegDone)
    trainer.now += 7.0
    thread.give(NextLeg(WEIGHTS))
    second = hear(said, LegDone)
    trainer.now += 2.0
    thread.give(Evaluate((5, 0), WEIGHTS, [1, 2]))
    assert [(leg.key, leg.exchange, leg.steps, leg.seconds) for leg in (first, second)] == [
        ((5, 0), 0, 3, 3.0),
        ((5, 0), 1, 3, 3.0),
    ]
    assert (first.waited, second.waited) == (0.0, 7.0)
    assert hear(said, Evaluated) == Evaluated((5, 0), {"loss": 0.5}, 2, 2.0)


def test_progress_is_told_twice_a_second_and_at_the_end_of_every_leg(work):
    trainer = Trainer(pace=0.1)
    thread, said = work(trainer)
    thread.give(TrainRound(start_round(0, bytes(32), [0], steps=100, exchange_every=50, seconds=2.6), WEIGHTS))
    steps = []
    while isinstance(message := said.get(timeout=20), Stepped):
        steps.append(message.step)
    assert isinstance(message, LegDone)
    assert steps == [1, 6, 11, 13]


def test_a_leg_is_abandoned_after_its_step_and_what_was_to_follow_is_left_out(work):
    trainer = Trainer(stepwise=True)
    thread, said = work(trainer)
    thread.give(TrainRound(start_round(0, bytes(32), [0], steps=1000, exchange_every=1000), WEIGHTS))
    trainer.stepped.get(timeout=20)
    thread.give(NextLeg(WEIGHTS))
    thread.give(Abandon())
    thread.give(RollBack())
    trainer.may_go_on.put(None)
    thread.give(TrainRound(start_round(1, bytes(32), [0], steps=1, seconds=1.0), WEIGHTS))
    trainer.may_go_on.put(None)
    assert hear(said, LegDone).key == (1, 0)
    assert trainer.calls == ["begin 0", "leg", "put back", "begin 1", "leg"]


def test_frozen_parameters_are_in_the_model_when_that_is_said(work):
    trainer = Trainer()
    thread, said = work(trainer)
    data = bytearray(10)
    thread.give(TakeFrozen(memoryview(data), book_of(data)))
    assert hear(said, FrozenTaken).name == book_of(data).name
    assert trainer.calls == ["frozen 10"]


def test_a_leg_that_is_hurried_ends_after_its_step_and_the_next_one_does_not(work):
    trainer = Trainer(stepwise=True)
    thread, said = work(trainer)
    thread.give(TrainRound(start_round(0, bytes(32), [0], steps=8, exchange_every=4, seconds=6.0), WEIGHTS))
    trainer.stepped.get(timeout=20)
    thread.give(EndLegEarly((0, 0), 0))
    for _ in range(4):
        trainer.may_go_on.put(None)
    assert hear(said, LegDone).steps == 1
    thread.give(NextLeg(WEIGHTS))
    assert hear(said, LegDone).steps == 3


def test_a_mistake_is_said_and_the_next_order_is_carried_out(work):
    trainer = Trainer()
    thread, said = work(trainer)
    thread.give(TrainRound(start_round(0, bytes(32), [0], steps=1), WEIGHTS))
    assert hear(said, TaskWentWrong).mistake.cause == "too many"
    thread.give(Evaluate((0, 0), WEIGHTS, [0]))
    hear(said, Evaluated)


def test_a_mistake_while_the_model_is_built_is_said():
    said = queue.Queue()

    def make():
        raise TaskMistake("model()", cause="ValueError")

    TrainingThread(make, said.put, lambda: 0.0, lambda *_: None, LongSteps(Path("/job"), lambda: 0.0)).open()
    assert said.get(timeout=20).report.doing == "model()"


def test_what_is_not_the_tasks_mistake_ends_the_worker(work):
    trainer = Trainer()
    trainer.evaluate = None
    thread, said = work(trainer)
    thread.give(Evaluate((0, 0), WEIGHTS, []))
    assert isinstance(said.get(timeout=20), TypeError)
