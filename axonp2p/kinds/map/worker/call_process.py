"""The process that makes the calls of one core, one chunk after the other.

The function's output goes to the job's log: the link to the worker is a descriptor of its own. Results are packed in
here, so that a value that cannot travel costs its call and nothing else.
"""

from __future__ import annotations

import functools
import resource
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from axonp2p.calls.form import OpenBlob
from axonp2p.calls.opening import load_call, load_function
from axonp2p.kinds.map.call_forms import (
    OWN_MERGE,
    CallOutcome,
    ChunkCalls,
    PackedPart,
    open_part,
    open_values,
    pack_error,
    pack_outcomes,
)
from axonp2p.kinds.map.messages import LARGEST_RESULT, MOST_CALLS, Items
from axonp2p.kinds.map.worker.kept_blobs import open_kept
from axonp2p.kinds.map.worker.own_calls import OwnCalls
from axonp2p.kinds.map.worker.process_link import ProcessLink
from axonp2p.values.bounds import ResultBounds
from axonp2p.values.packing import pack_value
from axonp2p.values.unpacking import unpack_value
from axonp2p.wire.quantities import Seconds

FLUSH_S, FLUSH_BYTES = 1.0, 1024 * 1024
"""Results wait for others of their chunk no longer, and are no more, than this."""
MOST_LOADED = 32
"""Functions that stay loaded."""
Call = Callable[[], Any]


class ChunkOrder(msgspec.Struct, frozen=True, array_like=True):
    """Worker to process: make these calls. With no `calls`, they are of the job's own function for items."""

    items: Items
    calls: Annotated[bytes, msgspec.Meta(max_length=2**20)] = b""


class SomeResults(msgspec.Struct, frozen=True, array_like=True, tag="results"):
    """Process to worker: what the next calls came to; `outcomes` as `call_forms.pack_outcomes` makes it."""

    calls: Annotated[int, msgspec.Meta(ge=1, le=MOST_CALLS)]
    outcomes: Annotated[bytes, msgspec.Meta(max_length=2 * LARGEST_RESULT)]
    cpu_seconds: Seconds


class ChunkMade(msgspec.Struct, frozen=True, array_like=True, tag="done"):
    """Process to worker: all calls have been made."""

    seconds: Seconds


FromProcess = SomeResults | ChunkMade
FROM_PROCESS = msgspec.msgpack.Decoder(FromProcess)


class CallProcess:
    """It makes calls of the job's `own` functions, and of those that come with their calls."""

    def __init__(self, link: ProcessLink, most_result: int, blobs: Path, own: OwnCalls) -> None:
        self._link = link
        self._bounds = ResultBounds(most_bytes=most_result)
        self._own = own
        self._open_blob: OpenBlob = lambda name: open_kept(blobs, name)
        self._loaded: OrderedDict[bytes, Callable[..., Any]] = OrderedDict()

    def serve(self) -> None:
        """Until the worker closes the link."""
        while (data := self._link.receive()) is not None:
            order = msgspec.msgpack.decode(data, type=ChunkOrder)
            began = time.monotonic()
            self._make(order)
            self._link.send(msgspec.msgpack.encode(ChunkMade(time.monotonic() - began)))

    def _make(self, order: ChunkOrder) -> None:
        outcomes: list[CallOutcome] = []
        size, since, cpu = 0, time.monotonic(), _cpu_seconds()
        for call in self._calls(order):
            outcomes.append(outcome := self._outcome(call))
            size += len(outcome.value)
            if size >= FLUSH_BYTES or time.monotonic() - since >= FLUSH_S:
                cpu = self._flush(outcomes, cpu)
                size, since = 0, time.monotonic()
        if outcomes:
            self._flush(outcomes, cpu)

    def _flush(self, outcomes: list[CallOutcome], cpu: float) -> float:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        now = _cpu_seconds()
        some = SomeResults(len(outcomes), pack_outcomes(outcomes), max(0.0, now - cpu))
        self._link.send(msgspec.msgpack.encode(some))
        outcomes.clear()
        return now

    def _calls(self, order: ChunkOrder) -> Iterator[Call]:
        if not order.calls:
            for item in order.items:
                yield lambda item=item: self._own.call(item)  # type: ignore[misc]
            return
        chunk = msgspec.msgpack.decode(order.calls, type=ChunkCalls)
        for one in chunk.calls:

            def call(one: Any = one) -> Any:
                if chunk.functions[one.function] == OWN_MERGE:
                    return self._merged(one.arguments)
                function = self._function(chunk, one.function)
                args, kwargs = load_call(open_part(one.arguments, self._open_blob), self._open_blob)
                return function(*args, **kwargs)

            yield call

    def _function(self, chunk: ChunkCalls, number: int) -> Callable[..., Any]:
        part = chunk.functions[number]
        key = part.blob.encode() or part.data
        if key not in self._loaded:
            self._loaded[key] = load_function(open_part(part, self._open_blob), self._open_blob)
            if len(self._loaded) > MOST_LOADED:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(key)
        return self._loaded[key]

    def _merged(self, arguments: PackedPart) -> Any:
        values = open_values(open_part(arguments, self._open_blob))
        return functools.reduce(self._own.merge, (unpack_value(value, self._bounds) for value in values))

    def _outcome(self, call: Call) -> CallOutcome:
        try:
            value = pack_value(call(), self._bounds)
        except BaseException as error:  # also SystemExit: the process serves on
            return CallOutcome(True, _told(error))
        return CallOutcome(False, value)


def _told(error: BaseException) -> bytes:
    try:
        message = str(error)
    except Exception:
        message = "its text cannot be had"
    # From the frame of the call on: what is above it is Axon's.
    behind = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, behind))
    return pack_error(type(error).__qualname__, _clean(message), _clean(text))


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()


def _cpu_seconds() -> float:
    """Of this process, and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
