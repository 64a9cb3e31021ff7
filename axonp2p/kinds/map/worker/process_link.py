"""Frames between the worker and the processes that it has had forked: a length, then bytes. Blocks."""

from __future__ import annotations

import contextlib
import socket
import struct

_LENGTH = struct.Struct(">I")


class ProcessLink:
    """One end of a pair of sockets. One thread sends and one receives."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, data: bytes | memoryview) -> None:
        """Raises `OSError` when the other end is gone."""
        self._end.sendall(_LENGTH.pack(len(data)))
        self._end.sendall(data)

    def receive(self) -> bytearray | None:
        """The next frame; None when the other end is gone."""
        head = self._exactly(_LENGTH.size)
        return None if head is None else self._exactly(_LENGTH.unpack(head)[0])

    def close(self) -> None:
        """Harmless when it is closed."""
        self._end.close()

    def _exactly(self, count: int) -> bytearray | None:
        data = bytearray(count)
        view = memoryview(data)
        with contextlib.suppress(OSError):
            while len(view):
                if not (received := self._end.recv_into(view)):
                    return None
                view = view[received:]
            return data
        return None
