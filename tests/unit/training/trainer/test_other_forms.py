"""Weights in the forms that other programs read."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import torch

from axonp2p.errors import SettingsError, TaskMistake
from axonp2p.training.trainer.task import CheckedTask
from axonp2p.training.trainer.weights import save_plain, save_pretrained

WRAPPED = """
import torch
from torch import nn


class Saved(nn.Linear):
    def save_pretrained(self, folder):
        (folder / "config.json").write_text("{}")
        torch.save(self.state_dict(), folder / "weights.bin")


class Task:
    def model(self):
        return MODEL

    def data(self, split, shard, shards):
        return []

    def loss(self, model, batch):
        return model(batch).sum()
"""


def job(folder: Path, model: str) -> Path:
    folder.mkdir()
    (folder / "task.py").write_text(WRAPPED.replace("MODEL", model))
    (folder / "job.toml").write_text('name = "saved"\n')
    return folder


def weights(folder: Path, *names: str) -> Path:
    path = folder / "model.safetensors"
    tensors = {name: torch.arange(6.0).reshape(2, 3) if name.endswith("weight") else torch.ones(2) for name in names}
    safetensors.torch.save_file(tensors, path)
    return path


def test_a_state_dict_of_plain_tensors_is_read_without_code(tmp_path: Path) -> None:
    source = weights(tmp_path, "weight", "bias")
    assert save_plain(source, tmp_path / "line.pt") == 2
    found = torch.load(tmp_path / "line.pt", weights_only=True)
    assert {name: value.tolist() for name, value in found.items()} == {
        name: value.tolist() for name, value in safetensors.torch.load_file(source).items()
    }
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["line.pt", "model.safetensors"]


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"x" * 100)
    with pytest.raises(SettingsError, match="odd is no safetensors file"):
        save_plain(tmp_path / "odd", tmp_path / "line.pt")
    assert not (tmp_path / "line.pt").exists()


@pytest.mark.parametrize(
    ("model", "names", "module"),
    [("Saved(3, 2)", ["weight", "bias"], ""), ("nn.Sequential(Saved(3, 2))", ["0.weight", "0.bias"], "0")],
)
def test_a_model_saves_itself_with_its_weights(tmp_path: Path, model: str, names: list[str], module: str) -> None:
    folder, source = job(tmp_path / "job", model), weights(tmp_path, *names)
    assert save_pretrained(CheckedTask(folder, "task.py"), source, tmp_path / "out") == module
    saved = torch.load(tmp_path / "out" / "weights.bin", weights_only=True)
    assert saved["weight"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert (tmp_path / "out" / "config.json").exists()


def test_a_model_that_cannot_save_itself_says_so(tmp_path: Path) -> None:
    folder, source = job(tmp_path / "job", "nn.Linear(3, 2)"), weights(tmp_path, "weight", "bias")
    with pytest.raises(SettingsError, match="a Linear, has no save_pretrained") as caught:
        save_pretrained(CheckedTask(folder, "task.py"), source, tmp_path / "out")
    assert "--format torch" in caught.value.fix


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    folder, source = job(tmp_path / "job", "Saved(3, 2)"), weights(tmp_path, "other.weight")
    with pytest.raises(SettingsError, match="does not hold this task's weights"):
        save_pretrained(CheckedTask(folder, "task.py"), source, tmp_path / "out")


def test_what_goes_wrong_in_the_model_s_own_code_is_its_mistake(tmp_path: Path) -> None:
    folder, source = job(tmp_path / "job", "Saved(3, 2)"), weights(tmp_path, "weight", "bias")
    task = folder / "task.py"
    task.write_text(task.read_text().replace('"{}")', '"{}" + 1)'))
    with pytest.raises(TaskMistake, match=r"save_pretrained\(\)"):
        save_pretrained(CheckedTask(folder, "task.py"), source, tmp_path / "out")
