"""On what a member computes: its processor, or the card that its daemon gives to its sandbox.

The daemon names it in the environment (`AXON_DEVICE=cuda`). Where it does not, torch's CUDA side is never started.

Steps on a card are the same each time as far as torch and cuBLAS can make them so. TensorFloat-32 is off: it leaves
out 13 of 23 binary digits where the author wrote float32, and not all cards have it. `autocast` asks for speed by name.

An author without a card tries a task where there is one device only: nothing tells that `torch.rand(n, 1)` in `loss()`,
or a batch that `evaluate()` reads itself, lies elsewhere than the model does. So what meets is brought together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from axonp2p.errors import SettingsError

VARIABLE = "AXON_DEVICE"
CPU = torch.device("cpu")
_CARD = torch.device("cuda:0")
_WORKSPACE = ":4096:8"
"""Without a fixed one cuBLAS may sum in another order the next time (torch.use_deterministic_algorithms says so)."""
_LONGEST_LABEL = 100


def chosen_device(environ: Mapping[str, str]) -> torch.device:
    """The device that the environment names. Raises `SettingsError` where this torch cannot compute on it."""
    named = environ.get(VARIABLE, "")
    if not named:
        return CPU
    if named != _CARD.type:
        raise SettingsError(
            f"{VARIABLE} is {named!r}", fix=f"{VARIABLE} is cuda where there is a card, and else not set"
        )
    if torch.version.cuda is None:
        raise SettingsError(
            f"this worker was given a card, and its torch ({torch.__version__}) is built without CUDA",
            fix="rm .venv/installed; scripts/install",
        )
    return _CARD


def open_device(device: torch.device) -> None:
    """Make it ready to compute the same each time. No process that was forked after this can use a card.

    Raises `SettingsError` where no card answers.
    """
    if device == CPU:
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", _WORKSPACE)
    if not torch.cuda.is_available():
        raise SettingsError("this worker was given a card, and none answers in its sandbox", fix="axon-peer doctor")
    # An operation without a repeatable form still works, with a warning; the member's own trials then say what it comes
    # to.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False


def label_of(device: torch.device) -> str:
    """By which members are told apart whose steps cannot be compared: at most 100 characters.

    A card draws by chance, and sums, in as many parts as it has processors; so their number is in it.
    """
    if device.type != _CARD.type:
        return device.type
    card = torch.cuda.get_device_properties(device)
    made = f"cuda {card.major}.{card.minor}, {card.multi_processor_count} processors"
    return f"{made}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"[:_LONGEST_LABEL]  # type: ignore[no-untyped-call]


def placed(model: nn.Module, device: torch.device) -> nn.Module:
    """The model with its parameters and buffers on the device. One tensor under two names stays one."""
    if device == CPU:
        return model
    places: dict[int, list[tuple[nn.Module, str]]] = {}
    held: list[Tensor] = []
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
            places.setdefault(id(buffer), []).append((module, name))
            held.append(buffer)  # an id is of use while what it names lives
    found = model.to(device)
    for (first, name), *others in places.values():
        for module, other in others:
            setattr(module, other, getattr(first, name))
    return found


def seed_cards(seed: int) -> None:
    """Draw anew on the card too, where one was opened."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


_DEEPEST = 32


def on_device(batch: Any, device: torch.device, depth: int = 0) -> Any:
    """The same batch with its tensors on the device, however `collate` nested them; on a processor the batch itself.

    A value that can move itself (`to`), as batches of texts and graphs can, does so. One without tensors stays as it
    is.
    """
    if device.type == "cpu" or depth > _DEEPEST:
        return batch
    if isinstance(batch, Tensor) or callable(getattr(batch, "to", None)):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return _like(batch, {key: on_device(part, device, depth + 1) for key, part in batch.items()})
    if isinstance(batch, tuple | list):
        parts = [on_device(part, device, depth + 1) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else _like(batch, parts)
    if is_dataclass(batch) and not isinstance(batch, type):
        held = {field.name: getattr(batch, field.name) for field in fields(batch) if field.init}
        return replace(batch, **{name: on_device(part, device, depth + 1) for name, part in held.items()})
    return batch


def _like(batch: Any, parts: Any) -> Any:
    """As `default_collate` does it: of its own kind, where that can be made of its parts."""
    try:
        return type(batch)(parts)
    except TypeError:
        return parts


_CHANGE_THE_FIRST = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")} | {
    *("__iand__", "__ior__", "__ixor__", "__setitem__", "__set__"),
}
_CROSS_THEMSELVES = {"to", "type_as", "copy_"}
_AS_ARRAYS = {"numpy", "__array__"}
_COUNT_AT_HOME = {"_pack_padded_sequence", "_pad_packed_sequence", "lstm", "gru", "rnn_tanh", "rnn_relu"}
"""Of packed sequences torch wants the lengths, which come second, where it can count with them."""


def meeting_on(device: torch.device) -> AbstractContextManager[Any]:
    """A block in which the processor's tensors are moved to the device where one function takes both.

    A tensor that is changed in place stays where it is, and the others come to it. As an array a tensor is copied home
    first.
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
