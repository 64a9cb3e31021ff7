"""An asyncio loop in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from axonp2p.supervision import cancel_and_wait

T = TypeVar("T")


class LoopThread:
    """The loop runs from the first use until `stop`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Begin some work and go on."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work and wait for its answer or its error. Interrupted (Ctrl-C), the work is cancelled."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def soon(self, function: Callable[[], None]) -> None:
        """Call a function in the loop's thread."""
        self._running().call_soon_threadsafe(function)

    def stop(self) -> None:
        """End the loop; work that still runs is cancelled. Harmless when it does not run."""
        if self._loop is None or self._thread is None:
            return
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            # Not a daemon thread by accident: a program that forgets to stop it must still be able to end.
            self._thread = threading.Thread(target=self._loop.run_forever, name="axon loop", daemon=True)
            self._thread.start()
        return self._loop


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await cancel_and_wait(*others)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
