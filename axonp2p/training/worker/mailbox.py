"""The messages of a worker, in and out, with a thread for each, so that its work waits for neither.

The reading thread stops when `WAITING` messages or `WAITING_BYTES` lie untaken, which stops the daemon, the links and
in the end the members that send. The writing thread takes what there is to say from the outbox; work never waits for
it, so members that all send at once cannot block each other.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from axonp2p.errors import AxonError
from axonp2p.jobs.output_messages import OutputMessage
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import FromWorkerMessage, MayTell, ToWorkerMessage
from axonp2p.training.messages import BetweenMembers, FromWorkerTraining
from axonp2p.training.worker.outbox import WorkerOutbox

WAITING = 256
"""Messages that may lie unread."""
WAITING_BYTES = 64 * 2**20
"""The same in bytes of their payloads: 256 parts of slices in 32 bits."""

Heard = tuple[ToWorkerMessage, memoryview]
Own = TypeVar("Own")


class _Heard(queue.Queue[Any]):
    """Full with so many messages, or so many bytes of payloads, in it."""

    def __init__(self) -> None:
        super().__init__(WAITING)
        self._bytes = 0

    def _qsize(self) -> int:
        # What `queue.Queue` compares with its most, under its lock.
        return max(super()._qsize(), WAITING) if self._bytes >= WAITING_BYTES else super()._qsize()

    def _put(self, item: Any) -> None:
        self._bytes += _payload_bytes(item)
        super()._put(item)

    def _get(self) -> Any:
        item = super()._get()
        self._bytes -= _payload_bytes(item)
        return item


def _payload_bytes(item: Any) -> int:
    return len(item[1]) if isinstance(item, tuple) and isinstance(item[1], memoryview) else 0


class Mailbox(Generic[Own]):
    """The channel to the daemon, for one working thread. `Own`: what other threads of the worker post to it."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._heard = _Heard()
        self._outbox = WorkerOutbox()
        self._stirred = threading.Condition()
        self._closing = False
        self._writer = threading.Thread(target=self._write, name="writer", daemon=True)

    def open(self) -> None:
        """Start both threads."""
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        self._writer.start()

    def take(self, seconds: float | None = None) -> Heard | Own | None:
        """The next message; waits for it, at most so long (None: for ever). None: none has come.

        Raises what ended the channel (`Unreachable` when the daemon closed it) or another thread.
        """
        try:
            heard: Heard | Own | BaseException = (
                self._heard.get(timeout=seconds) if seconds != 0 else self._heard.get_nowait()
            )
        except queue.Empty:
            return None
        if isinstance(heard, BaseException):
            raise heard
        return heard

    def post(self, own: Own | BaseException) -> None:
        """From another thread of this worker: for `take`, in its turn."""
        self._heard.put(own)

    def say(self, message: FromWorkerMessage) -> None:
        """Send a message to the daemon. Nothing here waits or raises: a broken channel is found by `take`."""
        self._change(lambda outbox: outbox.say(message))

    def report(self, message: FromWorkerTraining, payload: bytes | memoryview = b"") -> None:
        """Send a message to the client's coordinator. The payload must not change any more."""
        self._change(lambda outbox: outbox.report(message, payload))

    def send_files(self, words: Iterator[tuple[OutputMessage, bytes]]) -> None:
        """Say these to the coordinator when there is nothing else to say; each is taken on the writing thread."""
        self._change(lambda outbox: outbox.send_files(words))

    def tell(self, rank: int, message: BetweenMembers, payload: bytes | memoryview = b"") -> None:
        """Send a message to another member. The payload must not change any more."""
        self._change(lambda outbox: outbox.tell(rank, message, payload))

    def drop(self, useless: Callable[[int, BetweenMembers], bool]) -> None:
        """Forget what still waits for members and is of no use any more."""
        self._change(lambda outbox: outbox.drop(useless))

    def flush(self) -> None:
        """Wait until all is sent that may be, or nothing can be; nothing can be said after it."""
        with self._stirred:
            self._closing = True
            self._stirred.notify()
        self._writer.join()

    def _change(self, change: Callable[[WorkerOutbox], None]) -> None:
        with self._stirred:
            change(self._outbox)
            self._stirred.notify()

    def _credit(self, message: MayTell) -> None:
        self._change(lambda outbox: outbox.credit(message.rank, message.bytes))

    def _read(self) -> None:
        try:
            while True:
                message, payload = self._inside.receive()
                if isinstance(message, MayTell):
                    self._credit(message)
                else:
                    self._heard.put((message, payload))
        except AxonError as error:
            self._heard.put(error)

    def _write(self) -> None:
        try:
            while True:
                with self._stirred:
                    while (said := self._outbox.next()) is None:
                        if self._closing:
                            return
                        self._stirred.wait()
                self._inside.send(*said)
        except AxonError:
            return  # the reading thread finds the same end, and says it
