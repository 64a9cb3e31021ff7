"""How a vector names the file of a model's frozen parameters: 32 bytes as 16 values, which travel exactly. Pure.

Two bytes are a number below 2^16, and stand in the vector as a fraction below 1, so that sketches of the vector still
see the weights beside them. So the name of a state covers the frozen parameters too, which are not in it.
"""

from __future__ import annotations

import struct

from axonp2p.errors import MalformedMessage
from axonp2p.tensors.coding import BYTES_A_VALUE

NAME_BYTES = 32
NAME_VALUES = NAME_BYTES // 2
"""How many values of the vector a name takes."""
_PARTS = struct.Struct(f"<{NAME_VALUES}H")
_VALUES = struct.Struct(f"<{NAME_VALUES}f")
_UNIT = 2.0**16


def values_of(name: bytes) -> list[float]:
    """The values that stand for a name of 32 bytes."""
    return [part / _UNIT for part in _PARTS.unpack(name)]


def name_of(values: bytes | memoryview) -> bytes:
    """The name for which these values stand, as the bytes of float32. Raises `MalformedMessage` when there is none."""
    if len(values) != NAME_VALUES * BYTES_A_VALUE:
        raise MalformedMessage("a state without the name of its frozen parameters")
    numbers = [value * _UNIT for value in _VALUES.unpack(values)]
    if not all(0 <= number < _UNIT and number.is_integer() for number in numbers):
        raise MalformedMessage("a state whose frozen parameters have no name")
    return _PARTS.pack(*map(int, numbers))
