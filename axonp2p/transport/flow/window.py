"""Flow control: how much may be under way in a session, and untaken in all of them, decided by numbers alone.

TCP's own backpressure is not enough. A side that stops reading to slow the other down would also stop hearing its
signs of life, and could not tell a patient line from a dead one. So a session always reads; each side tells the
other how much its application has taken, and nobody sends more than `WINDOW_BYTES` beyond that. Each frame counts
`FRAME_COST` beside its bytes, so a window holds a bounded number of frames as well.

A window says nothing of what is no whole message: pieces of one, pings, words without news. `ReceiveWindow` holds
them too: to as many bytes as a window has, less for strangers, and to so many a second.

`WaitingBytes` bounds what strangers sent ahead and nobody has taken yet, for one household and in all.
Each session has a window of its own; hundreds of windows are more than a machine has. The bound is one of memory, so
whose session goes is decided by bytes alone: of the source that holds most, the session that holds most.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.wire.frame import FRAME_COST, FRAME_LIMIT

WINDOW_BYTES = 4 * 1024 * 1024
"""The most that may wait, sent but not taken, in one direction of one session, the costs of its frames included."""
BULK_BYTES = WINDOW_BYTES - 256 * 1024
"""As much of it as bulk may fill: words find room in any case."""
STRANGERS_UNFINISHED = FRAME_LIMIT + 256 * 1024
"""Bytes that make no message yet, on a session that was not taken in: the largest message, and what lies in buffers."""
_TELL_EVERY = WINDOW_BYTES // 4
SIGNS_A_SECOND, SIGNS_AT_ONCE = 64.0, 256.0
"""Pings, and pongs that say nothing new, which one side may send: an honest one sends one in three seconds."""

_TAKEN = struct.Struct(">QQ")


class SendWindow:
    """The bytes that we sent, and those that the other side's application has taken."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        self.sent_frames = 0
        self.taken_bytes = 0
        self.taken_frames = 0

    def has_room(self, size: int, *, bulk: bool) -> bool:
        """Whether a frame of `size` bytes may go out now."""
        frames = self.sent_frames - self.taken_frames + 1
        under_way = self.sent_bytes - self.taken_bytes + size + FRAME_COST * frames
        return under_way <= (BULK_BYTES if bulk else WINDOW_BYTES)

    def sent(self, size: int) -> None:
        """A frame of `size` bytes went out."""
        self.sent_bytes += size
        self.sent_frames += 1

    def told(self, word: bytes) -> bool:
        """The other side said how much it has taken; whether that is news.

        Raises `MalformedMessage` when it cannot be.
        """
        try:
            taken_bytes, taken_frames = _TAKEN.unpack(word)
        except struct.error as error:
            raise MalformedMessage("a sign of life without its two numbers") from error
        if not (
            self.taken_bytes <= taken_bytes <= self.sent_bytes and self.taken_frames <= taken_frames <= self.sent_frames
        ):
            raise MalformedMessage("the other side claims to have taken what was not sent")
        news: bool = taken_frames > self.taken_frames
        self.taken_bytes, self.taken_frames = taken_bytes, taken_frames
        return news


class ReceiveWindow:
    """The bytes that arrived, and those our application took. Times are seconds of one clock that never goes back."""

    def __init__(self) -> None:
        self.arrived_bytes = 0
        self._arrived_frames = 0
        self._taken_bytes = 0
        self._taken_frames = 0
        self._told = 0
        self._read = 0
        """Bytes of the line, whole messages or not."""
        self._accounted = 0
        """As many of them as were messages and signs."""
        self._signs = SIGNS_AT_ONCE
        self._signs_at = float("-inf")
        self.most_unfinished = WINDOW_BYTES
        """Bytes that may come and make no message yet."""

    @property
    def waiting(self) -> int:
        """Bytes that lie here for our application: whole frames with their costs, and what is no frame yet."""
        return self._untaken + max(0, self._read - self._accounted)

    def read(self, count: int) -> None:
        """So many bytes of the line came in. Raises `MessageTooLarge` when they are no message for too long."""
        self._read += count
        if self._read - self._accounted > self.most_unfinished:
            raise MessageTooLarge(f"{self.most_unfinished} bytes that make no message")

    def arrived(self, size: int) -> None:
        """A frame of `size` bytes came in.

        Raises `MalformedMessage` for one that is empty, `MessageTooLarge` when the other side ignores the window.
        """
        if not size:
            raise MalformedMessage("an empty frame")
        self.arrived_bytes += size
        self._arrived_frames += 1
        self._accounted += size + FRAME_COST
        if self._untaken > WINDOW_BYTES:
            raise MessageTooLarge(f"more than {WINDOW_BYTES} bytes were sent ahead")

    def sign(self, *, news: bool, now: float) -> None:
        """A ping or a pong came in. Raises `MalformedMessage` in a flood of such that say nothing new."""
        self._accounted += FRAME_COST
        if news:
            return
        self._signs = min(SIGNS_AT_ONCE, self._signs + (now - self._signs_at) * SIGNS_A_SECOND)
        self._signs_at = now
        if self._signs < 1:
            raise MalformedMessage("a flood of signs of life")
        self._signs -= 1

    def took(self, size: int) -> bool:
        """The application took a frame of `size` bytes; True when the other side should hear of it now."""
        self._taken_bytes += size
        self._taken_frames += 1
        return self._taken - self._told >= _TELL_EVERY

    def word(self) -> bytes:
        """The message for the other side."""
        self._told = self._taken
        return _TAKEN.pack(self._taken_bytes, self._taken_frames)

    @property
    def _taken(self) -> int:
        return self._taken_bytes + FRAME_COST * self._taken_frames

    @property
    def _untaken(self) -> int:
        return self.arrived_bytes + FRAME_COST * self._arrived_frames - self._taken


H = TypeVar("H", bound=Hashable)


class WaitingBytes(Generic[H]):
    """Bytes by holder and source."""

    def __init__(self, of_source: int, in_all: int) -> None:
        self._most_of_source = of_source
        self._most_in_all = in_all
        self._held: dict[H, tuple[str, int]] = {}
        self._of_source: Counter[str] = Counter()
        self._in_all = 0

    def holds(self, holder: H, source: str, count: int) -> H | None:
        """That holder has so many bytes now; the one that must let go of all of its own, if any must."""
        more = count - self._held.get(holder, (source, 0))[1]
        self._held[holder] = (source, count)
        self._of_source[source] += more
        self._in_all += more
        if more <= 0:
            return None
        if self._of_source[source] > self._most_of_source:
            return self._largest(source)
        if self._in_all > self._most_in_all:
            return self._largest(max(self._of_source, key=self._of_source.__getitem__))
        return None

    def release(self, holder: H) -> None:
        """It holds nothing any more. Harmless when it held nothing."""
        source, count = self._held.pop(holder, ("", 0))
        self._of_source[source] -= count
        self._in_all -= count
        if not self._of_source[source]:
            del self._of_source[source]

    def _largest(self, source: str) -> H:
        return max((one for one, held in self._held.items() if held[0] == source), key=lambda one: self._held[one][1])
