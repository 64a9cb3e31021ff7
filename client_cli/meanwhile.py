"""Says what a command does while it takes long, from a thread of its own: the command itself may be waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from client_cli.still_doing import StillDoing

_TICK_S = 0.25


class Meanwhile:
    """Lines of `still_doing`, said while it is entered."""

    def __init__(self, say: Callable[[str], None], tick_s: float = _TICK_S) -> None:
        self._say = say
        self._tick_s = tick_s
        self._doing = StillDoing(time.monotonic())
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meanwhile", daemon=True)

    def begin(self, what: str) -> None:
        """This is done from now on."""
        with self._lock:
            self._doing.begin(what, time.monotonic())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._tick_s):
            with self._lock:
                line = self._doing.due(time.monotonic())
            if line:
                self._say(line)
