"""An executor that sends calls as a swarm does, to one other process: packed, opened there, and plain values back."""

from __future__ import annotations

import multiprocessing
import site
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, Self

from axonp2p.calls.opening import load_call, load_function
from axonp2p.calls.packing import CallPacker
from axonp2p.errors import TaskError
from axonp2p.values.packing import pack_value
from axonp2p.values.unpacking import unpack_value

TESTS = Path(__file__).parent.parent
"""As a person's own folder: functions of its modules are sent by value."""


class CodecExecutor(Executor):
    """One process, in place of all sandboxes."""

    def __init__(self) -> None:
        self._packer = CallPacker(TESTS)
        spawn = multiprocessing.get_context("spawn")
        self._process = ProcessPoolExecutor(1, spawn, initializer=site.addsitedir, initargs=(str(TESTS.parent),))
        self.sent: dict[str, int] = {}
        """Bytes of each blob that was sent."""
        self.calls: list[int] = []
        """Bytes of each call, without its blobs."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As `concurrent.futures` has it."""
        function, call = self._packer.pack(fn), self._packer.pack_call(args, kwargs)
        blobs = {name: bytes(content) for name, content in {**function.blobs, **call.blobs}.items()}
        self.sent |= {name: len(content) for name, content in blobs.items()}
        self.calls.append(len(call.data))
        outcome: Future[Any] = Future()
        self._process.submit(_call, function.data, call.data, blobs).add_done_callback(
            lambda done: _settle(outcome, done)
        )
        return outcome

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `concurrent.futures` has it."""
        self._process.shutdown(wait, cancel_futures=cancel_futures)

    def __enter__(self) -> Self:
        return self


def _settle(outcome: Future[Any], done: Future[tuple[bool, bytes]]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        worked, data = done.result()
        value = unpack_value(data)
    except BaseException as error:
        outcome.set_exception(error)
        return
    if worked:
        outcome.set_result(value)
    else:
        outcome.set_exception(TaskError(*value))


def _call(function: bytes, call: bytes, blobs: dict[str, bytes]) -> tuple[bool, bytes]:
    """In the other process."""
    try:
        args, kwargs = load_call(call, blobs.__getitem__)
        return True, pack_value(load_function(function, blobs.__getitem__)(*args, **kwargs))
    except Exception as error:
        return False, pack_value([type(error).__name__, str(error), "".join(traceback.format_exception(error))])
