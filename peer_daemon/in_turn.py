"""Waits for a pace."""

from __future__ import annotations

import asyncio
import time

from peer_daemon.pace import Pace


async def in_turn(pace: Pace, count: int) -> None:
    """Wait until `count` bytes may go. Whoever waits reads nothing meanwhile, so nothing piles up here."""
    wait = pace.wait(count, time.monotonic())
    if wait:
        await asyncio.sleep(wait)
