"""A card that is none: a device of torch's own, whose tensors lie in the processor's memory and are computed there.

It is as strict as a card: one function takes no tensors of both, none of it can be read as an array, and what it holds
comes and goes by copies alone. So whatever a step forgets to move, or reads where it is, fails here as it would there.
What it cannot show: another order of sums, kernels that a card alone has, what runs while it is not waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

NAME = "lazy"
"""A kind of device that torch knows and has no memory for. One of its own (`rename_privateuse1_backend`) would stay in
the process, with a thread for its backward passes, after which no process that is forked can take any."""
aten = torch.ops.aten
_MAY_MIX = {
    *(aten.copy_.default, aten.index.Tensor, aten.index_put_.default, aten.index_put.default),
    *(aten._pack_padded_sequence.default, aten._pack_padded_sequence_backward.default),
}


class _OnCard(torch.Tensor):
    """Stands for `held`, which nobody else sees."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=torch.device(NAME, 0),
        )

    def __init__(self, held):
        self.held = held

    def __repr__(self):
        return f"on the card: {self.held!r}"

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


class _Factories(TorchDispatchMode):
    """What is made on the card from nothing, or from a tensor that is elsewhere."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


@contextmanager
def played_card() -> Iterator[torch.device]:
    """Its device, for as long as the block lasts."""
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with _Factories():
            yield torch.device(NAME, 0)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swaps)


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    given, _ = tree_flatten((args, kwargs))
    there = [one for one in given if isinstance(one, _OnCard)]
    to = kwargs.get("device")
    wanted = there != [] if to is None else torch.device(to).type == NAME
    if not there and not wanted:
        return func(*args, **kwargs)
    if func is aten._fused_sdp_choice.default:
        return 0  # by plain products: the other ways are kernels of their own on every kind of device
    if there and func not in _MAY_MIX and to is None:
        for one in given:
            if isinstance(one, torch.Tensor) and not isinstance(one, _OnCard) and one.dim():
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but found at least two devices, {NAME}:0 and "
                    f"{one.device}! ({func})"
                )
    named = {**kwargs, "device": torch.device("cpu")} if to is not None else kwargs
    held, plain = tree_map(_held, (args, named))
    found = tree_map(_resolved, func(*held, **plain))
    if func is aten._pack_padded_sequence.default:
        return _OnCard(found[0]), found[1]  # torch counts with the lengths
    same = {id(one.held): one for one in there}
    # What is changed in place is still the same; all else that comes of tensors there is there as well.
    return tree_map(lambda one: same.get(id(one), _OnCard(one) if wanted else one) if _plain(one) else one, found)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, _OnCard) else value


def _resolved(value: Any) -> Any:
    return value.resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) and value.is_complex() else value


def _plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, _OnCard)
