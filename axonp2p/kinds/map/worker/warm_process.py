"""The process that all processes of calls are forked from: it has the function loaded, and one thread.

The worker itself has threads, and must not fork: a lock that another thread holds would be held for ever in its child.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from axonp2p.kinds.map.messages import PrepareCalls
from axonp2p.kinds.map.worker.call_process import CallProcess
from axonp2p.kinds.map.worker.own_calls import load_own_calls
from axonp2p.kinds.map.worker.process_link import ProcessLink
from axonp2p.sandbox.inside import Inside

_FORK, _REAP = b"fork", b"reap"


class ForkedProcess:
    """A process of calls, as the worker has it."""

    def __init__(self, pid: int, end: socket.socket) -> None:
        self.pid = pid
        self.link = ProcessLink(end)


class WarmProcess:
    """The worker's side of it. Any thread may ask. Make it before the worker has threads."""

    def __init__(self, inside: Inside, order: PrepareCalls, bundle: Path, blobs: Path) -> None:
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            _end_with(lambda: _serve(theirs, order, bundle, blobs), closes=(ours.close, inside.forget))
        theirs.close()
        self._end = ours
        self._link = ProcessLink(ours)
        self._asking = threading.Lock()

    def fork(self) -> ForkedProcess | None:
        """One more process; None when there can be none, because this one has ended while it loaded the function."""
        with self._asking, contextlib.suppress(OSError):
            self._link.send(_FORK)
            data, descriptors, _, _ = socket.recv_fds(self._end, 16, 1)
            if descriptors:
                return ForkedProcess(int(data), socket.socket(fileno=descriptors[0]))
        return None

    def reap(self, process: ForkedProcess) -> int:
        """Wait for its end: its exit code, or the number of the signal that ended it below 0."""
        process.link.close()
        with self._asking, contextlib.suppress(OSError):
            self._link.send(_REAP + str(process.pid).encode())
            if answer := self._link.receive():
                return int(answer)
        return -int(signal.SIGKILL)

    def end(self) -> None:
        """Nothing more is forked."""
        self._link.close()
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def _end_with(work: Callable[[], None], closes: tuple[Callable[[], None], ...]) -> None:
    """The whole of a forked process."""
    code = 1
    try:
        for close in closes:
            close()
        work()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _serve(end: socket.socket, order: PrepareCalls, bundle: Path, blobs: Path) -> None:
    own = load_own_calls(order, bundle)
    link = ProcessLink(end)
    while (word := link.receive()) is not None:
        if word == _FORK:
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                process = CallProcess(ProcessLink(theirs), order.most_result, blobs, own)
                _end_with(process.serve, closes=(ours.close, end.close))
            theirs.close()
            socket.send_fds(end, [b"%d" % pid], [ours.fileno()])
            ours.close()
        else:
            pid = int(word.removeprefix(_REAP))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # it has closed its link: nothing more can come of it
            _, status = os.waitpid(pid, 0)
            link.send(b"%d" % os.waitstatus_to_exitcode(status))
