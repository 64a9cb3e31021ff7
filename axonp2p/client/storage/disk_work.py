"""A job's writing to the disk: in its order, in a thread of its own, so that a slow disk makes no session look dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

Work = Callable[[], None]


class DiskWork:
    """One job's. Any thread may ask for work. After one that failed no other is done until `try_again`."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="books")
        self._last: Future[None] | None = None
        self._failure: Exception | None = None

    def do(self, work: Work) -> None:
        """Have it done after all that was asked for before. Raises what an earlier one failed with."""
        self._raise()
        self._last = self._thread.submit(self._try, work)

    def finish(self) -> None:
        """Wait until all is done, blocking. Raises what one failed with."""
        if self._last:
            self._last.result()
        self._raise()

    async def finished(self) -> None:
        """Wait until all is done. Raises what one failed with."""
        if self._last:
            await asyncio.shield(asyncio.wrap_future(self._last))
        self._raise()

    def try_again(self) -> None:
        """Forget that one failed: what is asked for from now on is done."""
        self._failure = None

    async def close(self) -> None:
        """Do what was asked for, and end the thread. Harmless when it has ended."""
        await asyncio.to_thread(self._thread.shutdown)

    def _try(self, work: Work) -> None:
        if self._failure is None:
            try:
                work()
            except Exception as error:
                self._failure = error

    def _raise(self) -> None:
        if self._failure:
            raise self._failure
