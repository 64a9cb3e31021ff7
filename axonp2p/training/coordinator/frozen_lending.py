"""Carries frozen parameters from the client's disk to members of a resumed job whose `model()` makes others.

Mostly none asks. One that gets them passes them on to the others, as with the state.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable

from axonp2p.blobs.pieces import HASH_BYTES
from axonp2p.errors import AxonError, JobFailed, PeerMisbehaved
from axonp2p.supervision import cancel_and_wait
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.pieces import InPieces, serve_pieces
from axonp2p.wire.frame import pack_frame

MOST_WAITING = 256
"""Asks of one member that may wait."""
MOST_TIMES = 4
"""No member is sent more than this many times as much as there is."""

Answers = list[tuple[PieceList | Piece, bytes | memoryview]]


class FrozenLending:
    """One job's. `find` gives the frozen parameters of a name as they lie on the disk, where they do; it blocks."""

    def __init__(
        self,
        find: Callable[[bytes], InPieces | None],
        send: Callable[[int, bytes], Awaitable[None]],
        lost: Callable[[int, str], Awaitable[None]],
    ) -> None:
        """`send` takes a frame for a member, `lost` a member that cannot go on, and why."""
        self._find = find
        self._send = send
        self._lost = lost
        self._asked: Counter[int] = Counter()
        """By rank, for how many pieces."""
        self._waiting: dict[int, deque[AskPieces]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def ask(self, rank: int, ask: AskPieces) -> None:
        """A member asks. Raises `PeerMisbehaved` when it asks for far too much."""
        waiting = self._waiting.setdefault(rank, deque(maxlen=MOST_WAITING))
        if len(waiting) == MOST_WAITING:
            raise PeerMisbehaved("it asks for more than can be sent")
        waiting.append(ask)
        if rank not in self._tasks or self._tasks[rank].done():
            self._tasks[rank] = asyncio.create_task(self._serve(rank, waiting), name=f"frozen parameters for {rank}")

    async def close(self) -> None:
        """Send nothing any more."""
        await cancel_and_wait(*self._tasks.values())

    async def _serve(self, rank: int, waiting: deque[AskPieces]) -> None:
        try:
            while waiting:
                for answer, payload in await asyncio.to_thread(self._answers, rank, waiting.popleft()):
                    await self._send(rank, pack_frame(answer, payload))
        except AxonError as error:
            await self._lost(rank, error.message)

    def _answers(self, rank: int, ask: AskPieces) -> Answers:
        held = self._find(ask.state)
        if held is None or held.pieces.name != ask.state:
            raise JobFailed("its model() makes other frozen parameters than the job has, which are not on this disk")
        self._asked[rank] += len(ask.numbers)
        if self._asked[rank] > MOST_TIMES * len(held.pieces.hashes) // HASH_BYTES:
            raise PeerMisbehaved("it asks for frozen parameters that it was sent before")
        return serve_pieces([held], ask)
