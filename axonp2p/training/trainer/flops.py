"""Floating point operations of training steps, by torch's own counter: what credit is given for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

_MOST_SHAPES = 64


def _attention(query: torch.Size, key: torch.Size, value: torch.Size, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))  # type: ignore[no-untyped-call]


def _attention_backward(
    gradient: torch.Size, query: torch.Size, key: torch.Size, value: torch.Size, *_: Any, **__: Any
) -> int:
    return int(sdpa_backward_flop_count(gradient, query, key, value))  # type: ignore[no-untyped-call]


# torch counts attention on GPUs, but has no formula for the operators that CPUs use; it is the same calculation.
_CPU_ATTENTION = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
}


class FlopCounts:
    """Floating point operations of a step, counted once for each shape of batch."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        """Operations of a step, by the shape of its batch."""

    def count(self, batch: Any, run: Callable[[], float]) -> tuple[float, int]:
        """Run forward and backward passes; gives their loss and their operations."""
        shape = repr(_shape(batch))
        flops = self.known.get(shape)
        if flops is None and len(self.known) >= _MOST_SHAPES:
            # Endlessly many shapes, as of texts of any length: what was counted stands for the rest.
            flops = sum(self.known.values()) // len(self.known)
        if flops is not None:
            return run(), flops
        with FlopCounterMode(display=False, custom_mapping=_CPU_ATTENTION) as counter:
            loss = run()
        self.known[shape] = counter.get_total_flops()
        return loss, self.known[shape]


def _shape(value: Any) -> object:
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, dict):
        return tuple((key, _shape(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(_shape(part) for part in value)
    return type(value)
