"""Prints for each tracker on the command line the number of every peer's row, by the peer's name."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from axonp2p.peers.capability import Need, as_map
from axonp2p.table.tracker_client import line_to, query
from axonp2p.transport.address import PinnedAddress


async def _ask(tracker: str) -> dict[str, int]:
    async with line_to(PinnedAddress.parse(tracker)) as line:
        found = await query(line, as_map(Need()), 200, now=time.time())
        return {row.name: row.sequence for row in found.rows}


async def _print() -> None:
    print(json.dumps([await _ask(tracker) for tracker in sys.argv[1:]]))


def main() -> None:
    """As a program of its own: it may run in another network than who asks."""
    asyncio.run(_print())
