"""A line that is watched while it is used, and a client that is told what it can do."""

from __future__ import annotations

import asyncio
import time

import pytest

from axonp2p.jobs.messages import LineMeasured
from axonp2p.transport.flow.tcp_state import TcpState
from peer_daemon.links.line_watch import LineWatch

RATE = 10_000_000


class Link:
    """A session whose kernel counts as if it sent and received at `RATE` without a pause."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def tcp_state(self) -> TcpState:
        seconds = time.monotonic() - self.began
        return TcpState(int(RATE * seconds), int(RATE * seconds), seconds, 0.001)


async def first_told(watch: LineWatch) -> LineMeasured:
    told: asyncio.Future[LineMeasured] = asyncio.get_running_loop().create_future()

    async def tell(measured: LineMeasured) -> None:
        told.set_result(measured)

    reporting = asyncio.create_task(watch.report(tell))
    try:
        return await told
    finally:
        reporting.cancel()


@pytest.mark.parametrize("leases", [1, 3])
async def test_every_lease_hears_of_all_links_together(leases: int):
    watch, links = LineWatch(0, 0), [Link(), Link()]
    for link in links:
        watch.watch(link)
    for measured in await asyncio.gather(*(first_told(watch) for _ in range(leases))):
        assert measured.upload == pytest.approx(2 * RATE, rel=0.2)
        assert measured.download == pytest.approx(2 * RATE, rel=0.2)


async def test_no_more_is_said_than_the_owner_allows():
    watch, link = LineWatch(1_000_000, 2_000_000), Link()
    watch.watch(link)
    assert await first_told(watch) == LineMeasured(upload=1_000_000, download=2_000_000)
