"""Holds what all jobs together send to the owner's limit: bulk waits for its turn, words hardly ever do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable

from peer_daemon.links.turns import SendPace, Turns

WORDS_AHEAD_S = 2.0
"""So far may words alone run ahead of the limit, in seconds; bulk waits for them. So a flood of words waits as well."""


class InTurn:
    """The pace and the turns of all that this machine sends, for every lease of a daemon."""

    def __init__(self, limit: float) -> None:
        """`limit` in bytes a second; 0: none."""
        self._pace = SendPace(limit)
        self._words = SendPace(limit)
        self._turns = Turns()
        self._goes: dict[int, asyncio.Future[None]] = {}
        self._serving: asyncio.TimerHandle | None = None

    async def bulk(self, lane: Hashable, count: int) -> None:
        """Wait until so many bytes may go on that lane."""
        if self._pace.unlimited:
            return
        number = self._turns.ask(lane, count)
        self._goes[number] = asyncio.get_running_loop().create_future()
        self._serve()
        try:
            await self._goes[number]
        finally:
            self._turns.forget(number)
            del self._goes[number]

    async def word(self, count: int) -> None:
        """Wait until a small message may go, which is at once but in a flood of them."""
        now = time.monotonic()
        self._pace.wait(count, now)
        wait = self._words.wait(count, now) - WORDS_AHEAD_S
        if wait > 0:
            await asyncio.sleep(wait)

    def _serve(self) -> None:
        if self._serving is None and (turn := self._turns.next()) is not None:
            number, count = turn
            wait = self._pace.wait(count, time.monotonic())
            self._serving = asyncio.get_running_loop().call_later(wait, self._go, number)

    def _go(self, number: int) -> None:
        self._serving = None
        if (go := self._goes.get(number)) is not None and not go.done():
            go.set_result(None)
        self._serve()
