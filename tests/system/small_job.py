"""A job that is small, learns, and takes as long as a test wants."""

from __future__ import annotations

import textwrap
from pathlib import Path

TASK = """
import time

import torch
from torch import nn
from torch.utils.data import TensorDataset


class Task:
    def model(self):
        return nn.Linear(2, 1)

    def data(self, split, shard, shards):
        inputs = torch.linspace(-1, 1, 240).reshape(120, 2)[shard::shards]
        return TensorDataset(inputs, inputs @ torch.tensor([[2.0], [-1.0]]) + 0.5)

    def loss(self, model, batch):
        time.sleep(PAUSE)
        inputs, wanted = batch
        return nn.functional.mse_loss(model(inputs), wanted)

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.2)

    def evaluate(self, model, dataset):
        inputs, wanted = dataset.tensors
        print("evaluated on", len(inputs))
        return {"error": nn.functional.mse_loss(model(inputs), wanted).item()}
"""


def write_job(
    folder: Path,
    *,
    peers: int,
    rounds: int,
    pause: float = 0.0,
    task: str = TASK,
    least: int = 1,
    wait: str = "0 s",
    train: str = "",
) -> Path:
    """The job's folder. `pause`: seconds of sleep in every step; `train`: more lines of its section.

    It waits for peers, when it has too few, only where `wait` says so.
    """
    folder.mkdir()
    (folder / "task.py").write_text(task.replace("PAUSE", str(pause)))
    (folder / "job.toml").write_text(
        textwrap.dedent(f"""
            name = "line"
            task = "task.py"
            [need]
            peers = {peers}
            min-peers = {least}
            wait = "{wait}"
            memory = "800 MiB"
            max-rtt = "5 s"
            [train]
            rounds = {rounds}
            steps = 5
            batch = 16
        """)
        + train
    )
    return folder


def write_command(folder: Path, program: str, need: str, run: str = "") -> Path:
    """The folder of a job that runs this program once; `need` and `run` are more lines of these sections."""
    folder.mkdir()
    (folder / "work.py").write_text(textwrap.dedent(program))
    sections = f'[need]\npeers = 1\nmax-rtt = "5 s"\nwait = 0\n{need}\n'
    command = f'[run]\ncommand = "python work.py"\ncopies = 1\noutputs = ["*.txt"]\n{run}\n'
    (folder / "job.toml").write_text(f'name = "look"\nkind = "run"\n{sections}{command}')
    return folder
