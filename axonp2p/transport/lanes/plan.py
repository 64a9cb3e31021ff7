"""By which way the bulk of one direction goes, and what it looks like on a lane (pure)."""

from __future__ import annotations

import struct
from enum import Enum, auto

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.wire.frame import PAYLOAD_LIMIT

WORTH_BYTES = 256 * 1024
"""A lane is opened when so much waits: two handshakes and two threads cost more than less than that on the session."""
IDLE_S = 30.0
"""A lane on which nothing was sent for so long is left, and frees a thread and some 150 kB at each end."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
"""Before another lane is opened after one that could not be, or broke: doubled each time."""
LOW_WATER = 128 * 1024
"""The kernel wakes the reader once so much of a part is there, or all of it."""
OF_BUFFER = 4
"""... or this part of what the kernel may hold: of a window that is full, the rest would come a round trip later."""
RECORD_BYTES, RECORD_WIRE_BYTES = 16 * 1024, 16 * 1024 + 22
"""Of TLS 1.3, at most, and on the wire: one is decrypted when all of it is there."""

LENGTH = struct.Struct(">I")


def part_length(head: bytes | bytearray) -> int:
    """How long the part is that begins with these 4 bytes. Raises `MalformedMessage` or `MessageTooLarge`."""
    (length,) = LENGTH.unpack(head)
    if not length:
        raise MalformedMessage("an empty part on a lane")
    if length > PAYLOAD_LIMIT:
        raise MessageTooLarge(f"a part of {length} bytes on a lane; at most {PAYLOAD_LIMIT}")
    return int(length)


def worth_waiting(rest: int, decrypted: int, buffer: int) -> tuple[int, int]:
    """Of a part of which `rest` bytes are missing and `decrypted` of them lie in TLS: for how many bytes on the socket
    the reader waits, 0 for none, and how many bytes of the part it reads then. `buffer`: what the kernel may hold.

    TLS makes bytes more, never less, so that many will come. It waits for whole records, since half of one is of no
    use, and at a part's end for as many as are certain.
    """
    missing = rest - decrypted
    records = max(1, min(LOW_WATER, buffer // OF_BUFFER) // RECORD_WIRE_BYTES)
    if missing <= RECORD_BYTES:
        return 0, rest
    if missing <= records * RECORD_BYTES:
        return missing, rest
    return records * RECORD_WIRE_BYTES, decrypted + records * RECORD_BYTES


class BulkWay(Enum):
    """Of bulk, in one direction."""

    SESSION = auto()
    OPENING = auto()
    """By the session, while a lane is opened."""
    READY = auto()
    """By the session; the lane is there, and the next part goes on it."""
    LANE = auto()
    LEAVING = auto()
    """By no way: the other side has not said yet how much it has had."""


class SendPlan:
    """Of the side that sends. Times are seconds of one clock that never goes back."""

    def __init__(self) -> None:
        self.way = BulkWay.SESSION
        self._not_before = float("-inf")
        self._pause = FIRST_PAUSE_S
        self._idle = False

    def opens(self, waiting: int, now: float) -> bool:
        """Whether a lane is to be opened now that so many bytes wait."""
        if self.way is not BulkWay.SESSION or waiting < WORTH_BYTES or now < self._not_before:
            return False
        self.way = BulkWay.OPENING
        return True

    def opened(self) -> bool:
        """The lane is there; whether it is still of use."""
        if self.way is not BulkWay.OPENING:
            return False
        self.way = BulkWay.READY
        return True

    def begun(self) -> None:
        """The other side was told that parts come on the lane now."""
        self.way = BulkWay.LANE

    def failed(self, now: float) -> bool:
        """The lane could not be opened, or broke. Whether parts were on it, so that the other side has to be asked."""
        if self.way in (BulkWay.OPENING, BulkWay.READY):
            self.way = BulkWay.SESSION
            self._rest(now)
            return False
        return self._leave()

    def idle(self) -> bool:
        """Nothing was sent for long. Whether the lane is to be left for that."""
        self._idle = self.way is BulkWay.LANE
        return self._leave()

    def ended(self, now: float) -> bool:
        """The other side says how much it has had, and listens to the session again; whether it was on a lane."""
        if self.way not in (BulkWay.LANE, BulkWay.LEAVING):
            return False
        self.way = BulkWay.SESSION
        if self._idle:
            self._idle, self._pause = False, FIRST_PAUSE_S
        else:
            self._rest(now)
        return True

    def _leave(self) -> bool:
        if self.way is not BulkWay.LANE:
            return False
        self.way = BulkWay.LEAVING
        return True

    def _rest(self, now: float) -> None:
        self._not_before = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
