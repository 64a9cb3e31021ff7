"""Do once, on nothing, what torch is slow at the first time."""

from __future__ import annotations

import safetensors.torch  # noqa: F401  a part of it is loaded only now, and needed at the very end
import torch
from torch import nn
from torch.utils.data import default_collate

from axonp2p.training.trainer.device import CPU
from axonp2p.training.trainer.flops import FlopCounts


def warm_up(device: torch.device = CPU) -> None:
    """Take one training step of a tiny model, with one thread: whatever is forked then can have as many as it likes."""
    torch.set_num_threads(1)
    model = nn.Linear(2, 2).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = default_collate([torch.ones(2), torch.ones(2)]).to(device)

    def gradients() -> float:
        loss = nn.functional.cross_entropy(model(batch), torch.tensor([0, 1], device=device))
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    FlopCounts(model).count(batch, gradients)
    optimizer.step()


def use_threads(cores: int) -> None:
    """From now on, for every step."""
    torch.set_num_threads(cores)
