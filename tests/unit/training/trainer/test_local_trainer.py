from __future__ import annotations

import pytest
import safetensors.torch
import torch

from axonp2p.errors import TaskMistake
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.messages import Prepare
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.outer_optimizer import outer_step
from axonp2p.training.trainer.task import CheckedTask
from tests.unit.training.member_swarm import start_round
from tests.unit.training.written_model import written

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
    made = LocalTrainer(CheckedTask(folder, "task.py"), order)
    made.begin_with = made.first_state().weights
    return made


def order(round=0, rank=0, steps=3, **settings):
    return start_round(round, bytes(32), [0], rank=rank, steps=steps, **{"exchange_every": steps} | settings)


def go_on(*_):
    return LegVerdict.GO_ON


def first_leg(made, start, weights=None, judge=go_on):
    made.begin(start)
    return made.leg(made.begin_with if weights is None else weights, judge)


def test_the_same_seed_makes_the_same_model(tmp_path):
    assert trainer(tmp_path).first_state().name == trainer(tmp_path).first_state().name
    assert trainer(tmp_path).first_state().name != trainer(tmp_path, seed=2).first_state().name


def test_local_steps_are_told_and_counted(tmp_path):
    made = trainer(tmp_path)
    heard = []
    leg = first_leg(made, order(), judge=lambda *said: heard.append(said) or LegVerdict.GO_ON)
    assert [(step, samples) for step, _, samples in heard] == [(1, 8), (2, 16), (3, 24)]
    assert (leg.steps, leg.samples) == (3, 24)
    assert leg.loss == pytest.approx(heard[-1][1])
    assert len(leg.difference) == made.layout.values
    assert leg.difference.abs().sum() > 0
    # 2 operations a weight and sample forward; backward as many for weights, and for the last layer's inputs.
    assert leg.flops == 24 * 2 * (32 * 2 + 8 * 3)


def test_a_round_that_is_redone_comes_out_the_same_and_the_next_one_different(tmp_path):
    made = trainer(tmp_path)
    first = first_leg(made, order())
    made.put_back()
    again = first_leg(made, order())
    assert torch.equal(first.difference, again.difference)
    assert first.loss == again.loss
    made.accept()
    following = first_leg(made, order(round=1))
    assert not torch.equal(first.difference, following.difference)


def test_what_the_inner_optimizer_remembers_is_put_back_with_the_round(tmp_path):
    made, straight = trainer(tmp_path), trainer(tmp_path)
    states = []
    for one, redone in ((made, True), (straight, False)):
        state = one.first_state()
        state = outer_step(state, first_leg(one, order(0), state.weights).difference, 0.7, 0.9)
        one.accept()
        if redone:
            first_leg(one, order(1), state.weights)
            first_leg(one, order(1, steps=2), state.weights)
            one.put_back()
        states.append(outer_step(state, first_leg(one, order(1), state.weights).difference, 0.7, 0.9).name)
    assert states[0] == states[1]


def test_steps_read_the_same_samples_however_the_round_is_divided(tmp_path):
    """Legs that go on from where they ended are one leg."""
    made = trainer(tmp_path)
    whole = first_leg(made, order(steps=6))
    made.put_back()
    weights = made.begin_with
    made.begin(order(steps=6, exchange_every=2))
    legs = []
    for length in (2, 1, 2):
        verdicts = iter([LegVerdict.ENOUGH] if length == 1 else [LegVerdict.GO_ON] * 2)
        legs.append(made.leg(weights, lambda *_, verdicts=verdicts: next(verdicts)))
        weights = weights - legs[-1].difference
    assert [leg.steps for leg in legs] == [2, 1, 2]
    made.put_back()
    again = first_leg(made, order(steps=6), judge=lambda step, *_: LegVerdict.ENOUGH if step == 5 else LegVerdict.GO_ON)
    assert torch.allclose(sum(leg.difference for leg in legs), again.difference, atol=1e-5)
    assert not torch.allclose(whole.difference, again.difference, atol=1e-5)


def test_the_last_leg_is_as_short_as_the_round_leaves_it(tmp_path):
    made = trainer(tmp_path)
    made.begin(order(steps=5, exchange_every=3))
    assert [made.leg(made.begin_with, go_on).steps for _ in range(2)] == [3, 2]


def test_it_ends_between_steps_when_it_is_told_to(tmp_path):
    made = trainer(tmp_path)
    judge = lambda step, *_: LegVerdict.ABANDON if step == 2 else LegVerdict.GO_ON  # noqa: E731
    assert first_leg(made, order(steps=1000), judge=judge) is None


@pytest.mark.parametrize(
    ("change", "doing", "sentence"),
    [
        (
            ("model(points), sums)", "model(points), sums) * float('nan')"),
            "local steps",
            "The loss became nan in round 5, step 1",
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
        first_leg(made, order(round=4))

    with pytest.raises(TaskMistake) as caught:
        run()
    assert caught.value.message == doing
    assert sentence in caught.value.cause


def test_weights_that_became_infinite_are_found(tmp_path):
    text = TASK + "    def optimizer(self, model):\n        return torch.optim.SGD(model.parameters(), lr=1e38)\n"
    made = trainer(tmp_path, text)
    with pytest.raises(TaskMistake, match="local steps"):
        first_leg(made, order(steps=1))


def test_without_evaluate_the_metric_is_the_mean_loss(tmp_path):
    made = trainer(tmp_path)
    metrics, samples = made.evaluate(made.begin_with, [0, 1])
    assert samples == 40
    assert metrics == {"loss": pytest.approx(made.evaluate(made.begin_with, [1, 0])[0]["loss"])}


def test_metrics_are_weighted_by_samples(tmp_path):
    text = TASK.replace(
        "points = torch", "if split == 'test': return [0.0] * 3 if shard == 0 else [1.0]\n        points = torch"
    )
    made = trainer(tmp_path, text + "    def evaluate(self, model, dataset):\n        return {'it': dataset[0]}\n")
    assert made.evaluate(made.begin_with, [0, 1]) == ({"it": 0.25}, 4)


def test_a_metric_that_is_no_finite_number_is_left_out_and_said(tmp_path, capsys):
    text = TASK + "    def evaluate(self, model, dataset):\n        return {'good': 0.5, 'bad': float('inf')}\n"
    made = trainer(tmp_path, text)
    assert made.evaluate(made.begin_with, [0, 1]) == ({"good": 0.5}, 40)
    assert "held-out bad is inf, so it is left out" in capsys.readouterr().err


def test_no_test_data_means_no_metrics(tmp_path):
    made = trainer(tmp_path, TASK.replace("points = torch", "if split == 'test': return None\n        points = torch"))
    assert made.evaluate(made.begin_with, [0, 1]) == ({}, 0)


def test_the_layout_of_the_model_s_file_is_always_the_same_and_names_what_is_tied(tmp_path):
    tied = TASK.replace("return nn.Seq", "model = nn.Seq").replace(
        "(8, 1))", "(8, 1))\n        model[3].twin = model[3].weight\n        return model"
    )
    made = trainer(tmp_path, tied)
    assert made.file_layout == trainer(tmp_path, tied, seed=2).file_layout
    file = written(made.file_layout, made.first_state().file, Model(made.layout.parameters, made.layout.values))
    CheckedTask(tmp_path, "task.py").model().load_state_dict(safetensors.torch.load(file))


def test_factors_lengthen_the_steps_of_parameters_alone(tmp_path):
    plain, longer = trainer(tmp_path), trainer(tmp_path)
    values, parameters = plain.layout.values, plain.layout.parameters
    one = first_leg(plain, order(steps=1)).difference
    longer.begin(order(steps=1))
    two = longer.leg(longer.begin_with, go_on, torch.full([values], 2.0)).difference
    torch.testing.assert_close(two[:parameters], 2 * one[:parameters])
    assert torch.equal(two[parameters:], one[parameters:])  # BatchNorm's statistics come from the data
