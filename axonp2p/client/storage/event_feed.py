"""Events on their way from the loop's thread to whoever reads them: from the first one on, as often as wanted.

And those of a job's file, as they are added to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Protocol

import msgspec

from axonp2p.client.events.event import Event
from axonp2p.client.events.events import from_line
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError

WAITING_PROGRESS = 100
"""With more unread events than this, a reader is told of no more steps inside a round."""


class _Reader(Protocol):
    """Holds what one reader has not read yet; None is the end."""

    def put(self, event: Event | None) -> None: ...

    def qsize(self) -> int: ...


class _LoopReader:
    """One that is read in an event loop, which goes on meanwhile."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._unread: asyncio.Queue[Event | None] = asyncio.Queue()

    def put(self, event: Event | None) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nobody reads any more
            self._loop.call_soon_threadsafe(self._unread.put_nowait, event)

    def qsize(self) -> int:
        return self._unread.qsize()

    async def get(self) -> Event | None:
        return await self._unread.get()


class EventFeed:
    """Everything that happened in one life of a job. Safe for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._history: list[Event] = []
        self._readers: list[_Reader] = []
        self._over = threading.Event()
        self._error: BaseException | None = None

    @classmethod
    def of(cls, events: list[Event]) -> EventFeed:
        """The events of the past, and nothing more."""
        feed = cls()
        feed._history = events
        feed.end(None)
        return feed

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self._over.is_set()

    def put(self, event: Event) -> None:
        """Something happened."""
        with self._lock:
            if not event.passing:
                self._history.append(event)
            for reader in self._readers:
                if not event.passing or reader.qsize() < WAITING_PROGRESS:
                    reader.put(event)

    def end(self, error: BaseException | None) -> None:
        """Nothing more will happen; `error` is what it ended with, if it ended badly."""
        with self._lock:
            self._error = error
            self._over.set()
            for reader in self._readers:
                reader.put(None)

    def read(self) -> Iterator[Event]:
        """All events, past and to come, until the end. Blocks in between; raises the error at the end."""
        reader: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._begin(reader)
        try:
            while (event := reader.get()) is not None:
                yield event
        finally:
            self._leave(reader)
        self._raise_error()

    async def read_in_loop(self) -> AsyncIterator[Event]:
        """The same in a running event loop, without holding it up."""
        reader = _LoopReader()
        self._begin(reader)
        try:
            while (event := await reader.get()) is not None:
                yield event
        finally:
            self._leave(reader)
        self._raise_error()

    def _begin(self, reader: _Reader) -> None:
        with self._lock:
            for event in self._history:
                reader.put(event)
            if self.over:
                reader.put(None)
            else:
                self._readers.append(reader)

    def _leave(self, reader: _Reader) -> None:
        with self._lock:
            if reader in self._readers:
                self._readers.remove(reader)

    def wait(self, timeout: float | None = None) -> Event | None:
        """The last event, once there are no more; None when that took longer than `timeout` seconds."""
        if not self._over.wait(timeout):
            return None
        self._raise_error()
        return self._history[-1] if self._history else None

    def wait_quietly(self, timeout: float) -> bool:
        """Wait at most so long for the end, however it is; whether it came."""
        return self._over.wait(timeout)

    def _raise_error(self) -> None:
        # A new one for every reader: one exception object raised in several threads would mix their tracebacks. The
        # traceback of the loop's thread says nothing to a reader.
        error = self._error
        if isinstance(error, AxonError):
            raise type(error)(error.message, cause=error.cause, fix=error.fix) from None
        if error is not None:
            raise AxonError(f"a mistake in axon itself: {error!r}") from error


class JobEvents:
    """All that happens to a job, from its first event on, as often as it is read: with `for`, or with `async for`."""

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed

    def __iter__(self) -> Iterator[Event]:
        """Blocks between two events. Raises the `AxonError` that the job failed with."""
        return self._feed.read()

    def __aiter__(self) -> AsyncIterator[Event]:
        """The same in a running event loop, which goes on between two events."""
        return self._feed.read_in_loop()


class EventTail:
    """The events in the file of one job, from the first one on."""

    def __init__(self, folder: JobFolder) -> None:
        self._file = folder.events
        self._offset = 0

    def fresh(self) -> Iterator[Event]:
        """The events since the last call. A line that is not whole yet waits for the next one."""
        try:
            with self._file.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                yield from_line(line)
