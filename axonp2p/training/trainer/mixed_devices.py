"""Tensors that a task makes itself, where they meet those of a card.

An author without a card tries a task where there is one device only: nothing tells that `torch.rand(n, 1)` in `loss()`,
or a batch that `evaluate()` reads itself, lies elsewhere than the model does. So what meets is brought together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_CHANGE_THE_FIRST = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")} | {
    *("__iand__", "__ior__", "__ixor__", "__setitem__", "__set__"),
}
_CROSS_THEMSELVES = {"to", "type_as", "copy_"}
_AS_ARRAYS = {"numpy", "__array__"}
_COUNT_AT_HOME = {"_pack_padded_sequence", "_pad_packed_sequence", "lstm", "gru", "rnn_tanh", "rnn_relu"}
"""Of packed sequences torch wants the lengths, which come second, where it can count with them."""


def meeting_on(device: torch.device) -> AbstractContextManager[Any]:
    """A block in which the processor's tensors are moved to the device where one function takes both.

    What is changed in place stays where it is, and the others come to it. As an array a tensor is copied home first.
    """
    return nullcontext() if device.type == "cpu" else _Meeting(device)


class _Meeting(TorchFunctionMode):
    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _AS_ARRAYS and not args[0].is_cpu:
            return func(args[0].cpu(), *args[1:], **named)
        found = [tensor for tensor in _tensors((args, named)) if self._is_ours(tensor)]
        if len({tensor.device.type for tensor in found}) > 1 and name not in _CROSS_THEMSELVES:
            changes = name in _CHANGE_THE_FIRST or (name.endswith("_") and not name.endswith("__"))
            home = found[0].device if changes else self._device
            if isinstance(out := named.get("out"), Tensor):
                home = out.device
            args, named = self._moved(args, home), self._moved(named, home)
        if name in _COUNT_AT_HOME and isinstance(args[1], Tensor) and not args[1].is_floating_point():
            args = (args[0], args[1].cpu(), *args[2:])
        return func(*args, **named)

    def _is_ours(self, tensor: Tensor) -> bool:
        return tensor.device.type in ("cpu", self._device.type)

    def _moved(self, value: Any, home: torch.device) -> Any:
        if isinstance(value, Tensor):
            return value.to(home) if self._is_ours(value) and value.device.type != home.type else value
        if isinstance(value, tuple | list):
            parts = [self._moved(part, home) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {key: self._moved(part, home) for key, part in value.items()}
        return value


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
