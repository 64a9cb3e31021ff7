"""On what a member computes: its processor, or the card that its daemon gives to its sandbox.

The daemon names it in the environment (`AXON_DEVICE=cuda`). Where it does not, torch's CUDA side is never started.

Steps on a card are the same each time as far as torch and cuBLAS can make them so. TensorFloat-32 is off: it leaves
out 13 of 23 binary digits where the author wrote float32, and not all cards have it. `autocast` asks for speed by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch
from torch import Tensor, nn

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
    # What has no repeatable form still works, with a warning; the member's own trials then say what it comes to.
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
    """The model with its parameters and buffers on the device. What is one tensor under two names stays one."""
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
