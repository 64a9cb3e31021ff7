"""Ctrl-C and SIGTERM: when they may be heard, and what SIGTERM becomes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED_EXIT = 128 + signal.SIGTERM
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Terminated(BaseException):
    """SIGTERM came, or the terminal was closed: everything is put away as after Ctrl-C."""


def hear_sigterm() -> None:
    """From now on SIGTERM raises `Terminated`, as Ctrl-C raises `KeyboardInterrupt`; so does a closed terminal."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else nohup wants us to live on
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
