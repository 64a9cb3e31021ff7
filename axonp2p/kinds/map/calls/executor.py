"""`axonp2p.Executor`: a `concurrent.futures.Executor` whose calls are made by peers.

    with axonp2p.Executor(peers=4) as executor:
        futures = [executor.submit(work, item) for item in items]
        for future in concurrent.futures.as_completed(futures):
            print(future.result())

It is a job of kind `map`, stored like any other: Ctrl-C leaves it, and `axon resume` makes the calls that are left.
Functions and arguments are pickled by cloudpickle and opened in the peers' sandboxes alone; results come back as plain
values. A function may be called more than once for an item; its result is taken once.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from axonp2p.calls.packing import CallPacker
from axonp2p.client.events.events import JobFinished
from axonp2p.client.interrupted import interrupted
from axonp2p.client.job import Job
from axonp2p.client.job_draft import TextJob
from axonp2p.client.swarm import Swarm
from axonp2p.errors import AxonError, JobFailed
from axonp2p.kinds.map.call_forms import PackedPart, as_part, new_call
from axonp2p.kinds.map.calls.calls_store import CallsStore
from axonp2p.kinds.map.calls.live_calls import ItemFuture, LiveCalls

LARGEST_FUNCTION = 4096
"""A function of more bytes travels once to each peer, apart from its calls."""


class Executor(futures.Executor):
    """Use it in a `with`. All methods raise the errors of `axonp2p.errors` beside those of `concurrent.futures`."""

    def __init__(
        self,
        peers: int = 4,
        trackers: Sequence[str] = (),
        home: str | Path | None = None,
        *,
        swarm: Swarm | None = None,
        name: str = "calls",
        **settings: Any,
    ) -> None:
        """`trackers` and `home` are those of a `Swarm`, or `swarm` is one that is there already.

        `settings` are keys of job.toml: `need={"memory": "2 GiB"}`, `packages={"install": ["scikit-learn"]}`,
        `data=["table.csv"]` (files of the current folder, which calls find by these names), `map={"retries": 1}`.
        Results are believed unless `map={"quorum": "auto"}` or a number has peers compare them.
        """
        self._own_swarm = None if swarm else Swarm(trackers, home)
        self._swarm = swarm or self._own_swarm
        assert self._swarm is not None
        self._packer = CallPacker()
        self._calls = LiveCalls()
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        # A function of a program often returns a time or a random number, and its results are used as they come.
        text = f'name = {json.dumps(name)}\nkind = "map"\n\n[map]\ncalls = true\npython = "{minor}"\nquorum = 1\n'
        need = {**settings.pop("need", {}), "peers": peers}
        try:
            self.job: Job = self._swarm.begin(TextJob(text, Path.cwd()), self._calls, need=need, **settings)
            self._calls.open(CallsStore(self.job.folder))
        except BaseException:
            self._close_swarm()
            raise
        self._over = threading.Thread(target=self._wait, name="axon job", daemon=True)
        self._over.start()
        _OPEN.add(self)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> ItemFuture:
        """As `concurrent.futures` has it. Raises what pickling raises, and the error that the job ended with."""
        return self._submit(self._packed(fn), args, kwargs, _name_of(fn))

    def map(
        self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[Any]:
        """As `concurrent.futures` has it. `chunksize` is chosen by Axon, whatever is given."""
        until = None if timeout is None else time.monotonic() + timeout
        function, blobs = self._packed(fn)
        name = _name_of(fn)
        waiting = [self._submit((function, blobs), args, {}, name) for args in zip(*iterables, strict=False)]
        waiting.reverse()

        def results() -> Iterator[Any]:
            try:
                while waiting:
                    left = None if until is None else max(0.0, until - time.monotonic())
                    yield waiting.pop().result(left)
            finally:
                for future in waiting:
                    future.cancel()

        return results()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `concurrent.futures` has it. Interrupted while it waits (Ctrl-C), it leaves the job, to be resumed."""
        self._calls.close(cancel=cancel_futures)
        if wait:
            try:
                self._join()
            except BaseException:
                self.leave()
                raise
            self._close_swarm()

    def leave(self) -> None:
        """End soon, with what is done; `axon resume` makes the calls that are left."""
        self._calls.close()
        self.job.leave()
        self._join()
        self._close_swarm()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception):
            self.shutdown(wait=True)
        else:  # Ctrl-C: what is done is kept, and the rest is not waited for
            self.leave()
            if isinstance(error, KeyboardInterrupt) and (instead := interrupted([self.job.id])):
                raise instead from None

    # --- how it works ---

    def _packed(self, fn: Callable[..., Any]) -> tuple[PackedPart, dict[str, Any]]:
        packed = self._packer.pack(fn)
        return as_part(packed.data, packed.blobs, LARGEST_FUNCTION)

    def _submit(
        self, function: tuple[PackedPart, dict[str, Any]], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
    ) -> ItemFuture:
        return self._calls.add(new_call(self._packer, *function, args, kwargs, name))

    def _wait(self) -> None:
        """In a thread: what has no result when the job ends will have none."""
        try:
            last = self.job.wait()
        except AxonError as error:
            self._calls.end(error)
        except BaseException as error:
            self._calls.end(AxonError(f"a mistake in axon itself: {error!r}"))
        else:
            state = "finished without it" if isinstance(last, JobFinished) else f"is {self.job.record.state}"
            error_of_rest = JobFailed(f"the job {self.job.id} {state}", fix=f"axon resume {self.job.id}")
            self._calls.end(error_of_rest)

    def _join(self) -> None:
        while self._over.is_alive():
            self._over.join(0.5)  # without a time nothing interrupts it

    def _close_swarm(self) -> None:
        _OPEN.discard(self)
        swarm, self._own_swarm = self._own_swarm, None
        if swarm:
            swarm.close()


def _name_of(fn: Callable[..., Any]) -> str:
    return f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', type(fn).__qualname__)}"


_OPEN: weakref.WeakSet[Executor] = weakref.WeakSet()


def _leave_all() -> None:
    """A program that ends without `shutdown` leaves its jobs: their peers are free at once."""
    for executor in list(_OPEN):
        executor.leave()


# As `concurrent.futures` does it: what `atexit` calls comes after all threads have been told to take no more work.
threading._register_atexit(_leave_all)  # type: ignore[attr-defined]
