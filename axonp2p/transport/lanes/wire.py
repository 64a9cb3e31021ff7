"""A blocking socket that one thread uses, and that any other may cut (a door)."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from contextlib import suppress

from axonp2p.transport.flow.tcp_state import TcpState
from axonp2p.transport.lanes.plan import LENGTH, RECORD_BYTES, part_length, worth_waiting
from axonp2p.transport.sessions.line_tuning import UNSENT_BYTES, read_retries, read_tcp_state

DEAD_RETRIES = 6
"""So often in a row the kernel has sent the same bytes again, unanswered, when a lane is dead: some 15 seconds."""


class Wire:
    """One end of a lane, from the plain connection on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._over = False

    def hold(self, line: socket.socket) -> None:
        """This is the socket from now on. Raises `OSError` when the lane was cut by then."""
        with self._lock:
            self._socket = line
            if self._over:
                line.close()
                raise ConnectionAbortedError("the lane was cut")

    def cut(self) -> None:
        """End it: whoever reads or writes on it stops at once."""
        with self._lock:
            if self._socket is not None and not self._over:
                with suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # ssl's own would pull TLS from under a read
            self._over = True

    def close(self) -> None:
        """Free the socket: by the thread that uses it, at its end."""
        with self._lock:
            self._over = True
            if self._socket is not None:
                self._socket.close()

    @property
    def is_dead(self) -> bool:
        """Whether nobody answers at the other end."""
        with self._lock:
            return self._socket is not None and not self._over and read_retries(self._socket) >= DEAD_RETRIES

    def tcp_state(self) -> TcpState | None:
        """The kernel's counts; None when it does not say, or the lane is gone."""
        with self._lock:
            return None if self._socket is None or self._over else read_tcp_state(self._socket)


def tune(line: socket.socket) -> None:
    """Queues as short as a session's, and no waiting for more to send."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)


def write_part(line: ssl.SSLSocket, part: bytes | memoryview) -> None:
    """Send one part; returns when the kernel has all of it. Raises `OSError`."""
    view = memoryview(part)
    first = RECORD_BYTES - LENGTH.size
    line.sendall(LENGTH.pack(len(view)) + view[:first])  # one record: neither a packet nor a turn for 4 bytes
    if len(view) > first:
        line.sendall(view[first:])


class PartReader:
    """Reads parts from one lane, each in a few wakings of its thread."""

    def __init__(self, line: ssl.SSLSocket) -> None:
        self._line = line
        self._ready = select.poll()
        self._ready.register(line.fileno(), select.POLLIN)

    def read(self) -> bytearray | None:
        """The next part; None when the lane ended after one. Raises `OSError`, or as `part_length`."""
        head = bytearray(LENGTH.size)
        if not self._fill(memoryview(head), may_end=True):
            return None
        part = bytearray(part_length(head))
        rest = memoryview(part)
        while len(rest):
            buffer = self._line.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            least, portion = worth_waiting(len(rest), self._line.pending(), buffer)
            if least:
                self._wait(least)
            self._fill(rest[:portion])
            rest = rest[portion:]
        return part

    def _fill(self, view: memoryview, *, may_end: bool = False) -> bool:
        while len(view):
            got = self._line.recv_into(view)
            if not got:
                if may_end:
                    return False
                raise ConnectionResetError("the lane ended inside a part")
            view, may_end = view[got:], False
        return True

    def _wait(self, count: int) -> None:
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
        self._ready.poll()
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
