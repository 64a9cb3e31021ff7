"""A peer that is told of one tracker takes the tokens of another for which its operator vouches, and no others."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from axonp2p.errors import AxonError
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.messages import LeaseTaken, TakeLease
from axonp2p.peers.capability import Need, as_map
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import line_to, query
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.sessions.dialer import dial
from axonp2p.wire.codec import encode
from axonp2p.wire.schema import SCHEMAS
from tests.system.processes import Processes

pytestmark = pytest.mark.timeout(200)

PATIENCE_S = 60.0


async def row_at(tracker: str) -> Row:
    """The peer's row, once this tracker has it."""
    async with line_to(PinnedAddress.parse(tracker)) as line, asyncio.timeout(PATIENCE_S):
        while not (found := (await query(line, as_map(Need()), 5, now=time.time())).rows):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    return found[0]


async def take_lease(tracker: str) -> str:
    """With a token of this tracker's: empty when the peer gives the lease, or why it does not."""
    row, key = await row_at(tracker), PrivateKey.generate()
    async with line_to(PinnedAddress.parse(tracker)) as line:
        token = await reserve(line, key, [row.peer], uuid=new_uuid(), kinds=["train"], seconds=60, now=time.time())
    session = await dial(key, row, called="the peer")
    try:
        taking = TakeLease(
            token=encode(token), job="vouched", kind="train", cores=1, memory_mb=512, schema=SCHEMAS["train"]
        )
        await session.send(taking)
        async with asyncio.timeout(PATIENCE_S):
            await session.receive(LeaseTaken)
    except AxonError as error:
        return error.in_a_line
    finally:
        await session.close()
    return ""


async def taken_in_time(tracker: str) -> str:
    """The list of whom its operator vouches for reaches the peer within moments, not at once."""
    until = time.monotonic() + PATIENCE_S
    while (why := await take_lease(tracker)) and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(1)
    return why


def test_the_tokens_of_a_vouched_tracker_are_taken_and_a_strangers_are_not(tmp_path: Path) -> None:
    with Processes(tmp_path, first_tracker="vouched") as processes:
        vouched = processes.trackers.pop("vouched")
        processes.start_tracker("configured", vouches=[vouched])
        configured = processes.tracker
        processes.start_peers("otter")
        processes.start_tracker("stranger", knows=[configured])
        assert asyncio.run(taken_in_time(vouched)) == ""
        assert "none of this peer's trackers" in asyncio.run(take_lease(processes.trackers["stranger"]))
