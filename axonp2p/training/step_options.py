"""What the author of a job asks of each local step: part of `[train]`, and of a worker's first order. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.wire.codec import Message

Autocast = Literal["off", "bf16", "fp16"]


class StepOptions(Message, frozen=True, kw_only=True):
    """How one local step is taken."""

    clip_gradients: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """The largest norm of an optimiser's gradients together; 0: any."""
    micro_batch: Annotated[int, msgspec.Meta(ge=0, le=2**20)] = 0
    """Samples of which gradients are computed at a time, and summed to those of the step's batch; 0: all of them."""
    autocast: Autocast = "off"
    """The type in which `loss()` computes where it may (`torch.autocast`)."""
    loader_workers: Annotated[int, msgspec.Meta(ge=0, le=16)] = 0
    """Processes that read the samples of the next steps ahead; 0: each step reads its own."""
