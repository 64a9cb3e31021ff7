"""Floating point operations of training steps, by torch's own formulas: what credit is given for.

Looking rows up in a table computes nothing, and takes its time all the same: what is moved counts as operations. All
counts follow from shapes alone, so whoever takes the same steps again comes to the same number (docs/decisions/0050).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop_count, shape_wrapper

from axonp2p.tensors import flat

_MOST_SHAPES = 64
LOOKUP_FLOPS = 16
"""For each value that is looked up in a table: it is read and written, and so is its gradient, and a core does about
four operations while it moves one value."""
LEAST_FLOPS = 2
"""For each trained value, a step: it has a gradient, and is changed. One multiplied takes three times as much."""


def _attention(query: torch.Size, key: torch.Size, value: torch.Size, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))  # type: ignore[no-untyped-call]


def _attention_backward(
    gradient: torch.Size, query: torch.Size, key: torch.Size, value: torch.Size, *_: Any, **__: Any
) -> int:
    return 2 * _attention(query, key, value)


def _lookup(table: torch.Size, rows: torch.Size, *_: Any, **__: Any) -> int:
    return LOOKUP_FLOPS * math.prod(rows) * table[-1]


# Which operator computes attention is the device's choice, and with some it computes a part twice: that counts once.
_ATTENTION = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    torch.ops.aten._scaled_dot_product_flash_attention_backward: _attention_backward,
    torch.ops.aten._scaled_dot_product_efficient_attention_backward: _attention_backward,
    torch.ops.aten._scaled_dot_product_cudnn_attention_backward: _attention_backward,
}
_LOOKUPS = {
    torch.ops.aten.embedding: _lookup,
    torch.ops.aten._embedding_bag: _lookup,
    torch.ops.aten._embedding_bag_forward_only: _lookup,
}


def _matrices(weights: Sequence[Tensor], apart: int) -> list[list[int]]:
    """How many values each matrix has, for one layer and direction after the other: first the input's."""
    layers = [weights[begin : begin + apart] for begin in range(0, len(weights), apart)]
    return [[weight.numel() for weight in layer if weight.dim() == 2] for layer in layers]


def _places(given: Tensor) -> int:
    """Of all sequences together."""
    return given.numel() // given.size(-1)


def _recurrent(given: Tensor, layers: Sequence[Sequence[int]]) -> int:
    """Each matrix times each place."""
    return 2 * _places(given) * sum(map(sum, layers))


def _recurrent_backward(
    given: Tensor, layers: Sequence[Sequence[int]], sequences: int, lowest: int, wanted: Sequence[bool]
) -> int:
    """Of all that the matrices were multiplied with, the gradients.

    But for the input, which the first `lowest` of the layers and directions take, and for the first hidden values of
    all sequences, where these are not `wanted`.
    """
    spared = 0 if wanted[0] else _places(given) * sum(layer[0] for layer in layers[:lowest])
    spared += 0 if wanted[1] else sequences * sum(layer[1] for layer in layers)
    return _recurrent(given, layers) - 2 * spared


def _cpu_lstm(given: Tensor, *rest: Any, **_: Any) -> int:
    return _recurrent(given, _matrices(rest[:2], 2))


def _cpu_lstm_backward(given: Tensor, *rest: Any, **_: Any) -> int:
    layers, hidden = _matrices(rest[:2], 2), rest[4]
    wanted = given.requires_grad, hidden.requires_grad
    return _recurrent(given, layers) + _recurrent_backward(given, layers, _places(hidden), 1, wanted)


def _cudnn(given: Tensor, weights: Sequence[Tensor], apart: int, *_: Any, **__: Any) -> int:
    return _recurrent(given, _matrices(weights, apart))


def _cudnn_backward(
    given: Tensor, weights: Sequence[Tensor], apart: int, _buffer: Any, hidden: Tensor, *rest: Any, **_: Any
) -> int:
    layers = _matrices(weights, apart)
    both_ways, wanted = rest[12], rest[16]
    lowest = 2 if both_ways else 1
    return _recurrent(given, layers) + _recurrent_backward(given, layers, hidden.size(1), lowest, wanted)


# A whole layer, or several, as one operator, of which torch counts nothing; elsewhere they are products of matrices.
_RECURRENT: dict[Any, Callable[..., int]] = {
    torch.ops.aten.mkldnn_rnn_layer: _cpu_lstm,
    torch.ops.aten.mkldnn_rnn_layer_backward: _cpu_lstm_backward,
    torch.ops.aten._cudnn_rnn: _cudnn,
    torch.ops.aten._cudnn_rnn_backward: _cudnn_backward,
}
_FORMULAS: dict[Any, Callable[..., int]] = (
    flop_registry
    | _RECURRENT
    | {
        operator: shape_wrapper(formula)  # type: ignore[no-untyped-call]
        for operator, formula in (_ATTENTION | _LOOKUPS).items()
    }
)


class _Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what is computed within it, by torch's own formulas, and leaves the computing as it is.

    torch's `FlopCounterMode` takes some operators apart (`silu_backward`), whose results then have other last bits: the
    first step would not lead where it leads when it is done again. Its hooks on modules also make `torch.compile` warn
    and refuse `torch.autograd.grad` of what goes in.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        found = func(*args, **named)
        if formula := _FORMULAS.get(func.overloadpacket):
            self.flops += formula(*args, **named, out_val=found)
        return found


def least_of(model: nn.Module) -> int:
    """Operations that any step of this model counts for. Of a table with sparse gradients only lookups count."""
    sparse = set(map(id, flat.sparse_tables(model)))
    trained = [one for one in model.parameters() if one.requires_grad and id(one) not in sparse]
    return LEAST_FLOPS * sum(one.numel() for one in trained)


class FlopCounts:
    """Floating point operations of a step of this model, counted once for each shape of batch."""

    def __init__(self, model: nn.Module) -> None:
        self._least = least_of(model)
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
        with _Counting() as counting:
            loss = run()
        self.known[shape] = max(counting.flops, self._least)
        return loss, self.known[shape]


def _shape(value: Any) -> object:
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, dict):
        return tuple((key, _shape(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(_shape(part) for part in value)
    return type(value)
