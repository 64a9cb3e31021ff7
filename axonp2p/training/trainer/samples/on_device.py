"""A batch, brought to where the model is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

_DEEPEST = 32


def on_device(batch: Any, device: torch.device, depth: int = 0) -> Any:
    """The same batch with its tensors on the device, however `collate` nested them; on a processor the batch itself.

    What can move itself (`to`), as batches of texts and graphs can, does so. What holds no tensors stays as it is.
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
