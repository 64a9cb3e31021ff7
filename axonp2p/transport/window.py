"""Flow control of one session: how much may be under way, decided by numbers alone.

TCP's own backpressure is not enough. Whoever stops reading to slow the other side down would also stop hearing its
signs of life, and could not tell a patient line from a dead one. So a session always reads; each side tells the
other how much its application has taken, and nobody sends more than `WINDOW_BYTES` beyond that.
"""

from __future__ import annotations

import struct

from axonp2p.errors import MalformedMessage, MessageTooLarge

WINDOW_BYTES = 4 * 1024 * 1024
"""The most that may wait, sent but not taken, in one direction of one session."""
BULK_BYTES = WINDOW_BYTES - 256 * 1024
"""As much of it as bulk may fill: words find room in any case."""
_TELL_EVERY = WINDOW_BYTES // 4

_TAKEN = struct.Struct(">QQ")


class SendWindow:
    """What we sent and what the other side's application has taken of it."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        self.sent_frames = 0
        self.taken_bytes = 0
        self.taken_frames = 0

    def has_room(self, size: int, *, bulk: bool) -> bool:
        """Whether a frame of `size` bytes may go out now."""
        return self.sent_bytes - self.taken_bytes + size <= (BULK_BYTES if bulk else WINDOW_BYTES)

    def sent(self, size: int) -> None:
        """A frame of `size` bytes went out."""
        self.sent_bytes += size
        self.sent_frames += 1

    def told(self, word: bytes) -> None:
        """The other side said how much it has taken. Raises `MalformedMessage` when that cannot be."""
        try:
            taken_bytes, taken_frames = _TAKEN.unpack(word)
        except struct.error as error:
            raise MalformedMessage("a sign of life without its two numbers") from error
        if not (
            self.taken_bytes <= taken_bytes <= self.sent_bytes and self.taken_frames <= taken_frames <= self.sent_frames
        ):
            raise MalformedMessage("the other side claims to have taken what was not sent")
        self.taken_bytes, self.taken_frames = taken_bytes, taken_frames


class ReceiveWindow:
    """What arrived and what our application has taken of it."""

    def __init__(self) -> None:
        self.arrived_bytes = 0
        self._taken_bytes = 0
        self._taken_frames = 0
        self._told_bytes = 0

    def arrived(self, size: int) -> None:
        """A frame of `size` bytes came in. Raises `MessageTooLarge` when the other side ignores the window."""
        self.arrived_bytes += size
        if self.arrived_bytes - self._taken_bytes > WINDOW_BYTES:
            raise MessageTooLarge(f"more than {WINDOW_BYTES} bytes were sent ahead")

    def took(self, size: int) -> bool:
        """The application took a frame of `size` bytes; True when the other side should hear of it now."""
        self._taken_bytes += size
        self._taken_frames += 1
        return self._taken_bytes - self._told_bytes >= _TELL_EVERY

    def word(self) -> bytes:
        """What to tell the other side."""
        self._told_bytes = self._taken_bytes
        return _TAKEN.pack(self._taken_bytes, self._taken_frames)
