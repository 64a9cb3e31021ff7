"""One real tracker in a process of its own, which notes when it stored whose row."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from axonp2p.clock import SystemClock
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import configure_logs
from axonp2p.settings import TrackerSettings
from axonp2p.table.records import Row
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.envelope import Signed
from tracker.app import Tracker
from tracker.table.table_index import Entry, TableIndex

START_WITHIN_S = 60.0


@dataclass(frozen=True)
class Noted:
    """What a tracker has seen since it was asked last. Times are of the machine's monotonic clock, in seconds."""

    rows: int
    """That it has now."""
    stored: dict[PeerId, float]
    """When the first row of each of these peers was stored."""


class TrackerWorker:
    """The process, from outside."""

    def __init__(self, home: Path, listen: str, others: list[str]) -> None:
        """Start it; it has its home there, and is told of the trackers at `others`."""
        spawn = multiprocessing.get_context("spawn")
        self._line, there = spawn.Pipe()
        self._process: BaseProcess = spawn.Process(target=_run, args=(home, listen, others, there), daemon=True)
        self._process.start()
        there.close()
        if not self._line.poll(START_WITHIN_S):
            raise TimeoutError("a tracker did not start")
        self.address: PinnedAddress
        self.listens_at: float
        self.address, self.listens_at = self._line.recv()

    def noted(self) -> Noted:
        """What was stored since the last time."""
        self._line.send("noted")
        answer: Noted = self._line.recv()
        return answer

    def kill(self) -> None:
        """As by SIGKILL."""
        self._process.kill()
        self._process.join()
        self._line.close()


def _run(home: Path, listen: str, others: list[str], line: Connection[Any, Any]) -> None:
    configure_logs(level="error", as_json=False)
    asyncio.run(_serve(home, listen, others, line))


async def _serve(home: Path, listen: str, others: list[str], line: Connection[Any, Any]) -> None:
    tracker = Tracker(home, TrackerSettings(listen=listen, trackers=others), SystemClock(), random.Random())
    stored: dict[PeerId, float] = {}
    _note(tracker.table.index, stored)
    address = await tracker.start()
    line.send((address, time.monotonic()))
    try:
        while True:
            await asyncio.to_thread(line.recv)
            line.send(Noted(len(tracker.table.index), dict(stored)))
            stored.clear()
    except EOFError:
        await tracker.stop()


def _note(index: TableIndex, stored: dict[PeerId, float]) -> None:
    enter = index.enter

    def entered(entries: Sequence[Entry]) -> list[Signed[Row] | None]:
        before = enter(entries)
        for entry in entries:
            stored.setdefault(entry.peer, time.monotonic())
        return before

    index.enter = entered  # type: ignore[method-assign]
