"""Ask a tracker how it is: its health page, its clock, and how far away it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, ClockWrong, MalformedMessage
from axonp2p.transport.clock_check import Off, wrong_clock
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Count, UnixMoment

_PATH = "/v1/health"
_LIMIT = 4096
_CLOCKS_WITHIN_S = 2.0
_MOST_CLOCKS = 5


class _Page(msgspec.Struct):
    """The part that we read of a tracker's health page."""

    time: UnixMoment
    version: Annotated[str, msgspec.Meta(max_length=64)]
    alive: Count
    protocol: Count = 0
    trouble: Annotated[str, msgspec.Meta(max_length=1000)] = ""


@dataclass(frozen=True)
class Health:
    """The health that it told."""

    time: float
    """Its clock, Unix seconds."""
    version: str
    alive: int
    """Peers that it knows."""
    rtt_s: float
    clock_off_s: float
    """Its clock minus ours."""
    protocol: int = 0
    """Of its build; 0: it does not say."""
    trouble: str = ""
    """The fault that keeps it from its work, by its own word; empty when there is none."""


async def wrong_clock_among(lines: Sequence[HttpCaller], clock: Clock) -> ClockWrong | None:
    """Whether this computer's clock or a tracker's is wrong, by those of these trackers that answer soon."""

    async def off(line: HttpCaller) -> Off | None:
        try:
            async with asyncio.timeout(_CLOCKS_WITHIN_S):
                return line.called, (await ask_health(line, clock)).clock_off_s
        except (AxonError, TimeoutError):
            return None

    offs = await asyncio.gather(*(off(line) for line in lines[:_MOST_CLOCKS]))
    return wrong_clock([one for one in offs if one is not None])


async def ask_health(line: HttpCaller, clock: Clock) -> Health:
    """Raises `MalformedMessage` for who does not answer as a tracker does, and what the line raises."""
    rtt_s = await line.round_trip()
    asked = clock.now()
    body = await line.fetch(_PATH, _LIMIT)
    middle = (asked + clock.now()) / 2
    try:
        page = decode_json(body, _Page)
    except msgspec.DecodeError as error:
        raise MalformedMessage(f"{line.called} does not answer as a tracker does") from error
    return Health(page.time, page.version, page.alive, rtt_s, page.time - middle, page.protocol, page.trouble)
