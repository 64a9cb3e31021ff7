"""The bytes of large answers that a worker may send at present: the daemon gives credit, each answer takes of it."""

from __future__ import annotations

import threading


class BulkCredit:
    """The credit of the daemon for parts of files."""

    def __init__(self) -> None:
        self._left = 0
        self._changed = threading.Condition()

    def add(self, more: int) -> None:
        """So many more bytes."""
        with self._changed:
            self._left += more
            self._changed.notify_all()

    def take(self, count: int, stopped: threading.Event) -> bool:
        """Wait until there is some, then take `count` of it; false when it was stopped meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._left > 0 or stopped.is_set())
            if stopped.is_set():
                return False
            self._left -= count
            return True

    def wake(self) -> None:
        """Look again who was stopped."""
        with self._changed:
            self._changed.notify_all()
