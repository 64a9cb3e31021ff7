"""The output of a job: bounded, and harmless to whoever reads it on a terminal. Decides only."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from functools import cache
from itertools import groupby

READ_AT_ONCE = 64 * 1024
"""As much as a pipe holds."""
BURST_BYTES = 1024 * 1024
READ_A_SECOND = 4 * 1024 * 1024
"""The bytes that a job may print without a slowdown, and how fast it may print on: many thousand lines a second."""
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

    def since(self, start: int, most: int) -> tuple[int, bytes]:
        """At most `most` of the bytes from `start` on, and where they begin: later, where those are no longer kept."""
        if start < len(self._head):
            return start, bytes(self._head[start : start + most])
        if start >= self.total:
            return start, b""
        tail = b"".join(self._tail)[-self._tail_limit :]
        begins = self.total - len(tail)
        start = max(start, begins)
        return start, tail[start - begins : start - begins + most]

    def text(self, start: int = 0) -> str:
        """The text kept from `start` on, with the gap named and what could fool a terminal replaced."""
        tail = b"".join(self._tail)[-self._tail_limit :]
        begins = self.total - len(tail)
        head, tail = bytes(self._head[start:]), tail[max(0, start - begins) :]
        left_out = begins - max(start, len(self._head))
        if left_out <= 0:
            return harmless(head + tail)
        return harmless(head) + f"\n[... {left_out} bytes left out ...]\n" + harmless(tail)

    def end(self, most: int) -> str:
        """The last `most` characters of `text`; no more than those is cleaned, as a rule."""
        start = max(0, self.total - 4 * (most + 1))  # a character has four bytes at most; the first may be broken
        begins = self.total - min(self._tail_bytes, self._tail_limit)
        in_one_piece = start >= begins or begins <= len(self._head)
        return self.text(start if in_one_piece else 0)[-most:]


def without_a_broken_end(data: bytes) -> bytes:
    """Without the bytes at its end that may be the first of a character, or of a line's end, still to come."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue  # within a character, which begins before
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if length > back else data.removesuffix(b"\r")
    return data


def harmless(data: bytes) -> str:
    """Text without control characters, but for newlines and tabs, and without marks that reorder or hide text."""
    text = data.decode(errors="replace").replace("\r\n", "\n")
    return _harmful().sub("\N{REPLACEMENT CHARACTER}", text)


@cache
def _harmful() -> re.Pattern[str]:
    # Cc: escapes and carriage returns; Cf: bidi and zero-width marks; Zl, Zp: line breaks that are none to grep.
    # Unicode has none of them elsewhere. The ranges behind: surrogates and all areas for private use (Cs and Co).
    planes = (*range(0x20000), *range(0xE0000, 0xE1000))
    found = [n for n in planes if unicodedata.category(chr(n)) in ("Cc", "Cf", "Zl", "Zp") and chr(n) not in "\n\t"]
    ranges = ""
    # As ranges: each character that stands alone in a class costs every character that is compared with it.
    for _, run in groupby(enumerate(found), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        ranges += f"{chr(numbers[0])}-{chr(numbers[-1])}"
    return re.compile(f"[{ranges}\ud800-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
