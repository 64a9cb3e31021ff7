"""The program in a lying peer's sandbox: the real worker, but for what it says of its legs.

It knows no other member's values; where an attack wants them, its own last legs stand for them. Which attack it is says
a name in /data (`lying_daemon`). Only what a sandbox has can be imported here, and `liars`, which lies beside it.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from pathlib import Path

from axonp2p.training.worker import worker_main

REMEMBERED = 6


def lie(way: str) -> None:
    """Every leg is told as the attack has it. Imports torch."""
    import torch
    from liars import ATTACKS  # type: ignore[import-not-found]

    from axonp2p.training.trainer.local_trainer import Judge, Leg, LocalTrainer

    honest, chance = LocalTrainer.leg, torch.Generator().manual_seed(1)
    own: deque[torch.Tensor] = deque(maxlen=REMEMBERED)

    def leg(self: LocalTrainer, weights: torch.Tensor, judge: Judge, factors: torch.Tensor | None = None) -> Leg | None:
        taken = honest(self, weights, judge, factors)
        if taken is None:
            return None
        own.append(taken.difference)
        rows = torch.stack([*own, taken.difference])
        return dataclasses.replace(taken, difference=ATTACKS[way](rows, taken.difference, chance))

    LocalTrainer.leg = leg  # type: ignore[method-assign]


def main() -> None:
    (way,) = (path.name.removeprefix("way-").replace("-", " ") for path in Path("/data").glob("way-*"))
    prepare = worker_main.prepare_torch

    def prepare_to_lie(cores: int) -> None:
        prepare(cores)
        lie(way)

    worker_main.prepare_torch = prepare_to_lie
    worker_main.main()


if __name__ == "__main__":
    main()
