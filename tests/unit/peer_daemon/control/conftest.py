from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest

from axonp2p.errors import SettingsError
from peer_daemon.control.server import ControlDoor
from peer_daemon.control.socket_file import SOCKET_NAME, short_name
from peer_daemon.control.status import (
    CreditsNow,
    DoneNow,
    HistoryTold,
    LimitsAsked,
    LimitsNow,
    MachineNow,
    NetworkNow,
    SpanTold,
    Status,
)

NOW = 1_800_000_000.0
READY = Status(
    version="0.1.0",
    name="otter",
    peer="6FOKXKKS",
    state="ready",
    why="free",
    sentence="no job wants this machine now",
    since=NOW,
    now=NOW,
    jobs=[],
    machine=MachineNow(cores=4, memory_mb=8192, others_cpu_percent=3.0),
    limits=LimitsNow(cores=2, memory_mb=4096, disk_mb=2048, slots=1, hours=[], on_battery=False, others_cpu=25),
    credits=CreditsNow(today=1.5, confirmed=20.0, pending=0.5, days=[0.0] * 29 + [1.5]),
    done=DoneNow(jobs=1, rounds=20, samples=6400, flops=10**30),
    network=NetworkNow(reachable="yes", address="192.0.2.7:7071", trackers=[], dht_nodes=4),
)
SPAN = SpanTold(began=NOW - 60, ended=NOW, state="ready", why="free", sentence="no job")


class Daemon:
    """Does what it is told, on paper; can be told to fail."""

    def __init__(self):
        self.sheet = READY
        self.kept = HistoryTold(spans=[SPAN], happenings=[])
        self.heard: list[Any] = []
        self.number = 0
        self.fails: Exception | None = None
        self.waiting = 0
        self._turned = asyncio.Condition()

    def status(self):
        return self.sheet

    async def turn(self, heard, **changes):
        if self.fails:
            raise self.fails
        self.heard.append(heard)
        self.sheet = msgspec.structs.replace(self.sheet, **changes)
        await self.look()

    async def look(self):
        async with self._turned:
            self.number += 1
            self._turned.notify_all()

    async def pause(self, seconds):
        if seconds is not None and seconds <= 0:
            raise SettingsError(f"a pause of {seconds:g} seconds", fix="axon-peer pause --for 2h")
        await self.turn(("pause", seconds), state="paused", until=None if seconds is None else NOW + seconds)

    async def finish(self):
        await self.turn("finish", state="finishing")

    async def resume(self):
        await self.turn("resume", state="ready")

    async def change_limits(self, asked: LimitsAsked):
        await self.turn(asked, limits=msgspec.structs.replace(self.sheet.limits, cores=asked.cores))

    async def history(self, since):
        self.heard.append(("history", since))
        return self.kept

    async def changed(self, after):
        self.waiting += 1
        try:
            async with self._turned:
                await self._turned.wait_for(lambda: self.number > after)
                if self.fails:
                    raise self.fails
                return self.number
        finally:
            self.waiting -= 1


@pytest.fixture
def ready():
    return READY


@pytest.fixture
def daemon():
    return Daemon()


@pytest.fixture
async def door(daemon, tmp_path):
    door = ControlDoor(daemon, tmp_path / SOCKET_NAME)
    await door.start()
    yield door
    await door.stop()


@pytest.fixture
async def line(door, tmp_path):
    """A bare HTTP client on the socket."""
    with short_name(tmp_path / SOCKET_NAME) as name:
        async with aiohttp.ClientSession("http://axon-peer", connector=aiohttp.UnixConnector(path=name)) as session:
            yield session
