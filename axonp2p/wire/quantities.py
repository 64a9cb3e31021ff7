"""Quantities that messages of many rooms carry, each with the range that holds for all that is done with it later.

A number without both its ends reaches somebody's arithmetic: a time that no calendar has, a float that is no number
(`nan` is above no least, so a float with two ends is finite). `tests/rules/test_message_bounds.py` finds those without.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

LATEST = 2**35
"""In the year 3058: every calendar has it in all time zones, and ten-second slots up to it fit 32 bits."""
UnixTime = Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
UnixMoment = Annotated[float, msgspec.Meta(ge=0, le=LATEST)]
"""Unix seconds with a part of one."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Quantity = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Of anything; also a number that only grows. A float holds it exactly."""
Number = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
"""Finite: one nan would make the sums of all nan."""
ProtocolVersion = Annotated[int, msgspec.Meta(ge=0, le=2**16)]
Cores = Annotated[int, msgspec.Meta(ge=1, le=4096)]
GpuCapability = Annotated[str, msgspec.Meta(max_length=6, pattern=r"^([0-9]{1,3}\.[0-9]{1,2})?\Z")]
"""The compute capability of a GPU as NVIDIA counts it: `9.0`. Empty: any will do, or it is not told."""
IpText = Annotated[str, msgspec.Meta(max_length=64)]
"""An IP address as the sender spells it, with the zone that IPv6 may have; empty where it is not known. Not checked."""

Line = Annotated[str, msgspec.Meta(max_length=4096)]
"""A path, an address, a sentence of a file that this machine's own programs write."""

PlainText = Annotated[str, msgspec.Meta(max_length=256)]
_Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
PlainValue = bool | _Whole | Number | PlainText | None
PlainList = Annotated[
    list[PlainValue | Annotated[dict[PlainText, PlainValue], msgspec.Meta(max_length=16)]], msgspec.Meta(max_length=64)
]
PlainMap = Annotated[
    dict[PlainText, PlainValue | PlainList | Annotated[dict[PlainText, PlainValue], msgspec.Meta(max_length=64)]],
    msgspec.Meta(max_length=64),
]
"""A map of another room, carried without being read here: bounded in depth and in number all the same."""
MOST_CLAUSES = 8
"""Of one requirement in a need: `>=1.4,!=1.5,<3` has three."""
