"""What the worker hears and says, with a thread for each, so that its work waits for neither.

The reading thread stops when `WAITING` messages lie untaken, which stops the daemon, the links and in the end the
members that send. The writing thread takes what there is to say from a queue of views that are packed only when
their turn comes; work never waits for it, so members that all send at once cannot block each other.
"""

from __future__ import annotations

import queue
import threading

from axonp2p.errors import AxonError
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.messages import Control, FromWorkerMessage, ToMember, ToWorkerMessage
from axonp2p.training.messages import BetweenMembers, FromWorkerTraining
from axonp2p.wire.frame import pack_frame

WAITING = 256
"""Messages that may lie unread: 64 MiB of parts of slices."""

Heard = tuple[ToWorkerMessage, bytes]
_Said = tuple[FromWorkerMessage, FromWorkerTraining | BetweenMembers | None, bytes | memoryview]


class Mailbox:
    """The channel to the daemon, for one working thread."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._heard: queue.Queue[Heard | AxonError] = queue.Queue(WAITING)
        self._said: queue.Queue[_Said | None] = queue.Queue()
        self._writer = threading.Thread(target=self._write, name="writer", daemon=True)

    def open(self) -> None:
        """Start both threads."""
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        self._writer.start()

    def take(self) -> Heard:
        """The next message; waits for it. Raises what ended the channel, `Unreachable` when the daemon closed it."""
        return self._opened(self._heard.get())

    def glance(self) -> Heard | None:
        """The next message when there is one."""
        try:
            return self._opened(self._heard.get_nowait())
        except queue.Empty:
            return None

    def say(self, message: FromWorkerMessage) -> None:
        """Send a message to the daemon. Nothing here waits or raises: a broken channel is found by `take`."""
        self._said.put((message, None, b""))

    def report(self, message: FromWorkerTraining, payload: bytes | memoryview = b"") -> None:
        """Send a message to the client's coordinator. The payload must not change any more."""
        self._said.put((Control(), message, payload))

    def tell(self, rank: int, message: BetweenMembers, payload: bytes | memoryview) -> None:
        """Send a message to another member. The payload must not change any more."""
        self._said.put((ToMember(rank=rank), message, payload))

    def flush(self) -> None:
        """Wait until everything is sent, or cannot be; nothing can be said after it."""
        self._said.put(None)
        self._writer.join()

    def _opened(self, heard: Heard | AxonError) -> Heard:
        if isinstance(heard, AxonError):
            self._heard.put(heard)  # for whoever asks again
            raise heard
        return heard

    def _read(self) -> None:
        try:
            while True:
                self._heard.put(self._inside.receive())
        except AxonError as error:
            self._heard.put(error)

    def _write(self) -> None:
        try:
            while said := self._said.get():
                message, inner, payload = said
                self._inside.send(message, pack_frame(inner, payload) if inner is not None else b"")
        except AxonError:
            return  # the reading thread finds the same end, and says it
