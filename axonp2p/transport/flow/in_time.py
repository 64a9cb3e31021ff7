"""Puts off what a stranger says too often, so that whoever it speaks to is left time for others (a door)."""

from __future__ import annotations

import asyncio

from axonp2p.errors import TooOften
from axonp2p.transport.flow.rate_limit import RateLimit


async def in_time(limit: RateLimit, source: str = "", cost: float = 1.0) -> None:
    """Wait until `limit` allows `source` one more; nothing else of the one who waits is read meanwhile.

    So it stands in its full window in the end. The limit counts in seconds of the running loop.
    """
    while True:
        try:
            limit.charge(source, asyncio.get_running_loop().time(), cost)
        except TooOften as error:
            await asyncio.sleep(error.wait_s)
        else:
            return
