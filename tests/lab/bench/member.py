"""One member of a baseline: the task, its samples in the order in which Axon's member of that rank reads them, reports.

Runs in the baselines' environments, which have torch and no Axon.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import torch
from torch import nn

from tests.lab.bench.settings import Part
from tests.lab.bench.task_file import load_task


class Member:
    """The model and data of one rank."""

    def __init__(self, part: Part, rank: int) -> None:
        torch.set_num_threads(1)
        self.part = part
        self.rank = rank
        self.failed = 0
        """Steps that this member had to take without the others."""
        self._report = Path(part.reports) / f"{rank}.jsonl"
        self.task = load_task(Path(part.task))
        random.seed(part.seed)
        torch.manual_seed(part.seed)
        self.model: nn.Module = self.task.model()
        made = self.task.optimizer(self.model)
        self.optimizers: list[torch.optim.Optimizer] = made if isinstance(made, list) else [made]
        """One, or several of different parameters, as `axonp2p.muon` gives them."""
        self._samples = self.task.data("train", rank, part.members)
        self._held_out = self.task.data("test", rank, part.members)
        self._order: list[list[int]] = json.loads((Path(part.reports) / f"order-{rank}.json").read_text())

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The only one, for libraries that take one."""
        (only,) = self.optimizers
        return only

    def take_step(self) -> None:
        """With the gradients that there are."""
        for optimizer in self.optimizers:
            optimizer.step()

    def gradients(self, model: nn.Module, step: int) -> None:
        """Forward and backward of one step, counted from 0, on this member's next samples."""
        numbers = torch.tensor(self._order[step])
        batch = [tensor[numbers] for tensor in self._samples.tensors]
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        self.task.loss(model, batch).backward()

    def report(self, steps: int, *, evaluate: bool = False) -> None:
        """So many steps are done; at 0 the clock starts. Bytes are those that have passed the line, either way."""
        found: dict[str, float] = {"steps": steps, "failed": self.failed}
        if evaluate:
            found["loss"], found["windows"] = self._mean_loss(), len(self._held_out)
        counters = Path(f"/sys/class/net/{self.part.device}/statistics")
        found["passed"] = sum(int((counters / name).read_text()) for name in ("tx_bytes", "rx_bytes"))
        with self._report.open("a") as file:
            file.write(json.dumps(found | {"at": time.monotonic()}) + "\n")

    def after_step(self, step: int) -> None:
        """Reports it, with an evaluation when it is time for one."""
        every = self.part.evaluate_every
        self.report(step + 1, evaluate=bool(every) and (step + 1) % every == 0)

    def _mean_loss(self) -> float:
        self.model.eval()
        total, count = 0.0, len(self._held_out)
        with torch.no_grad():
            for begin in range(0, count, self.part.batch):
                batch = [tensor[begin : begin + self.part.batch] for tensor in self._held_out.tensors]
                total += self.task.loss(self.model, batch).item() * len(batch[0])
        self.model.train()
        return total / count


def meet(part: Part, rank: int, where: str) -> None:
    """Wait for all others: whoever ends before they do would take their last average away."""
    folder = Path(part.reports) / where
    folder.mkdir(exist_ok=True)
    (folder / str(rank)).touch()
    while len(list(folder.iterdir())) < part.members:
        time.sleep(0.1)
