from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from axonp2p.kinds.train.local import alone

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[5]
DIGITS = ROOT / "examples" / "digits"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the program; gives its exit code, its result and what it said on standard error."""
    interrupt = signal.getsignal(signal.SIGINT)

    def run(*words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["alone", *map(str, words), "--json"])
        with pytest.raises(SystemExit) as ended:
            alone.main()
        said = capsys.readouterr()
        lines = said.out.splitlines()
        return ended.value.code, json.loads(lines[-1]) if lines else None, said.err

    yield run
    signal.signal(signal.SIGINT, interrupt)


def broken(tmp_path, old, new):
    folder = tmp_path / "job"
    shutil.copytree(DIGITS, folder)
    text = (folder / "task.py").read_text()
    assert old in text
    (folder / "task.py").write_text(text.replace(old, new))
    return folder


def test_training_alone_and_weights_from_a_file(run, tmp_path):
    code, found, _ = run(DIGITS, "--samples", "6400")
    assert code == 0
    assert found["samples"] == 6400
    assert found["samples_per_second"] == pytest.approx(found["samples"] / found["seconds"])
    assert found["metrics"]["accuracy"] == found["accuracy"] > 0.85
    zeros = {"0.weight": (128, 64), "0.bias": (128,), "3.weight": (10, 128), "3.bias": (10,)}
    safetensors.torch.save_file(
        {name: torch.zeros(shape) for name, shape in zeros.items()}, tmp_path / "zeros.safetensors"
    )
    code, found, _ = run(DIGITS, "--weights", "zeros.safetensors")
    assert code == 0
    assert found["test_samples"] == 360
    assert found["loss"] == pytest.approx(2.302585, rel=1e-4)


def test_a_mistake_of_the_task_comes_back_as_its_traceback(run, tmp_path):
    code, found, said = run(broken(tmp_path, "images, digits = batch", "images = batch.images"), "--samples", "64")
    assert code == 1
    assert found["error"]["doing"] == "loss()"
    assert 'File "task.py", line 33, in loss' in found["error"]["traceback"]
    assert said.startswith("error AX-102: ")


def test_files_of_the_bundle_are_opened_by_their_names(run, tmp_path):
    folder = broken(tmp_path, 'Path(__file__).parent / "digits.csv.gz"', '"digits.csv.gz"')
    assert run(folder, "--samples", "64")[0] == 0


@pytest.mark.parametrize("content", [b"not a safetensors file", None, safetensors.torch.save({"x": torch.ones(1)})])
def test_weights_of_something_else_are_refused(run, tmp_path, content):
    if content is not None:
        (tmp_path / "w.safetensors").write_bytes(content)
    code, _, said = run(DIGITS, "--weights", "w.safetensors")
    assert code == 9
    assert "does not hold this task's weights" in said


def test_a_folder_without_a_job_is_refused(run, tmp_path):
    code, _, said = run(tmp_path, "--samples", "64")
    assert code == 9
    assert "job.toml" in said
