"""A whole job in virtual time: the real coordinator's mind, real members on simulated lines, real steps of torch.

What is done again is done as in a worker: in forks of a process that has taken no step.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from axonp2p.training.messages import Prepare
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.round_messages import RoundAccepted
from axonp2p.training.spot_checks.scheduler import CheckSettings
from axonp2p.training.trainer.local_trainer import LocalTrainer
from axonp2p.training.trainer.trainer_orders import LegDone
from axonp2p.verification.rates import Trust
from tests.laboratory.exchange_lines import Home
from tests.laboratory.exchange_world import Setting, World
from tests.laboratory.real_trainer import RealTrainer

STEP_S = 0.2
Kind = TypeVar("Kind")


class _Followed(RealTrainer):
    """How far each leg moved its weights is noted."""

    def __init__(self, task_file: Path, prepare: Prepare, kind: type[LocalTrainer]) -> None:
        super().__init__(task_file, prepare, STEP_S, kind)
        self.moves: list[float] = []

    def over(self, leg: LegDone) -> None:
        self.moves.append(float(leg.difference.norm()))


@dataclass(frozen=True)
class RealJob:
    """What came of one."""

    said: list[object]
    """All that the client decided."""
    moves: dict[int, list[float]]
    """How far each leg of each member led."""

    def only(self, kind: type[Kind]) -> list[Kind]:
        """What it said of one kind."""
        return [action for action in self.said if isinstance(action, kind)]

    @property
    def losses(self) -> list[float]:
        """The mean of all members, round after round."""
        rounds = (list(accepted.reports.values()) for accepted in self.only(RoundAccepted))
        return [sum(report.loss for report in reports) / len(reports) for reports in rounds]


def real_job(
    folder: Path,
    text: str,
    *,
    kinds: Mapping[int, type[LocalTrainer]] | None = None,
    members: int = 4,
    overlap: bool = False,
    seed: int = 1,
    wished: float = 0.2,
    rounds: int = 8,
) -> RealJob:
    """Train it. `wished` 0: with marks, as all checked jobs have, and nothing is done again."""
    (folder / "task.py").write_text(text)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more would not survive the forks of this process
    trainers: dict[int, _Followed] = {}
    try:
        for rank in range(members):
            prepare = Prepare(rank=rank, job="job", task="task.py", shards=16, batch=2, seed=seed)
            trainers[rank] = _Followed(folder / "task.py", prepare, (kinds or {}).get(rank, LocalTrainer))
            trainers[rank].tries = wished > 0
        setting = Setting(
            seed,
            (Home(1e6, 0.02, 0.0),) * members,
            (STEP_S,) * members,
            0.5,
            min_peers=1,
            rounds=rounds,
            steps=8,
            options=ExchangeOptions(
                compression="8-bit", exchange_every=4, overlap=overlap, outer_learning_rate=0.5, outer_momentum=0.0
            ),
            layout=trainers[0].first.layout,
            batch=2,
        )
        checks = CheckSettings(wished, 2**30, lambda _: Trust(), random.Random(seed).random)
        world = World(setting, trainers=trainers, checks=checks)
        world.run()
    finally:
        torch.set_num_threads(threads)
        for trainer in trainers.values():
            trainer.close()
    job = RealJob([action for _, action in world.desk.seen], {rank: one.moves for rank, one in trainers.items()})
    assert len(job.only(RoundAccepted)) == rounds, world.story()
    return job
