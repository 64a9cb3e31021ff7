from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from axonp2p.kinds.train import alone

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
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


@pytest.mark.parametrize(
    ("folder", "parameters"),
    [(DIGITS, 9610), (ROOT / "examples" / "text", 1_040_768), (ROOT / "client_cli" / "templates" / "train", 4482)],
)
def test_every_job_that_we_ship_passes_its_check(run, folder, parameters):
    code, found, _ = run(folder, "--check")
    assert code == 0
    assert found["parameters"] == parameters
    assert found["train_samples"] > 1000
    assert found["test_samples"] >= 16
    assert found["flops_per_sample"] > 2 * parameters
    assert found["metrics"]
    assert not (folder / "__pycache__").exists()


KEEPS = """
        self.calls = getattr(self, "calls", 0) + 1
        images, digits = batch
        images = images * (1 + self.calls % 3)"""


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ("images, digits = batch", ""),
        (KEEPS, "the task keeps something between steps that changes them"),
        ('images, digits = batch; (Path(__file__).parent / "seen").write_text("yes")', "the task fails"),
    ],
)
def test_a_check_tries_whether_steps_can_be_done_again(tmp_path, job, why):
    folder = broken(tmp_path, "images, digits = batch", job)
    words = [sys.executable, "-m", "axonp2p.kinds.train.alone", str(folder), "--check", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    unchecked = json.loads(done.stdout.splitlines()[-1])["unchecked"]
    assert why in unchecked
    assert bool(why) == bool(unchecked)


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
    code, found, said = run(broken(tmp_path, "images, digits = batch", "images = batch.images"), "--check")
    assert code == 1
    assert found["error"]["doing"] == "loss()"
    assert 'File "task.py", line 33, in loss' in found["error"]["traceback"]
    assert said.startswith("error AX-102: ")


def test_a_relative_path_fails_here_as_it_would_in_the_sandbox(run, tmp_path):
    code, found, _ = run(broken(tmp_path, 'Path(__file__).parent / "digits.csv.gz"', '"digits.csv.gz"'), "--check")
    assert code == 1
    assert "No such file or directory: 'digits.csv.gz'" in found["error"]["traceback"]


@pytest.mark.parametrize("content", [b"not a safetensors file", None, safetensors.torch.save({"x": torch.ones(1)})])
def test_weights_of_something_else_are_refused(run, tmp_path, content):
    if content is not None:
        (tmp_path / "w.safetensors").write_bytes(content)
    code, _, said = run(DIGITS, "--weights", "w.safetensors")
    assert code == 9
    assert "does not hold this task's weights" in said


def test_a_folder_without_a_job_is_refused(run, tmp_path):
    code, _, said = run(tmp_path, "--check")
    assert code == 9
    assert "job.toml" in said
