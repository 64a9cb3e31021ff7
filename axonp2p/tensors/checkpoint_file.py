"""A state as a safetensors file: a header that names it, then weights and outer momentum as they travel. Pure.

The frozen parameters, to which all states of a job belong, are such a file too.

Any program that reads safetensors can open it. The state's name is checked over the bytes after the header,
which hash to it as the pieces do that it came in.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

from axonp2p.errors import MalformedMessage
from axonp2p.tensors.coding import BYTES_A_VALUE
from axonp2p.tensors.frozen_name import NAME_VALUES, name_of

FORMAT = "axon state 1"
FROZEN_FORMAT = "axon frozen 1"
LONGEST_HEADER = 64 * 1024
LENGTH_BYTES = 8
_ALIGNED = 64


@dataclass(frozen=True)
class Model:
    """How large a state is."""

    parameters: int
    values: int
    frozen: int = 0
    """Bytes of its frozen parameters, which are in no state."""
    frozen_name: int = 0
    """Where the values of a state stand that name their file."""

    @property
    def state_bytes(self) -> int:
        """Weights and momentum."""
        return (self.parameters + self.values) * BYTES_A_VALUE

    def frozen_of(self, state: memoryview) -> bytes:
        """The name of the frozen parameters that belong to a state; empty where there are none.

        Raises `MalformedMessage` for a state that names none.
        """
        if not self.frozen:
            return b""
        begin, end = (at * BYTES_A_VALUE for at in (self.frozen_name, self.frozen_name + NAME_VALUES))
        return name_of(state[begin:end])


def header_of(job: str, rounds: int, state: bytes, model: Model) -> bytes:
    """The header before the bytes of a state."""
    weights, end = model.values * BYTES_A_VALUE, model.state_bytes
    said = {
        "__metadata__": {"format": FORMAT, "job": job, "rounds": str(rounds), "state": state.hex()},
        "weights": {"dtype": "F32", "shape": [model.values], "data_offsets": [0, weights]},
        "momentum": {"dtype": "F32", "shape": [model.parameters], "data_offsets": [weights, end]},
    }
    return _packed(said)


def frozen_header_of(job: str, name: bytes, size: int) -> bytes:
    """The header before the bytes of frozen parameters."""
    return _packed(
        {
            "__metadata__": {"format": FROZEN_FORMAT, "job": job, "frozen": name.hex()},
            "frozen": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]},
        }
    )


def _packed(said: dict[str, Any]) -> bytes:
    text = json.dumps(said).encode()
    text += b" " * (-(LENGTH_BYTES + len(text)) % _ALIGNED)
    return struct.pack("<Q", len(text)) + text


def header_length(begin: bytes) -> int:
    """How many bytes stand before the state, from the first eight. Raises `MalformedMessage`."""
    if len(begin) != LENGTH_BYTES or (length := struct.unpack("<Q", begin)[0]) > LONGEST_HEADER:
        raise MalformedMessage("not a safetensors file")
    return LENGTH_BYTES + int(length)
