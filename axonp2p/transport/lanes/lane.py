"""The two ends of a lane, each with a thread of its own, for asyncio (a door).

The loop decides what goes and what is taken; a thread carries it. Between them lie two parts at most: one that is
carried and one that is next.
"""

from __future__ import annotations

import asyncio
import queue
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress

from axonp2p.errors import AxonError
from axonp2p.logs import get_logger
from axonp2p.transport.flow.tcp_state import TcpState
from axonp2p.transport.lanes.wire import PartReader, Wire, write_part

log = get_logger(__name__)

AHEAD = 2
"""Parts between loop and thread."""
LOOK_S = 5.0
"""How often it is looked whether a lane that takes nothing is dead."""


class BulkLane:
    """The part that both ends have in common. Made on the loop; `carry` runs on the thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wire = Wire()
        self._cut = False
        self.opened: asyncio.Future[bool] = self._loop.create_future()
        """Whether it could be opened."""
        self.failure: AxonError | None = None
        """How the other side broke the protocol on it."""
        self.over = False
        self._news = asyncio.Event()

    def cut(self) -> None:
        """End it now; what the thread has read by then can still be taken."""
        self._cut = True
        self._wire.cut()

    def tcp_state(self) -> TcpState | None:
        """As `Session.tcp_state`."""
        return self._wire.tcp_state()

    def carry(self, wire: Wire, connect: Callable[[], ssl.SSLSocket]) -> None:
        """On a thread: carry parts on what `connect` gives until the lane ends. `wire` holds its socket."""
        self._wire = wire
        if self._cut:  # before it had this wire
            wire.cut()
        failure: AxonError | None = None
        try:
            line = connect()
            self._tell(self._is_open)
            self._work(line)
        except OSError as error:
            log.debug("lane ends", reason=str(error))
        except AxonError as error:
            failure = error
        finally:
            wire.close()
            self._tell(lambda: self._is_over(failure))

    def withdrawn(self) -> None:
        """Nobody opened it in time."""
        self._is_over(None)

    def _work(self, line: ssl.SSLSocket) -> None:
        raise NotImplementedError

    def _tell(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the program ends
            self._loop.call_soon_threadsafe(what)

    def _is_open(self) -> None:
        if not self.opened.done():
            self.opened.set_result(True)

    def _is_over(self, failure: AxonError | None) -> None:
        self.over, self.failure = True, failure
        if not self.opened.done():
            self.opened.set_result(False)
        self._news.set()


class LaneSender(BulkLane):
    """The end that sends."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: queue.SimpleQueue[bytes | memoryview | None] = queue.SimpleQueue()
        self._ahead = 0

    async def send(self, part: bytes | memoryview) -> bool:
        """Give the thread one more part, which must not change; waits for room. False when the lane is over."""
        while self._ahead >= AHEAD and not self.over:
            self._news.clear()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._news.wait()
            except TimeoutError:
                if self._wire.is_dead:
                    self.cut()
        if self.over:
            return False
        self._ahead += 1
        self._parts.put(part)
        return True

    def cut(self) -> None:
        """As `BulkLane.cut`."""
        super().cut()
        self._parts.put(None)

    def _work(self, line: ssl.SSLSocket) -> None:
        while (part := self._parts.get()) is not None:
            write_part(line, part)
            self._tell(self._went)

    def _went(self) -> None:
        self._ahead -= 1
        self._news.set()


class LaneReceiver(BulkLane):
    """The end that receives."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: asyncio.Queue[memoryview | None] = asyncio.Queue()
        self._room = threading.Semaphore(AHEAD)

    async def receive(self) -> memoryview | None:
        """The next part; None once the lane is over and all was taken. `took` makes room for another one."""
        part = await self._parts.get()
        if part is None:
            self._parts.put_nowait(None)
        return part

    def took(self) -> None:
        """One part was dealt with."""
        self._room.release()

    def cut(self) -> None:
        """As `BulkLane.cut`."""
        super().cut()
        self._room.release()

    def _work(self, line: ssl.SSLSocket) -> None:
        reader = PartReader(line)
        while True:
            self._room.acquire()
            part = reader.read()
            if part is None:
                return
            self._came(memoryview(part))

    def _came(self, part: memoryview) -> None:
        self._tell(lambda: self._parts.put_nowait(part))

    def _is_over(self, failure: AxonError | None) -> None:
        super()._is_over(failure)
        self._parts.put_nowait(None)
