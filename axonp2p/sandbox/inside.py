"""The worker's end of the channel: blocking, for threads, with the standard library and `wire` alone.

Runs inside the sandbox. The daemon starts the worker as `python -m PROGRAM FD`; `Inside(int(FD))` is then its only
way to anyone.

    4 bytes   length of the frame, big endian
    frame     as in wire.frame
"""

from __future__ import annotations

import io
import os
import re
import resource
import socket
import struct
import sys
import threading
from collections.abc import Callable

from axonp2p.errors import AxonError, MalformedMessage, MessageTooLarge, Unreachable
from axonp2p.sandbox.limits import kernel_limits
from axonp2p.sandbox.messages import FromWorkerMessage, StandBy, StandsBy, Start, Started, ToWorkerMessage
from axonp2p.sandbox.walls.landlock import restrict_self
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import FRAME_LIMIT, HEADER_LIMIT, frame_head, split_frame

_LENGTH = struct.Struct(">I")


class Inside:
    """The channel to the daemon on an inherited socket. Any thread may send; one thread receives."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._sending = threading.Lock()

    def send(self, message: FromWorkerMessage, payload: bytes | memoryview = b"") -> None:
        """Send one frame; returns when the kernel has it. Raises `Unreachable` or `MessageTooLarge`."""
        head = frame_head(message, len(payload))
        head = _LENGTH.pack(len(head) + len(payload)) + head
        try:
            with self._sending:
                sent = self._socket.sendmsg((head, payload))
                if sent < len(head):
                    self._socket.sendall(head[sent:])
                self._socket.sendall(memoryview(payload)[max(0, sent - len(head)) :])
        except OSError as error:
            raise _gone(error) from error

    def receive(self) -> tuple[ToWorkerMessage, memoryview]:
        """The next message and its payload, in a buffer of its own; waits for it.

        Raises `Unreachable` when the daemon closed the channel, `MessageTooLarge` or `MalformedMessage` for what is
        none.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > FRAME_LIMIT:
            raise MessageTooLarge(f"a frame of {length} bytes; at most {FRAME_LIMIT}")
        frame = split_frame(memoryview(self._exactly(length)))
        message: ToWorkerMessage = decode(frame.header, ToWorkerMessage, HEADER_LIMIT)
        return message, frame.payload

    def forget(self) -> None:
        """In a process that was forked: it has no part in the channel, which stays open for the others."""
        os.close(self._socket.detach())

    def close(self) -> None:
        """Close the channel; a thread that waits in `receive` gets `Unreachable`."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # already gone
        finally:
            self._socket.close()

    def _exactly(self, count: int) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        while len(view):
            try:
                received = self._socket.recv_into(view)
            except OSError as error:
                raise _gone(error) from error
            if not received:
                raise Unreachable("the daemon closed the channel")
            view = view[received:]
        return data


def _loads_nothing(cores: int) -> None:
    pass


def serve_daemon(serve: Callable[[Inside, Start], None], load: Callable[[int], None] = _loads_nothing) -> None:
    """The whole of a worker's program: until the daemon closes the channel, or with exit code 3 for its nonsense.

    `serve` is called with the channel and the daemon's `Start`, once its limits are laid on this process. It ends by
    raising what ended the channel, or `MalformedMessage`. `load` is called before it, with a number of cores, to load
    libraries and nothing of a job: on `StandBy`, before anybody knows of a lease, or else after `Start`.
    """
    # The job's log is read while the job runs.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="replace")
    inside = Inside(int(sys.argv[1]))
    try:
        message, _ = inside.receive()
        stood_by = isinstance(message, StandBy)
        if isinstance(message, StandBy):
            restrict_self(executes=False)  # what it loads may start threads, for which a later call would not count
            inside.send(StandsBy())
            load(message.cores)
            message, _ = inside.receive()
        if not isinstance(message, Start) or (stood_by and (message.executes or message.devices)):
            raise MalformedMessage(f"{type(message).__name__} before Start, or one that no worker can stand by for")
        apply_limits(message)
        if not stood_by:
            load(message.cores)
        serve(inside, message)
    except Unreachable:
        return
    except AxonError as error:
        fix = f"; fix: {error.fix}" if error.fix else ""
        print(f"the worker ends: {error.message}{fix}", file=sys.stderr)
        raise SystemExit(3) from None


def begin_trial() -> tuple[Inside, Start]:
    """The channel of a program that only tries the sandbox: its limits are laid, and its files are in /job."""
    channel = Inside(int(sys.argv[1]))
    start, _ = channel.receive()
    assert isinstance(start, Start)
    apply_limits(start)
    channel.send(Started())
    channel.receive()
    return channel, start


def apply_limits(start: Start) -> None:
    """Lay the limits on this process and all that it will start; they cannot be raised again.

    To be called before a second thread is started: Landlock counts for the thread that asks for it.
    """
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    kernel = (int(found[1]), int(found[2])) if found else (0, 0)
    for what, value in kernel_limits(start, kernel):
        resource.setrlimit(what, (value, value))
    restrict_self(executes=start.executes, devices=start.devices)


def _gone(error: OSError) -> Unreachable:
    return Unreachable("the channel to the daemon broke", cause=str(error))
