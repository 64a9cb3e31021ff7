"""What a job printed: bounded, and harmless to whoever reads it on a terminal. Decides only."""

from __future__ import annotations

import unicodedata
from collections import deque

READ_AT_ONCE = 64 * 1024
"""As much as a pipe holds."""
BURST_BYTES = 1024 * 1024
READ_A_SECOND = 4 * 1024 * 1024
"""What a job may print without being slowed down, and how fast it may print on: many thousand lines a second."""
LEAST_PAUSE_S = 0.01
"""Between two readings: whoever prints single bytes wakes us no more often."""


class LogPace:
    """How long to read nothing: a job that floods its log waits in `write`, at its own cost. Times are seconds."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._at = float("-inf")

    def pause(self, count: int, now: float) -> float:
        """After a reading that brought `count` bytes."""
        self._ahead = max(0.0, self._ahead - (now - self._at) * READ_A_SECOND) + count
        self._at = now
        return max(LEAST_PAUSE_S, (self._ahead - BURST_BYTES) / READ_A_SECOND)


class BoundedLog:
    """The head and the tail of a stream of bytes, `limit` bytes together; what lies between is counted."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data[-self._tail_limit :])
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
            self._tail_bytes -= len(self._tail.popleft())
        if len(self._tail) > 256:  # many small pieces: each costs more than its bytes
            self._tail = deque([b"".join(self._tail)])

    def text(self) -> str:
        """What was kept, with the gap named and what could fool a terminal replaced."""
        tail = b"".join(self._tail)[-self._tail_limit :]
        left_out = self.total - len(self._head) - len(tail)
        if not left_out:
            return harmless(bytes(self._head) + tail)
        return harmless(bytes(self._head)) + f"\n[... {left_out} bytes left out ...]\n" + harmless(tail)


def harmless(data: bytes) -> str:
    """Text without control characters, but for newlines and tabs, and without marks that reorder or hide text."""
    text = data.decode(errors="replace").replace("\r\n", "\n")
    return "".join(character if _is_harmless(character) else "\N{REPLACEMENT CHARACTER}" for character in text)


def _is_harmless(character: str) -> bool:
    # Cc: escapes and carriage returns; Cf: bidi and zero-width marks; Zl, Zp: line breaks that are none to grep.
    return character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
