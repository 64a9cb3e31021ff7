"""float32 values as the bytes that travel: little endian, without copying where the machine allows it."""

from __future__ import annotations

import numpy
import torch
from torch import Tensor


def values_to_bytes(values: Tensor) -> memoryview:
    """The bytes of a contiguous float32 vector. On little-endian machines they are the tensor's own memory."""
    array = values.detach().numpy().astype("<f4", copy=False)
    return array.data.cast("B")


def bytes_to_values(data: bytes | memoryview) -> Tensor:
    """A new float32 vector from bytes whose number is a multiple of four (`ValueError` when it is not)."""
    array = numpy.frombuffer(data, dtype="<f4")
    return torch.from_numpy(array.astype(numpy.float32, copy=True))
