"""The calls of a program that runs: from its threads to the driver's loop, and results back into futures.

A call is stored before the driver hears of it. Futures are set by a thread of their own, so that what the program does
in their callbacks holds nothing up. Python does not wait for that thread at its end: a program that Ctrl-C interrupts
while it takes a future's lock keeps the lock, and whoever sets that future waits for ever.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from axonp2p.errors import AxonError, TaskError
from axonp2p.kinds.map.call_forms import NewCall
from axonp2p.kinds.map.calls.calls_store import CallsStore

MOST_TOGETHER = 1000
"""Calls in one commit."""
MOST_BLOBS_TOGETHER = 512 * 1024
"""Bytes of blobs that are new on the disk with one commit: peers get none of its calls before."""
MOST_CACHED = 64 * 2**20
"""Bytes of calls that wait, which are not read from the disk again."""


class ItemFuture(Future[Any]):
    """One that can be cancelled until its call is given to a peer."""

    def __init__(self, calls: LiveCalls, item: int) -> None:
        super().__init__()
        self._calls = calls
        self.item = item

    def cancel(self) -> bool:
        """As `Future` has it."""
        before = self.cancelled()
        done = super().cancel()
        if done and not before:
            self._calls.note_cancelled(self.item)
        return done


@dataclass(frozen=True)
class ProgramNews:
    """The news of a program since its driver asked last."""

    more: int
    """Calls that are on the disk."""
    cancelled: list[int]
    """Items among all that are on the disk that nobody wants."""
    complete: bool
    """Whether no more will come, and all are on the disk."""


class LiveCalls:
    """Of one job in the life in which it was submitted. Any thread may call it."""

    def __init__(self) -> None:
        # Taken as it is: by a condition, whose methods are Python's own, Ctrl-C can leave it taken for ever.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._unstored: deque[NewCall] = deque()
        self._next = self._stored = 0
        self._closed = False
        self._error: AxonError | None = None
        self._futures: dict[int, ItemFuture] = {}
        self._cancelled: list[int] = []
        self.sizes = array("I")
        """Of each that is stored, what it takes of a chunk's message."""
        self.groups = array("I")
        """Of each that is stored, which function it calls, by its name in the source."""
        self._group_of: dict[str, int] = {}
        self._cached: dict[int, NewCall] = {}
        self._cached_bytes = 0
        self._wake: Callable[[], None] = lambda: None
        self._settling: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        """For the thread that sets futures; None ends it."""

    # --- the program's side ---

    def open(self, store: CallsStore) -> None:
        """The job has its folder."""
        threading.Thread(target=self._store, args=[store], name="axon calls", daemon=True).start()
        threading.Thread(target=self._settle, name="axon results", daemon=True).start()

    def add(self, call: NewCall) -> ItemFuture:
        """One more. Raises the error that the job ended with, and `RuntimeError` when it takes no more."""
        with self._lock:
            if self._error:
                raise self._error
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            future = self._futures[self._next] = ItemFuture(self, self._next)
            self._next += 1
            self._unstored.append(call)
            self._changed.notify()
        return future

    def close(self, *, cancel: bool = False) -> None:
        """No more will come. `cancel`: those that no peer has are not wanted."""
        with self._lock:
            self._closed = True
            waiting = list(self._futures.values()) if cancel else []
            self._changed.notify()
        for future in waiting:
            future.cancel()
        self._wake()

    def note_cancelled(self, item: int) -> None:
        """Nobody wants this one."""
        with self._lock:
            self._cancelled.append(item)
            self._futures.pop(item, None)
        self._wake()

    def end(self, error: AxonError) -> None:
        """The job is over: what has no result will have none. Harmless when it is called twice."""
        with self._lock:
            self._error = self._error or error
            self._closed = True
            left, self._futures = list(self._futures.values()), {}
            self._unstored.clear()
            self._changed.notify()
        self._settling.put(partial(_fail, left, error))
        self._settling.put(None)

    # --- the driver's side ---

    def attach(self, wake: Callable[[], None]) -> None:
        """`wake` is called in any thread when there is something new."""
        self._wake = wake
        wake()

    def news(self, known: int) -> ProgramNews:
        """For a driver that knows of so many calls."""
        with self._lock:
            stored = max(known, self._stored)
            cancelled = sorted(item for item in self._cancelled if item < stored)
            self._cancelled = [item for item in self._cancelled if item >= stored]
            complete = self._closed and not self._unstored and stored == self._stored == self._next
        return ProgramNews(stored - known, cancelled, complete)

    def given_out(self, items: Sequence[int]) -> list[NewCall | None]:
        """A peer gets these: they cannot be cancelled any more. Those calls that need not be read from the disk."""
        with self._lock:
            found = [self._cached.pop(item, None) for item in items]
            self._cached_bytes -= sum(len(call.arguments.data) for call in found if call)
            futures = [self._futures.get(item) for item in items]
        for future in futures:
            if future is not None and not future.running():
                with contextlib.suppress(RuntimeError, InvalidStateError):
                    future.set_running_or_notify_cancel()
        return found

    def settle(self, results: Iterable[tuple[int, Any]]) -> None:
        """These are on the disk: values, or a `TaskError`."""
        with self._lock:
            found = [(self._futures.pop(item, None), value) for item, value in results]
        self._settling.put(partial(_set, [(future, value) for future, value in found if future is not None]))

    # --- how it works ---

    def _settle(self) -> None:
        while (work := self._settling.get()) is not None:
            work()

    def _store(self, store: CallsStore) -> None:
        try:
            while True:
                with self._lock:
                    while not self._unstored and not self._closed:
                        self._changed.wait()
                    if not self._unstored:
                        break
                    calls = _together(self._unstored, store)
                store.add(self._stored, calls)
                with self._lock:
                    if not self._unstored:
                        break
                    for item, call in enumerate(calls, self._stored):
                        self.sizes.append(call.size)
                        self.groups.append(self._group_of.setdefault(call.name, len(self._group_of)))
                        if self._cached_bytes < MOST_CACHED:
                            self._cached[item] = call
                            self._cached_bytes += len(call.arguments.data)
                        self._unstored.popleft()
                    self._stored += len(calls)
                self._wake()
        except AxonError as error:
            self.end(error)
        finally:
            store.close()
            self._wake()


def _together(waiting: Iterable[NewCall], store: CallsStore) -> list[NewCall]:
    """The calls of one commit: the first of these, and one at least."""
    calls: list[NewCall] = []
    seen: set[str] = set()
    fresh = 0
    for call in islice(waiting, MOST_TOGETHER):
        calls.append(call)
        for name in call.blobs.keys() - seen:
            seen.add(name)
            if not store.blob(name).exists():
                fresh += memoryview(call.blobs[name]).nbytes
        if fresh >= MOST_BLOBS_TOGETHER:
            break
    return calls


def _set(results: Sequence[tuple[ItemFuture, Any]]) -> None:
    for future, value in results:
        with contextlib.suppress(InvalidStateError):
            if isinstance(value, TaskError):
                future.set_exception(value)
            else:
                future.set_result(value)


def _fail(futures: Sequence[ItemFuture], error: AxonError) -> None:
    for future in futures:
        with contextlib.suppress(InvalidStateError):
            future.set_exception(error)
