from __future__ import annotations

import pytest
import safetensors.torch
import torch

from axonp2p.errors import TaskMistake
from axonp2p.training.local_trainer import LocalTrainer
from axonp2p.training.messages import Prepare, StartRound
from axonp2p.training.outer_optimizer import outer_step
from axonp2p.training.task import Task

TASK = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    def model(self):
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    def data(self, split, shard, shards):
        points = torch.randn(40, 4)
        return TensorDataset(points[shard::shards], points.sum(1, keepdim=True)[shard::shards])
    def loss(self, model, batch):
        points, sums = batch
        return nn.functional.mse_loss(model(points), sums)
"""


def trainer(folder, text=TASK, seed=1):
    (folder / "task.py").write_text(text)
    order = Prepare(rank=0, job="job", task="task.py", shards=2, batch=8, seed=seed)
    return LocalTrainer(Task(folder, "task.py"), order)


def order(round=0, shards=(0,), steps=3):
    return StartRound(round=round, attempt=0, state=bytes(32), members=[0], shards=list(shards), steps=steps)


def go_on(*_):
    return False


def test_the_same_seed_makes_the_same_model(tmp_path):
    assert trainer(tmp_path).first_state().name == trainer(tmp_path).first_state().name
    assert trainer(tmp_path).first_state().name != trainer(tmp_path, seed=2).first_state().name


def test_local_steps_are_told_and_counted(tmp_path):
    made = trainer(tmp_path)
    heard = []
    local = made.train(made.first_state(), order(), lambda *said: heard.append(said))
    assert [(step, samples) for step, _, samples in heard] == [(1, 8), (2, 16), (3, 24)]
    assert local.samples == 24
    assert local.loss == pytest.approx(heard[-1][1])
    assert len(local.delta) == made.layout.values
    assert local.delta.abs().sum() > 0
    # 2 operations a weight and sample forward; backward as many for weights, and for the last layer's inputs.
    assert local.flops == 24 * 2 * (32 * 2 + 8 * 3)


def test_a_round_that_is_redone_comes_out_the_same_and_the_next_one_different(tmp_path):
    made = trainer(tmp_path)
    state = made.first_state()
    first = made.train(state, order(), go_on)
    made.put_back()
    again = made.train(state, order(), go_on)
    assert torch.equal(first.delta, again.delta)
    assert first.loss == again.loss
    made.accept()
    following = made.train(state, order(round=1), go_on)
    assert not torch.equal(first.delta, following.delta)


def test_what_the_inner_optimizer_remembers_is_put_back_with_the_round(tmp_path):
    made, straight = trainer(tmp_path), trainer(tmp_path)
    states = []
    for one, redone in ((made, True), (straight, False)):
        state = one.first_state()
        state = outer_step(state, one.train(state, order(0), go_on).delta)
        one.accept()
        if redone:
            one.train(state, order(1), go_on)
            one.train(state, order(1, steps=2), go_on)
            one.put_back()
        states.append(outer_step(state, one.train(state, order(1), go_on).delta).name)
    assert states[0] == states[1]


def test_it_ends_between_steps_when_it_is_told_to(tmp_path):
    made = trainer(tmp_path)
    assert made.train(made.first_state(), order(steps=1000), lambda step, *_: step == 2) is None


@pytest.mark.parametrize(
    ("change", "doing", "sentence"),
    [
        (
            ("model(points), sums)", "model(points), sums) * float('nan')"),
            "local steps",
            "The loss became nan in round 4, step 0",
        ),
        (("nn.Dropout(0.5)", "nn.Dropout('x')"), "model()", "TypeError"),
        (("model(points), sums)", "model(sums), sums)"), "loss()", 'File "task.py", line 14, in loss'),
        (
            ("return nn.functional", "model.append(nn.Linear(1, 1))\n        return nn.functional"),
            "local steps",
            "have changed",
        ),
    ],
)
def test_mistakes_say_where_they_were_made(tmp_path, change, doing, sentence):
    def run():
        made = trainer(tmp_path, TASK.replace(*change))
        made.train(made.first_state(), order(round=4), go_on)

    with pytest.raises(TaskMistake) as caught:
        run()
    assert caught.value.message == doing
    assert sentence in caught.value.cause


def test_weights_that_became_infinite_are_found(tmp_path):
    text = TASK + "    def optimizer(self, model):\n        return torch.optim.SGD(model.parameters(), lr=1e38)\n"
    made = trainer(tmp_path, text)
    with pytest.raises(TaskMistake, match="local steps"):
        made.train(made.first_state(), order(steps=1), go_on)


def test_without_evaluate_the_metric_is_the_mean_loss(tmp_path):
    made = trainer(tmp_path)
    metrics, samples = made.evaluate(made.first_state(), [0, 1])
    assert samples == 40
    assert metrics == {"loss": pytest.approx(made.evaluate(made.first_state(), [1, 0])[0]["loss"])}


def test_metrics_are_weighted_by_samples(tmp_path):
    text = TASK.replace(
        "points = torch", "if split == 'test': return [0.0] * 3 if shard == 0 else [1.0]\n        points = torch"
    )
    made = trainer(tmp_path, text + "    def evaluate(self, model, dataset):\n        return {'it': dataset[0]}\n")
    assert made.evaluate(made.first_state(), [0, 1]) == ({"it": 0.25}, 4)


def test_a_metric_that_is_no_finite_number_is_left_out_and_said(tmp_path, capsys):
    text = TASK + "    def evaluate(self, model, dataset):\n        return {'good': 0.5, 'bad': float('inf')}\n"
    made = trainer(tmp_path, text)
    assert made.evaluate(made.first_state(), [0, 1]) == ({"good": 0.5}, 40)
    assert "held-out bad is inf, so it is left out" in capsys.readouterr().err


def test_no_test_data_means_no_metrics(tmp_path):
    made = trainer(tmp_path, TASK.replace("points = torch", "if split == 'test': return None\n        points = torch"))
    assert made.evaluate(made.first_state(), [0, 1]) == ({}, 0)


def test_the_model_file_is_its_state_dict_and_always_the_same(tmp_path):
    tied = TASK.replace("return nn.Seq", "model = nn.Seq").replace(
        "(8, 1))", "(8, 1))\n        model[3].twin = model[3].weight\n        return model"
    )
    made = trainer(tmp_path, tied)
    file = made.model_file(made.first_state())
    assert file == trainer(tmp_path, tied).model_file(made.first_state())
    Task(tmp_path, "task.py").model().load_state_dict(safetensors.torch.load(file))
