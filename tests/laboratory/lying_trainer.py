"""Members that really train, some of which then say something else: they know what all others are about to say.

A liar's own leg is real, and so are its samples. What it says is made when its leg ends: by then every honest member
has taken the same leg, as all are equally fast.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import torch
from torch import Tensor

from axonp2p.training.messages import Prepare
from axonp2p.training.trainer.trainer_orders import Done, Key, LegDone, NextLeg, TrainRound
from tests.laboratory.liars import Attack
from tests.laboratory.real_trainer import RealTrainer


class Conspiracy:
    """What all liars of a job know and want."""

    def __init__(self, attack: Attack, liars: frozenset[int], seed: int) -> None:
        self.liars = liars
        self._attack = attack
        self._chance = torch.Generator().manual_seed(seed)
        self._honest: dict[tuple[Key, int], dict[int, Tensor]] = defaultdict(dict)

    def overhears(self, rank: int, leg: LegDone) -> None:
        """An honest member is about to say this."""
        self._honest[leg.key, leg.exchange][rank] = leg.difference.clone()

    def lie(self, leg: LegDone, members: int) -> Tensor:
        """What a liar says instead of its own leg."""
        heard = self._honest[leg.key, leg.exchange]
        assert len(heard) == members - len(self.liars), "somebody is not as fast as the others"
        for old in [at for at in self._honest if at < (leg.key, leg.exchange)]:
            del self._honest[old]
        return self._attack(torch.stack([heard[rank] for rank in sorted(heard)]), leg.difference, self._chance)


class LyingTrainer(RealTrainer):
    """One member of a job in which a conspiracy goes on, honest or not."""

    def __init__(self, task_file: Path, prepare: Prepare, step_s: float, conspiracy: Conspiracy) -> None:
        super().__init__(task_file, prepare, step_s)
        self._rank, self._members = prepare.rank, prepare.shards
        self._conspiracy = conspiracy

    def over(self, leg: LegDone) -> None:
        if self._rank in self._conspiracy.liars:
            leg.difference.copy_(self._conspiracy.lie(leg, self._members))

    def _leg(self, work: TrainRound | NextLeg) -> list[tuple[float, Done]]:
        said = super()._leg(work)
        for _, done in said:
            if isinstance(done, LegDone) and self._rank not in self._conspiracy.liars:
                self._conspiracy.overhears(self._rank, done)
        return said
