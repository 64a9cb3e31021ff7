"""One core of the worker: a thread that gives chunks to a process of calls, and takes home what comes of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from axonp2p.errors import Unreachable
from axonp2p.kinds.map.messages import BeginChunk, CallResults, ChunkBegun, ChunkOver, ResultPart, WhyOver
from axonp2p.kinds.map.worker.call_process import FROM_PROCESS, ChunkOrder, SomeResults
from axonp2p.kinds.map.worker.warm_process import ForkedProcess, WarmProcess
from axonp2p.sandbox.bulk_credit import BulkCredit
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import Control
from axonp2p.wire.codec import Message
from axonp2p.wire.frame import FRAME_COST, pack_frame

PART = 960 * 1024


@dataclass
class WorkerChunk:
    """A chunk that is not over."""

    order: BeginChunk
    calls: bytes
    said: int = 0
    """How many of its results were sent."""
    begun: bool = False
    stopped: threading.Event = field(default_factory=threading.Event)
    process: ForkedProcess | None = None


class CoreRunner:
    """Its thread runs until `next_chunk` returns None."""

    def __init__(
        self,
        inside: Inside,
        credit: BulkCredit,
        warm: WarmProcess,
        one_large: threading.Lock,
        next_chunk: Callable[[], WorkerChunk | None],
        over: Callable[[WorkerChunk], None],
    ) -> None:
        self._inside = inside
        self._credit = credit
        self._warm = warm
        self._one_large = one_large
        """Held while results go home in parts: the client has room for those of one chunk of a peer."""
        self._next_chunk = next_chunk
        self._over = over
        self._process: ForkedProcess | None = None
        self._ending = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="calls", daemon=True)
        self._thread.start()

    def end(self, chunk: WorkerChunk) -> None:
        """Kill the process that makes its calls, if one does."""
        chunk.stopped.set()
        self._credit.wake()
        with self._ending:
            if self._process is not None and chunk.process is self._process:
                with contextlib.suppress(OSError):
                    os.kill(self._process.pid, signal.SIGKILL)

    def _run(self) -> None:
        try:
            with contextlib.suppress(Unreachable):  # a broken channel is found by the main thread
                while (chunk := self._next_chunk()) is not None:
                    self._do(chunk)
        except BaseException:
            self._inside.close()  # the worker ends, and its daemon says so: without a core it would be silent for ever
            raise

    def _do(self, chunk: WorkerChunk) -> None:
        self._inside.send(Control(), pack_frame(ChunkBegun(chunk=chunk.order.chunk)))
        if self._process is None:
            self._process = self._warm.fork()
        if self._process is None:
            self._end(chunk, "crashed", reason="the process that loads the function ended")
            return
        with self._ending:
            chunk.process = self._process
            stopped = chunk.stopped.is_set()
        began = time.monotonic()
        link = self._process.link
        with contextlib.suppress(OSError):
            if not stopped:
                link.send(msgspec.msgpack.encode(ChunkOrder(chunk.order.items, chunk.calls)))
                while (data := link.receive()) is not None:
                    said = FROM_PROCESS.decode(data)
                    if not isinstance(said, SomeResults):
                        self._end(chunk, "done", seconds=said.seconds)
                        return
                    self._send(chunk, said)
        with self._ending:
            process, self._process = self._process, None
        code = self._warm.reap(process)
        if chunk.stopped.is_set():
            self._end(chunk, "ended")
        else:
            reason = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._end(chunk, "crashed", seconds=time.monotonic() - began, reason=reason)

    def _send(self, chunk: WorkerChunk, some: SomeResults) -> None:
        if len(some.outcomes) <= PART:
            self._send_parts(chunk, some)
            return
        with self._one_large:
            self._send_parts(chunk, some)

    def _send_parts(self, chunk: WorkerChunk, some: SomeResults) -> None:
        number, data = chunk.order.chunk, memoryview(some.outcomes)
        last = (len(data) - 1) // PART * PART
        for offset in range(0, last, PART):
            if not self._say(ResultPart(chunk=number, offset=offset), data[offset : offset + PART], chunk.stopped):
                return
        results = CallResults(
            chunk=number, first=chunk.order.items[chunk.said], calls=some.calls, size=len(data),
            sha256=hashlib.sha256(data).digest(), cpu_seconds=some.cpu_seconds,
        )  # fmt: skip
        if self._say(results, data[last:], chunk.stopped):
            chunk.said += some.calls

    def _end(self, chunk: WorkerChunk, why: WhyOver, *, seconds: float = 0.0, reason: str = "") -> None:
        self._over(chunk)
        self._say(ChunkOver(chunk=chunk.order.chunk, why=why, seconds=seconds, reason=reason), b"", _NEVER)

    def _say(self, message: Message, payload: memoryview | bytes, stopped: threading.Event) -> bool:
        packed = pack_frame(message, payload)
        if not self._credit.take(len(packed) + FRAME_COST, stopped):
            return False
        self._inside.send(Control(bulk=True), packed)
        return True


_NEVER = threading.Event()
