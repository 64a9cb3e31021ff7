"""The wishes of a job's author for the exchange between members, and for each local step: parts of `[train]`. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.jobs.aggregation import Aggregation
from axonp2p.tensors.coding import Bits
from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Count, PlainText, Quantity, Seconds

COMPRESSIONS: dict[str, Bits | None] = {
    "auto": None, "none": 32, "bf16": 16, "8-bit": 8, "4-bit": 4, "2-bit": 2, "1-bit": 1,
}  # fmt: skip
"""The names that a job file uses, and how many bits a value then has; None: as few as are good."""


BytesWish = Literal["line", "sparing"]


class ExchangeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """An option that is None is chosen from links and steps (`tuning.exchange_tuner`)."""

    compression: PlainText = "auto"
    """How values travel: one of `COMPRESSIONS`."""
    bytes: BytesWish = "line"
    """The source of the choice where it is not said here: what the members' lines carry, or what sends few bytes."""
    density: Quantity = 1.0
    """About which share of the values goes out in an exchange; the rest is kept for the next one."""
    exchange_every: Count | None = None
    """Local steps between two exchanges."""
    seconds: Seconds = 0.0
    """How long the local steps of a round may take; 0: as long as they do."""
    overlap: bool = True
    """Whether members may go on with local steps while an exchange is under way."""
    outer_learning_rate: Quantity | None = None
    """Of the step that all take together after an exchange."""
    outer_momentum: Quantity | None = None
    """Nesterov, of the same."""
    step_scaling: bool = True
    """Whether steps of Adam and its kin are lengthened where a member's own noise made them short."""
    aggregation: Aggregation = "mean"
    """By which rule owners make one value of the members'."""
    hostile: Count | None = None
    """How many members may lie without harm; None: a quarter of those that there are."""

    @property
    def bits(self) -> Bits | None:
        """A value's."""
        return COMPRESSIONS[self.compression]


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
