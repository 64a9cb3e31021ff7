"""A whole tracker in this process: real TLS on loopback, a real database, a clock that the test moves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from axonp2p.identity.keys import PrivateKey
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.reservation.token import Token
from axonp2p.settings import TrackerSettings
from axonp2p.table.tracker_client import announce
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import ManualClock, make_row
from tracker.app import Tracker


@dataclass
class Running:
    """A tracker that serves, and a line to it."""

    tracker: Tracker
    address: PinnedAddress
    caller: HttpCaller
    clock: ManualClock

    async def announce(self, *keys: PrivateKey, **changes: Any) -> None:
        """Each of these peers says that it lives."""
        for key in keys:
            await announce(self.caller, sign(key, make_row(key, now=self.clock.now(), **changes)))

    async def reserve(self, client: PrivateKey, *peers: PrivateKey, **changes: Any) -> Signed[Token]:
        """A token for these peers."""
        usual: dict[str, Any] = {"uuid": new_uuid(), "kinds": ["train"], "seconds": 600, "now": self.clock.now()}
        return await reserve(self.caller, client, [peer.peer_id for peer in peers], **(usual | changes))

    def trusts(self, *trackers: PrivateKey | Running) -> None:
        """As if its settings named these trackers, and no others."""
        ids = {(one.tracker.key if isinstance(one, Running) else one).peer_id for one in trackers}
        self.tracker.is_trusted = ids.__contains__

    async def stop(self) -> None:
        await self.caller.close()
        await self.tracker.stop()


Start = Callable[..., Awaitable[Running]]


async def start_tracker(home: Path, clock: ManualClock | None = None, **settings: Any) -> Running:
    """A tracker with its home there."""
    clock = clock or ManualClock()
    home.mkdir(exist_ok=True)  # noqa: ASYNC240
    usual: dict[str, Any] = {"listen": "127.0.0.1:0", "page_listen": "", "metrics_listen": ""}
    tracker = Tracker(home, TrackerSettings(**(usual | settings)), clock, random.Random(1))
    try:
        address = await tracker.start()
    except BaseException:
        await tracker.stop()  # as the program does: its database's thread would keep pytest from ending
        raise
    return Running(tracker, address, HttpCaller(address, called="tracker lab"), clock)


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts trackers, all with the same home unless told otherwise, and stops what still runs after the test."""
    started: list[Running] = []

    async def begin(home: Path = tmp_path, clock: ManualClock | None = None, **settings: Any) -> Running:
        started.append(await start_tracker(home, clock, **settings))
        return started[-1]

    yield begin
    for running in started:
        await running.stop()


@pytest.fixture
async def lab(start: Start) -> Running:
    """One tracker."""
    return await start()


async def until(what: Callable[[], Any]) -> None:
    """Wait until it is so: trackers that speak with each other do it in their own time."""
    async with asyncio.timeout(20):
        while not what():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
