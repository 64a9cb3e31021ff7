"""A task that starts from given weights, in one line."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

import axonp2p
from axonp2p.errors import TaskMistake
from axonp2p.training.trainer.task import CheckedTask

TASK = """
import axonp2p
from torch import nn

class Task:
    def model(self):
        model = nn.Linear(2, 1)
        model.load_state_dict(axonp2p.load_weights("base.safetensors"))
        return model
    def data(self, split, shard, shards):
        return []
    def loss(self, model, batch):
        return 0
"""


@pytest.fixture
def task(tmp_path, monkeypatch):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "task.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)  # as at a peer, the working directory is another one
    return CheckedTask(tmp_path / "job", "task.py")


def test_a_file_is_found_beside_the_task(task, tmp_path):
    weights = {"weight": torch.tensor([[3.0, 4.0]]), "bias": torch.tensor([5.0])}
    save_file(weights, tmp_path / "job" / "base.safetensors")
    model = task.model()
    assert (model.weight.tolist(), model.bias.tolist()) == ([[3.0, 4.0]], [5.0])
    assert axonp2p.load_weights(tmp_path / "job" / "base.safetensors").keys() == weights.keys()


def test_a_file_that_did_not_travel_is_named_with_the_line_that_sends_it(task):
    with pytest.raises(TaskMistake) as caught:
        task.model()
    assert caught.value.message == "model()"
    assert 'job.toml does not name it: data = ["base.safetensors"]' in caught.value.cause


def test_a_pickle_is_refused(task, tmp_path):
    torch.save({"weight": torch.ones(1, 2)}, tmp_path / "job" / "base.safetensors")
    with pytest.raises(TaskMistake) as caught:
        task.model()
    assert "base.safetensors is no safetensors file" in caught.value.cause
