"""A state as a safetensors file: a header that names it, then weights and outer momentum as they travel. Pure.

Any program that reads safetensors can open it. What its name promises is checked over the bytes after the header, which
hash to the state's name as the pieces do that it came in.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from axonp2p.errors import MalformedMessage
from axonp2p.tensors.coding import BYTES_A_VALUE

FORMAT = "axon state 1"
LONGEST_HEADER = 64 * 1024
LENGTH_BYTES = 8
_ALIGNED = 64


@dataclass(frozen=True)
class Model:
    """How large a state is."""

    parameters: int
    values: int

    @property
    def state_bytes(self) -> int:
        """Weights and momentum."""
        return (self.parameters + self.values) * BYTES_A_VALUE


def header_of(job: str, rounds: int, state: bytes, model: Model) -> bytes:
    """What stands before the bytes of a state."""
    weights, end = model.values * BYTES_A_VALUE, model.state_bytes
    said = {
        "__metadata__": {"format": FORMAT, "job": job, "rounds": str(rounds), "state": state.hex()},
        "weights": {"dtype": "F32", "shape": [model.values], "data_offsets": [0, weights]},
        "momentum": {"dtype": "F32", "shape": [model.parameters], "data_offsets": [weights, end]},
    }
    text = json.dumps(said).encode()
    text += b" " * (-(LENGTH_BYTES + len(text)) % _ALIGNED)
    return struct.pack("<Q", len(text)) + text


def header_length(begin: bytes) -> int:
    """How many bytes stand before the state, from the first eight. Raises `MalformedMessage`."""
    if len(begin) != LENGTH_BYTES or (length := struct.unpack("<Q", begin)[0]) > LONGEST_HEADER:
        raise MalformedMessage("not a safetensors file")
    return LENGTH_BYTES + int(length)
