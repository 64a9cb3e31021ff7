"""Measures the line of this machine while jobs use it, and tells a client when there is something new to know."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Protocol
from weakref import WeakSet

from axonp2p.jobs.messages import LineMeasured
from axonp2p.transport.flow.tcp_state import TcpState
from peer_daemon.links.line_meter import LineMeter

STEP_S, IDLE_STEP_S = 0.05, 0.25
"""How often the kernel is asked while anything moves, and else."""
TELL_S = 2.0
"""How often at most a client is told."""
WORTH_TELLING = 0.15
"""How large a change is told, as a part of what was said before."""


class Counted(Hashable, Protocol):
    """A connection of which the kernel keeps count."""

    def tcp_state(self) -> TcpState | None:
        """Its counts; None once it is gone."""
        ...


class LineWatch:
    """The line of one daemon, over the links of all its leases."""

    def __init__(self, most_upload: float, most_download: float) -> None:
        """The owner's limits in bytes a second, 0 for none: no more is ever said."""
        self._most_upload = most_upload or math.inf
        self._most_download = most_download or math.inf
        self._meter = LineMeter()
        self._lines: WeakSet[Counted] = WeakSet()
        self._last = 0.0

    def watch(self, line: Counted) -> None:
        """A link uses that session or lane, until it is closed."""
        self._lines.add(line)

    async def report(self, tell: Callable[[LineMeasured], Awaitable[None]]) -> None:
        """Tell a client for as long as its lease lasts; each lease has one task for this."""
        told: LineMeasured | None = None
        told_at = float("-inf")
        while True:
            await asyncio.sleep(STEP_S if self._meter.moving else IDLE_STEP_S)
            now = time.monotonic()
            self._ask(now)
            measured = self._measured()
            if measured and now >= told_at + TELL_S and worth_telling(told, measured):
                told, told_at = measured, now
                await tell(measured)

    def _ask(self, now: float) -> None:
        if now < self._last + STEP_S / 2:
            return  # another lease's task has just done it
        self._last = now
        states = {line: line.tcp_state() for line in self._lines}
        self._meter.heard({line: state for line, state in states.items() if state is not None}, now)

    def _measured(self) -> LineMeasured | None:
        upload, download = self._meter.upload, self._meter.download
        if upload is None or download is None:
            return None
        return LineMeasured(
            upload=int(min(upload, self._most_upload)), download=int(min(download, self._most_download))
        )


def worth_telling(told: LineMeasured | None, measured: LineMeasured) -> bool:
    """Whether either number has changed enough (pure)."""
    if told is None:
        return True
    pairs = ((told.upload, measured.upload), (told.download, measured.download))
    return any(abs(new - old) > WORTH_TELLING * old for old, new in pairs)
