"""The program in the sandbox: `python -s -P -m axonp2p.kinds.map.worker.worker_main FD`.

The main thread hears orders. A thread for each core gives chunks to a process that makes their calls, forked from a
warm one: a call that is not needed is ended by a kill, and a call that crashes costs its chunk alone.
"""

from __future__ import annotations

import threading
from pathlib import Path

from axonp2p.errors import MalformedMessage
from axonp2p.kinds.map.messages import (
    MOST_CALLS,
    MOST_HELD,
    AtWork,
    BeginChunk,
    BlobsLacking,
    ChunkOver,
    EndChunk,
    FromWorkerMap,
    HeldChunk,
    KeepBlob,
    PrepareCalls,
    ReportCalls,
    ToWorkerMap,
    UseBlob,
)
from axonp2p.kinds.map.worker.core_runner import CoreRunner, WorkerChunk
from axonp2p.kinds.map.worker.kept_blobs import KeptBlobs
from axonp2p.kinds.map.worker.warm_process import WarmProcess
from axonp2p.sandbox.bulk_credit import BulkCredit
from axonp2p.sandbox.inside import Inside, serve_daemon
from axonp2p.sandbox.messages import BundleReady, Control, MayTell, Start, Started, ToWorkerMessage
from axonp2p.wheels.import_path import use_wheels
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

BUNDLE = Path("/job")
SCRATCH = Path("/tmp")  # noqa: S108  the sandbox's own
MOST_TOLD = 8 * MOST_CALLS
"""Items of chunks that `AtWork` has room for."""


def main() -> None:
    """Run until the daemon closes the channel."""
    serve_daemon(serve)


def serve(inside: Inside, start: Start) -> None:
    """Start up, then work. Raises as `MapWorker.run`."""
    inside.send(Started())
    MapWorker(inside, BUNDLE, SCRATCH, start.cores).run()


class MapWorker:
    """One worker, for one job, whose bundle is in `bundle` once the daemon said so."""

    def __init__(self, inside: Inside, bundle: Path, scratch: Path, cores: int) -> None:
        self._inside = inside
        self._bundle = bundle
        self._scratch = scratch
        self._cores = cores
        self._bundle_ready = False
        self._credit = BulkCredit()
        self._blobs = KeptBlobs(scratch / "axon-blobs")
        self._changed = threading.Condition()
        """Held while chunks are looked at."""
        self._waiting: list[WorkerChunk] = []
        self._running: dict[int, WorkerChunk] = {}
        self._ended = False
        self._warm: WarmProcess | None = None
        self._runners: list[CoreRunner] = []
        self._one_large = threading.Lock()

    def run(self) -> None:
        """Serve for ever. Raises `Unreachable` when the daemon closed the channel, `MalformedMessage` for nonsense."""
        try:
            while True:
                self._hear(*self._inside.receive())
        finally:
            self._end_all()

    def _hear(self, message: ToWorkerMessage, payload: memoryview) -> None:
        match message:
            case MayTell(rank=None, bytes=more):
                self._credit.add(more)
            case MayTell():
                pass  # calls do not talk to each other
            case BundleReady():
                use_wheels(self._bundle)
                self._bundle_ready = True
            case Control():
                frame = split_frame(payload)
                order: ToWorkerMap = decode(frame.header, ToWorkerMap, HEADER_LIMIT)
                self._hear_order(order, frame.payload)
            case _:
                raise MalformedMessage(f"{type(message).__name__} after the start")

    def _hear_order(self, order: ToWorkerMap, payload: memoryview) -> None:
        match order:
            case PrepareCalls():
                self._prepare(order)
                self._report()
            case ReportCalls():
                self._report()
            case BeginChunk():
                self._begin(order, payload)
            case EndChunk():
                self._end(order)
            case KeepBlob():
                with self._changed:
                    if self._blobs.keep(order.name, order.size, order.offset, payload):
                        self._changed.notify_all()
            case UseBlob():
                with self._changed:
                    self._blobs.use(order.name, order.file)
                    self._changed.notify_all()

    def _prepare(self, order: PrepareCalls) -> None:
        if not self._bundle_ready:
            raise MalformedMessage("PrepareCalls before the bundle")
        if self._warm is None:
            self._warm = warm = WarmProcess(self._inside, order, self._bundle, self._blobs.folder)
            self._runners = [
                CoreRunner(self._inside, self._credit, warm, self._one_large, self._next_chunk, self._over)
                for _ in range(self._cores)
            ]

    def _report(self) -> None:
        with self._changed:
            held = [
                HeldChunk(chunk.order.chunk, left, chunk.begun)
                for chunk in (*self._running.values(), *self._waiting)
                if not chunk.stopped.is_set() and (left := chunk.order.items[chunk.said :])
            ]
            told = 0
            for place, one in enumerate(held):
                told += len(one.items)
                if told > MOST_TOLD or place == MOST_HELD:
                    del held[place:]  # what the client does not hear of is done again
                    break
            self._say(AtWork(cores=self._cores, chunks=held))

    def _begin(self, order: BeginChunk, payload: memoryview) -> None:
        if self._warm is None:
            raise MalformedMessage("BeginChunk before PrepareCalls")
        with self._changed:
            if len(self._waiting) >= MOST_HELD:
                raise MalformedMessage(f"more than {MOST_HELD} chunks wait")
            self._blobs.pin(order.blobs)
            self._waiting.append(WorkerChunk(order, bytes(payload)))
            if dropped := self._blobs.dropped(order.blobs):
                self._say(BlobsLacking(names=dropped))
            self._changed.notify_all()

    def _end(self, order: EndChunk) -> None:
        with self._changed:
            waiting = next((chunk for chunk in self._waiting if chunk.order.chunk == order.chunk), None)
            if waiting is not None:
                self._waiting.remove(waiting)
                self._blobs.unpin(waiting.order.blobs)
                self._say(ChunkOver(chunk=order.chunk, why="given back"))
                return
            running = None if order.only_waiting else self._running.get(order.chunk)
        if running is not None:
            for runner in self._runners:
                runner.end(running)

    def _next_chunk(self) -> WorkerChunk | None:
        """For the thread of a core: the first chunk whose blobs are all here; None: there will be none."""
        with self._changed:
            while not self._ended:
                for chunk in self._waiting:
                    if not self._blobs.lacking(chunk.order.blobs):
                        self._waiting.remove(chunk)
                        self._running[chunk.order.chunk] = chunk
                        chunk.begun = True
                        return chunk
                self._changed.wait()
            return None

    def _over(self, chunk: WorkerChunk) -> None:
        with self._changed:
            self._running.pop(chunk.order.chunk, None)
            self._blobs.unpin(chunk.order.blobs)

    def _end_all(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            running = list(self._running.values())
        for chunk in running:
            for runner in self._runners:
                runner.end(chunk)
        if self._warm is not None:
            self._warm.end()

    def _say(self, message: FromWorkerMap) -> None:
        self._inside.send(Control(), pack_frame(message))


if __name__ == "__main__":
    main()
