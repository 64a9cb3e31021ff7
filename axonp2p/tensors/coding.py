"""How values travel: in how many bits each, and whether all of them or only the large ones. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.wire.codec import Message

Bits = Literal[32, 16, 8, 4, 2, 1]
BYTES_A_VALUE = 4
"""A float32's, of which states and models are made."""


class Coding(Message, frozen=True):
    """32 bits are float32, 16 are bfloat16; fewer are levels with a scale for each block of values."""

    bits: Bits = 32
    """A value's."""
    density: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    """Below 1: only about this share of the values goes out, those above a threshold; the rest stays behind."""


EXACT = Coding()
"""Nothing is lost."""
