"""Muon for hidden matrices, AdamW for the rest: who trains what, and that its steps are like any other optimiser's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import axonp2p
from axonp2p.training.messages import Prepare
from axonp2p.training.muon import Muon, muon
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.step_scale import averaged_by
from axonp2p.training.trainer.task import CheckedTask
from tests.unit.training.member_swarm import start_round

TEXT = """
import axonp2p
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    def model(self):
        return nn.Sequential(nn.Embedding(32, 8), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), nn.Linear(8, 32))
    def data(self, split, shard, shards):
        codes = torch.arange(64) % 32
        return TensorDataset(codes, (codes + 1) % 32)
    def loss(self, model, batch):
        return nn.functional.cross_entropy(model(batch[0]), batch[1])
    def optimizer(self, model):
        return axonp2p.muon(model, lr=0.01)
"""


class Model(nn.Module):
    """Of everything something."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 4)
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.image = nn.Conv2d(1, 2, 3)
        self.out = nn.Linear(8, 6)
        self.lm_head = nn.Linear(4, 20, bias=False)
        self.frozen = nn.Linear(3, 3)
        self.frozen.requires_grad_(False)


def trained_by(model: nn.Module, **more: object) -> dict[str, str]:
    """The optimiser of each parameter."""
    names = {id(one): name for name, one in model.named_parameters()}
    return {
        names[id(one)]: type(optimizer).__name__
        for optimizer in muon(model, **more)  # type: ignore[arg-type]
        for group in optimizer.param_groups
        for one in group["params"]
    }


def test_hidden_matrices_are_muons_and_all_else_that_is_trained_adamws() -> None:
    assert trained_by(Model()) == {
        "first.weight": "Muon",
        "out.weight": "Muon",
        "words.weight": "AdamW",
        "first.bias": "AdamW",
        "norm.weight": "AdamW",
        "norm.bias": "AdamW",
        "image.weight": "AdamW",
        "image.bias": "AdamW",
        "out.bias": "AdamW",
        "lm_head.weight": "AdamW",
    }


def test_a_table_that_answers_too_is_no_hidden_matrix() -> None:
    model = Model()
    model.out = nn.Linear(4, 20, bias=False)
    model.out.weight = model.words.weight
    assert trained_by(model)["words.weight"] == "AdamW"


def test_output_layers_are_told_by_name_or_by_their_place_in_a_sequence() -> None:
    assert trained_by(Model(), heads=["out"])["out.weight"] == "AdamW"
    assert trained_by(Model(), heads=["out"])["lm_head.weight"] == "Muon"
    assert trained_by(nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3), nn.Softmax(1))) == {
        "0.weight": "Muon",
        "0.bias": "AdamW",
        "2.weight": "AdamW",
        "2.bias": "AdamW",
    }


@pytest.mark.parametrize("model", [nn.Linear(3, 3, bias=False), nn.Embedding(4, 4)])
def test_a_model_of_one_sort_has_one_optimiser(model: nn.Module) -> None:
    assert len(muon(model)) == 1


def test_it_is_a_public_name_and_its_steps_are_not_lengthened() -> None:
    assert axonp2p.muon is muon
    assert averaged_by(muon(Model())) is None


@pytest.mark.parametrize("shape", [(6, 10), (10, 6), (8, 8)])
@pytest.mark.parametrize("nesterov", [True, False])
def test_its_steps_are_those_of_torch_but_for_rounding(shape: tuple[int, int], nesterov: bool) -> None:
    torch.manual_seed(0)
    start = torch.randn(shape)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    settings = {"lr": 0.01, "weight_decay": 0.1, "momentum": 0.9, "nesterov": nesterov}
    optimizers = Muon([ours], **settings), torch.optim.Muon([theirs], adjust_lr_fn="match_rms_adamw", **settings)
    for _ in range(5):
        gradient = torch.randn(shape)
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
    moved = (theirs - start).norm()
    assert moved > 0.01
    assert (ours - theirs).norm() < 0.03 * moved


def test_a_matrix_that_nothing_pulls_at_stays() -> None:
    still = nn.Parameter(torch.ones(4, 4))
    still.grad = torch.zeros(4, 4)
    unused = nn.Parameter(torch.ones(4, 4))
    Muon([still, unused], lr=0.01, weight_decay=0.0).step()
    assert torch.equal(still, unused)


def trainer(folder, rank=0):
    (folder / "task.py").write_text(TEXT)
    return LocalTrainer(CheckedTask(folder, "task.py"), Prepare(rank, "j", "task.py", 1, 8, 1, steps=12))


def leg(made, round=0):
    made.begin(start_round(round, bytes(32), [0], rank=0, steps=6, exchange_every=6, mark_every=2))
    taken = made.leg(made.first_state().weights, lambda *_: LegVerdict.GO_ON)
    assert made.why_no_marks == ""
    return taken


def test_what_it_remembers_is_put_back_as_a_whole(tmp_path) -> None:
    made = trainer(tmp_path)
    leg(made)
    assert {key for one in made._optimizers.state_dict()["state"].values() for key in one} == {
        *("momentum_buffer", "exp_avg", "exp_avg_sq", "step"),
    }
    made.put_back()
    assert made._optimizers.state_dict()["state"] == {}
    again, first = trainer(tmp_path), trainer(tmp_path)
    leg(again)
    again.put_back()
    start = first.first_state().weights
    differences = []
    for one in (again, first):
        one.begin(start_round(0, bytes(32), [0], rank=0, steps=6, exchange_every=6))
        differences.append(one.leg(start, lambda *_: LegVerdict.GO_ON).difference)
    assert torch.equal(*differences)
