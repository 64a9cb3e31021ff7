"""The jobs that are trained: `examples/text` in two sizes, and one that only exchanges."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.lab.bench.settings import WIDTHS, Trial

TEXT = Path(__file__).parent.parent.parent.parent / "examples" / "text"

_ONLY_EXCHANGES = '''
import time

import torch
from torch import nn
from torch.utils.data import TensorDataset


class Line(nn.Module):
    """So many values; one of them is used, all of them move."""

    def __init__(self):
        super().__init__()
        self.values = nn.Parameter(torch.zeros(VALUES))

    def forward(self, samples):
        if not self.training:
            print("NEW", time.monotonic(), flush=True)
        return (self.values.sum() - samples).square().mean()


class Step(torch.optim.SGD):
    """Says when it is done: from then on a member has something to exchange."""

    def step(self, closure=None):
        super().step(closure)
        print("READY", time.monotonic(), flush=True)


class Task:
    def model(self):
        return Line()

    def data(self, split, shard, shards):
        return TensorDataset(torch.ones(8 if split == "train" else 1, 1))

    def loss(self, model, batch):
        return model(batch[0])

    def optimizer(self, model):
        return Step(model.parameters(), lr=1e-9)
'''


def write_text(folder: Path, trial: Trial, **train: object) -> Path:
    """The example with other numbers; `train` are more keys of [train], with underscores for dashes."""
    shutil.copytree(TEXT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    width, layers = WIDTHS[trial.millions]
    task = folder / "task.py"
    text = _with(task.read_text(), WIDTH=width, LAYERS=layers, TEST_WINDOWS=trial.windows, CONTEXT=trial.context)
    if not trial.muon:
        text = _by_adamw(text)
    task.write_text(_padded(text, trial.step_ms / 1000) if trial.step_ms else text)
    wished = {"rounds": trial.rounds, "steps": trial.steps, "batch": trial.batch, "seed": trial.seed} | train
    _write_job(folder, "text", trial.members, text_memory_mb(trial.millions), wished)
    return folder


def text_memory_mb(millions: int) -> int:
    """What a worker needs that trains the example with so many million values.

    Torch, activations, some thirty vectors, and ten more in the process that takes another member's steps again.
    """
    return 1040 + 160 * millions


def write_exchange(folder: Path, values: int, members: int, rounds: int, **train: object) -> Path:
    """One trivial step a round, and then all of `values` values are exchanged."""
    folder.mkdir()
    (folder / "task.py").write_text(_ONLY_EXCHANGES.replace("VALUES", str(values)))
    wished = {"rounds": rounds, "steps": 1, "batch": 8, "seed": 0} | train
    _write_job(folder, "exchange", members, exchange_memory_mb(values), wished)
    return folder


def exchange_memory_mb(values: int) -> int:
    """What a worker needs that exchanges so many: torch, and some fifteen vectors of 4 bytes a value."""
    return 700 + values * 60 // 10**6


def _write_job(folder: Path, name: str, members: int, memory_mb: int, train: dict[str, object]) -> None:
    lines = [
        f'name = "{name}"',
        'task = "task.py"',
        "[need]",
        f"peers = {members}",
        f"min-peers = {max(1, members // 2)}",
        f"memory = {memory_mb}",
        'max-rtt = "5 s"',
        "[train]",
        *(f"{key.replace('_', '-')} = {_toml(value)}" for key, value in train.items()),
    ]
    (folder / "job.toml").write_text("\n".join(lines) + "\n")


def _padded(text: str, step_s: float) -> str:
    """The task with steps that sleep. Backward and the optimiser are taken to need twice what forward does."""
    head = "    def loss(self, model, batch):\n"
    if text.count(head) != 1:
        raise ValueError("the example's task has no loss that could be padded")
    padded = f"""    def loss(self, model, batch):
        began = time.monotonic()
        found = self._loss(model, batch)
        if torch.is_grad_enabled():
            time.sleep(max(0.0, {step_s} - 3 * (time.monotonic() - began)))
        return found

"""
    text = text.replace(head, padded + head.replace("loss", "_loss"))
    return text.replace("import sysconfig\n", "import sysconfig\nimport time\n", 1)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')


_MUON = re.compile(r"axonp2p\.muon\(model, lr=[\d.e-]+\)")
_ADAMW = "torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))"


def _with(text: str, **numbers: int) -> str:
    """With other numbers."""
    for name, number in numbers.items():
        text, found = re.subn(rf"(?m)^{name} = \d+$", f"{name} = {number}", text)
        if found != 1:
            raise ValueError(f"{name} does not stand once in the example's task")
    return text


def _by_adamw(text: str) -> str:
    """Trained by AdamW: most others' environments have no Axon, and all contestants take the same steps."""
    text, found = _MUON.subn(_ADAMW, text.replace("import axonp2p\n\n", ""))
    if found != 1:
        raise ValueError("the example's task does not have its optimiser once")
    return text
