"""Ctrl-C, SIGTERM and the death of a parent: when they may be heard, and what they become."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED_EXIT = 128 + signal.SIGTERM
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Windows has no SIGHUP."""

_PR_SET_PDEATHSIG = 1
# Loaded here, because nothing may be loaded between fork and exec.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Terminated(BaseException):
    """SIGTERM came, or the terminal was closed: everything is put away as after Ctrl-C."""


def hear_sigterm() -> None:
    """From now on SIGTERM raises `Terminated`, as Ctrl-C raises `KeyboardInterrupt`; so does a closed terminal."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    if (
        hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    ):  # else nohup wants us to live on
        signal.signal(signal.SIGHUP, stop)


@contextmanager
def no_interruption() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP that come while inside are heard after it: no child is lost sight of."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def die_with_parent() -> None:
    """Runs in a child before its program: the kernel kills it when the thread that started it ends. Linux alone can."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
