"""Which samples each member reads in each step: the same that Axon's member of that rank reads."""

from __future__ import annotations

import json
from pathlib import Path

from axonp2p.training.plan import batch_indices, seed_for
from tests.lab.bench.settings import Trial
from tests.lab.bench.task_file import load_task


def write_orders(task_file: Path, trial: Trial, folder: Path) -> None:
    """For each member a file of sample numbers, which baselines read in environments without Axon."""
    task = load_task(task_file)
    for rank in range(trial.members):
        samples = len(task.data("train", rank, trial.members))
        order = batch_indices(samples, trial.batch, seed_for(trial.seed, 0, [rank]), 0, trial.all_steps)
        (folder / f"order-{rank}.json").write_text(json.dumps(order))
