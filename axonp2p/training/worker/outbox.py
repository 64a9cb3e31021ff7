"""The messages that a worker has yet to send, and their order. Pure.

Small messages come before bulk (parts of slices), so that no order's answer waits behind megabytes; then come pieces
of states, and last what the task wrote into /out. Bulk goes to each receiver only as far as the daemon has given
credit for it (`MayTell`), in turns: a member with a poor line holds nobody else up. Messages are packed only when their
turn comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from axonp2p.jobs.output_messages import OutputMessage
from axonp2p.sandbox.messages import Control, FromWorkerMessage, ToMember
from axonp2p.training.messages import AskPieces, BetweenMembers, FromWorkerTraining, Piece, PieceList
from axonp2p.verification.claims import RoundDone, SegmentRedone
from axonp2p.wire.frame import FRAME_COST, pack_frame

Inner = FromWorkerTraining | BetweenMembers
_Waiting = tuple[Inner, bytes | memoryview]
_COORDINATOR = None
MOST_PIECES = 256
"""Pieces that may wait for one receiver. One that asks for more does not take what it asked for; those are not said."""


@dataclass
class _Line:
    """To one receiver."""

    credit: int = 0
    first: deque[_Waiting] = field(default_factory=deque)
    bulk: deque[_Waiting] = field(default_factory=deque)
    pieces: deque[_Waiting] = field(default_factory=deque)


class WorkerOutbox:
    """The queues of one worker. Payloads must not change while they lie here."""

    def __init__(self) -> None:
        self._at_once: deque[tuple[FromWorkerMessage, bytes]] = deque()
        self._lines: dict[int | None, _Line] = {}
        self._files: Iterator[tuple[OutputMessage, bytes]] = iter(())

    def say(self, message: FromWorkerMessage) -> None:
        """A message to the daemon itself."""
        self._at_once.append((message, b""))

    def report(self, message: FromWorkerTraining, payload: bytes | memoryview = b"") -> None:
        """A message to the coordinator."""
        line = self._line(_COORDINATOR)
        if isinstance(message, Piece | PieceList):
            if len(line.pieces) < MOST_PIECES:
                line.pieces.append((message, payload))
        else:
            sign = isinstance(message, RoundDone | SegmentRedone)
            self._at_once.append((Control(sign=sign), pack_frame(message, payload)))

    def send_files(self, words: Iterator[tuple[OutputMessage, bytes]]) -> None:
        """Say these to the coordinator, each taken when its turn comes, in place of those that wait."""
        self._files = words

    def tell(self, rank: int, message: BetweenMembers, payload: bytes | memoryview = b"") -> None:
        """A message to a member."""
        line = self._line(rank)
        if isinstance(message, Piece | PieceList):
            if len(line.pieces) < MOST_PIECES:
                line.pieces.append((message, payload))
        else:
            (line.first if isinstance(message, AskPieces) else line.bulk).append((message, payload))

    def credit(self, rank: int | None, more: int) -> None:
        """So many more bytes may go to a member, or as bulk to the coordinator (None)."""
        self._line(rank).credit += more

    def drop(self, useless: Callable[[int, BetweenMembers], bool]) -> None:
        """Forget what still waits for members and is of no use any more."""
        for rank, line in self._lines.items():
            if rank is not None:
                line.bulk = deque(said for said in line.bulk if not useless(rank, said[0]))  # type: ignore[arg-type]

    def next(self) -> tuple[FromWorkerMessage, bytes] | None:
        """The message to be sent now, packed; None when there is nothing, or no credit for it."""
        if self._at_once:
            return self._at_once.popleft()
        # Those that train never wait for one that comes: pieces go when no part is left to send.
        for pieces in (False, True):
            for rank, line in self._lines.items():
                queue = line.pieces if pieces else line.first or line.bulk
                if line.credit > 0 and queue:
                    # A receiver that was served goes to the end of the turn.
                    self._lines[rank] = self._lines.pop(rank)
                    message, payload = queue.popleft()
                    packed = pack_frame(message, payload)
                    line.credit -= len(packed) + FRAME_COST
                    return (Control(bulk=True) if rank is None else ToMember(rank=rank)), packed
        return self._next_of_files()

    def _next_of_files(self) -> tuple[FromWorkerMessage, bytes] | None:
        line = self._line(_COORDINATOR)
        if line.credit <= 0 or (said := next(self._files, None)) is None:
            return None
        packed = pack_frame(*said)
        line.credit -= len(packed) + FRAME_COST
        return Control(bulk=True), packed

    def _line(self, rank: int | None) -> _Line:
        return self._lines.setdefault(rank, _Line())
