"""Handing in what waits until a tracker has taken it: soon after news, and again after growing pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from axonp2p.errors import AxonError
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, keep_up, one_look

GATHER_S = 0.5
"""Receipts that belong together come within moments of each other; so long is waited to hand them in together."""
LAST_GATHER_S = 0.05
"""The same, at the end of a job."""
LONGEST_PAUSE_S = 30.0
LAST_TRIES = 3
"""So often in a row, at the end of a job, no tracker may answer; then what is left is handed in later."""
LAST_PAUSE_S = 0.5
"""Between these tries."""

log = get_logger(__name__)


class Delivery:
    """Of one kind of thing. Use it in an `async with`; `settle` at its end."""

    def __init__(
        self, what: str, hand_in: Callable[[], Awaitable[bool]], more_comes: Callable[[], bool] = lambda: False
    ) -> None:
        """`hand_in` says whether all is taken that waits. `more_comes`: at the end, whether more is to be handed in."""
        self._what = what
        self._hand_in = hand_in
        self._more_comes = more_comes
        self._news = asyncio.Event()
        self._settling = asyncio.Event()
        self._over = asyncio.Event()
        self._taken, self._tries = True, 0
        self._task = asyncio.create_task(keep_up(what, self._run), name=what)

    @property
    def settling(self) -> bool:
        """Whether the job is at its end."""
        return self._settling.is_set()

    def news(self) -> None:
        """There is more to hand in."""
        self._taken = False
        self._news.set()

    def look(self) -> None:
        """Less may be to come."""
        given_up = self._tries >= LAST_TRIES
        if self.settling and (self._taken or given_up) and not self._more_comes():
            self._over.set()

    def end_soon(self) -> None:
        """The job is at its end: pauses are short, and tries are few."""
        self._settling.set()

    async def settle(self, seconds: float) -> bool:
        """Wait at most so long until nothing waits and nothing more comes; whether that is so, or was given up."""
        self.end_soon()
        self.look()
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return False
        finally:
            await self.stop()
        return True

    async def stop(self) -> None:
        """Hand in nothing more."""
        await cancel_and_wait(self._task)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def _run(self) -> None:
        pause = GATHER_S
        while True:
            await self._news.wait()
            await self._unless_settling(pause, LAST_GATHER_S if pause == GATHER_S else LAST_PAUSE_S)
            self._news.clear()
            taken = await self._is_taken()
            if taken:
                pause, self._tries = GATHER_S, 0
            else:
                pause = min(2 * pause, LONGEST_PAUSE_S)
                self._tries += self.settling
                self._news.set()
            self._taken = taken and not self._news.is_set()
            self.look()

    async def _is_taken(self) -> bool:
        try:
            with one_look(self._what):
                return await self._hand_in()
        except AxonError as error:
            log.warning("given up for now", doing=self._what, reason=error.in_a_line)
            return False

    async def _unless_settling(self, seconds: float, at_least: float) -> None:
        """Wait, but hardly when the job is at its end."""
        try:
            async with asyncio.timeout(seconds):
                await self._settling.wait()
            await asyncio.sleep(at_least)
        except TimeoutError:
            return
