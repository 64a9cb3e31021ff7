"""A task's own step, with several optimisers: done again, put back and gone on with as any other."""

from __future__ import annotations

import pytest
import torch

from axonp2p.errors import TaskMistake
from axonp2p.training.messages import Prepare, RedoSegment
from axonp2p.training.options import StepOptions
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.plain_run import PlainRun
from axonp2p.training.trainer.task import CheckedTask
from tests.unit.training.member_swarm import start_round

GAN = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = nn.Linear(2, 1), nn.Linear(1, 1)

class Task:
    def model(self):
        return Pair()
    def data(self, split, shard, shards):
        return TensorDataset(torch.randn(16, 1)) if split == "train" else None
    def optimizer(self, model):
        return [torch.optim.Adam(model.generator.parameters()), torch.optim.SGD(model.critic.parameters(), 0.1, 0.9)]
    def step(self, model, batch, optimizers):
        generator, critic = optimizers
        made = model.generator(torch.randn(len(batch[0]), 2))
        apart = model.critic(made.detach()).mean() - model.critic(batch[0]).mean()
        critic.zero_grad()
        apart.backward()
        critic.step()
        generator.zero_grad()
        (-model.critic(made).mean()).backward()
        generator.step()
        return apart
"""
STEPS = 6


def trainer(folder, text=GAN, **options):
    (folder / "task.py").write_text(text)
    order = Prepare(
        rank=0, job="j", task="task.py", shards=1, batch=4, seed=1, steps=2 * STEPS, step_options=StepOptions(**options)
    )
    return LocalTrainer(CheckedTask(folder, "task.py"), order)


def leg(made, round=0, weights=None):
    made.begin(start_round(round, bytes(32), [0], rank=0, steps=STEPS, exchange_every=STEPS, mark_every=2))
    taken = made.leg(made.first_state().weights if weights is None else weights, lambda *_: LegVerdict.GO_ON)
    assert made.why_no_marks == ""
    return taken


def redone(folder, taken, segment):
    begin, end = taken.places[segment : segment + 2]
    order = RedoSegment(
        of=0, round=0, attempt=0, start=begin.mark, shards=[0], round_steps=STEPS, steps=end.step - begin.step
    )
    return trainer(folder).redo(order, begin.file, {}).end.name, end.mark.name


@pytest.mark.parametrize("segment", [0, 1, 2])
def test_steps_of_two_optimisers_lead_to_the_same_bits_when_they_are_done_again(tmp_path, segment):
    again, said = redone(tmp_path, leg(trainer(tmp_path)), segment)
    assert again == said


def test_a_round_that_does_not_count_is_forgotten_by_both(tmp_path):
    made = trainer(tmp_path)
    first = leg(made).difference
    made.put_back()
    assert torch.equal(leg(made, weights=trainer(tmp_path).first_state().weights).difference, first)


def test_what_both_remember_is_numbered_through(tmp_path):
    made = trainer(tmp_path)
    leg(made)
    state = made._optimizers.state_dict()
    assert sorted(state["state"]) == [0, 1, 2, 3]
    assert [group["params"] for group in state["param_groups"]] == [[0, 1], [2, 3]]
    assert "exp_avg" in state["state"][0]
    assert "momentum_buffer" in state["state"][3]


def test_the_schedule_holds_for_both_and_gradients_of_each_are_clipped(tmp_path):
    made = trainer(tmp_path, GAN + "    def schedule(self, step, steps):\n        return 0.0\n", clip_gradients=0.5)
    assert not leg(made).moved
    assert [group["lr"] for group in made._optimizers.param_groups] == [0.001, 0.1]


def test_a_plain_loop_takes_the_same_steps(tmp_path):
    (tmp_path / "task.py").write_text(GAN)
    run = PlainRun(CheckedTask(tmp_path, "task.py"), 4, 1)
    assert run.train(40)["samples"] == 40


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("        return apart\n", "        return None\n", "it returned nothing (None); it must return the loss"),
        ("        return apart\n", "        return model.critic\n", "it must return the loss, which is one number"),
        ("def step(", "def stepping(", "no method loss(self, model, batch)"),
    ],
)
def test_a_wrong_step_is_the_tasks_mistake(tmp_path, old, new, said):
    with pytest.raises(TaskMistake) as caught:
        leg(trainer(tmp_path, GAN.replace(old, new)))
    assert said in caught.value.cause


def test_several_optimisers_of_one_parameter_need_a_step(tmp_path):
    text = GAN.replace("def step(self, model, batch, optimizers)", "def loss(self, model, batch)")
    text = text.replace("model.critic.parameters(), 0.1", "model.parameters(), 0.1")
    with pytest.raises(TaskMistake, match=r"optimizer\(\)") as caught:
        trainer(tmp_path, text)
    assert "have the same parameter: class Task then needs step(self, model, batch, optimizers)" in caught.value.cause


def test_an_optimiser_class_that_does_not_say_what_it_remembers_is_told_so(tmp_path):
    text = GAN.replace(
        "        return [torch",
        "        class Both(torch.optim.Optimizer):\n"
        "            def __init__(self): pass\n"
        "            def state_dict(self): return {}\n"
        "        return Both()\n        return [torch",
    )
    with pytest.raises(TaskMistake) as caught:
        trainer(tmp_path, text)
    assert "the state_dict() of its Both has no param_groups and state" in caught.value.cause


@pytest.mark.parametrize("options", [{"micro_batch": 2}, {"autocast": "bf16"}])
def test_what_is_for_loss_alone_is_refused(tmp_path, options):
    with pytest.raises(TaskMistake, match=r"step\(\)"):
        trainer(tmp_path, **options)


PLAIN = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    def model(self):
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    def data(self, split, shard, shards):
        return TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    def loss(self, model, batch):
        return SCALE * nn.functional.mse_loss(model(batch[0]), batch[1])
    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.05)
SCALE = 1.0
"""


def test_gradients_of_parts_are_those_of_the_batch(tmp_path):
    whole = leg(trainer(tmp_path, PLAIN))
    for size in (1, 2, 3):
        parts = leg(trainer(tmp_path, PLAIN, micro_batch=size))
        assert torch.allclose(parts.difference, whole.difference, atol=1e-6)
        assert parts.loss == pytest.approx(whole.loss, rel=1e-5)
        assert (parts.samples, parts.flops) == (whole.samples, whole.flops)


@pytest.mark.parametrize("autocast", ["bf16", "fp16"])
def test_in_half_precision_steps_are_nearly_the_same_and_the_same_when_they_are_done_again(tmp_path, autocast):
    whole = leg(trainer(tmp_path, PLAIN))
    half = leg(trainer(tmp_path, PLAIN, autocast=autocast))
    assert not torch.equal(half.difference, whole.difference)
    assert torch.allclose(half.difference, whole.difference, rtol=0.1, atol=0.01)


def test_a_loss_scale_that_is_too_large_is_halved_and_forgotten_at_the_next_mark(tmp_path):
    steep = PLAIN.replace("SCALE = 1.0", "SCALE = 40.0").replace("lr=0.05", "lr=0.001")
    made, plain = trainer(tmp_path, steep, autocast="fp16"), leg(trainer(tmp_path, steep))
    taken = leg(made)
    assert made._inner_step._loss_scale < 2**16
    assert torch.allclose(taken.difference, plain.difference, rtol=0.1, atol=0.05)
    made._inner_step.begin_segment()
    assert made._inner_step._loss_scale == 2**16


def test_a_round_without_marks_begins_with_the_first_loss_scale_however_often_it_is_begun(tmp_path):
    steep = PLAIN.replace("SCALE = 1.0", "SCALE = 40.0").replace("lr=0.05", "lr=0.001")
    made, order = trainer(tmp_path, steep, autocast="fp16"), start_round(0, bytes(32), [0], rank=0, steps=STEPS)
    scales = []
    for _ in range(2):
        made.begin(order)
        scales.append(made._inner_step._loss_scale)
        made.leg(made.first_state().weights, lambda *_: LegVerdict.GO_ON)
        assert made._inner_step._loss_scale < 2**16
    assert scales == [2**16, 2**16]
