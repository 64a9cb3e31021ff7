"""The client and frozen parameters: it keeps them once beside its states, and lends them when a job is resumed."""

from __future__ import annotations

import asyncio
import random
import struct

import pytest

from axonp2p.blobs.pieces import PIECE_BYTES, book_of, piece_count
from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.tensors.frozen_name import NAME_VALUES, values_of
from axonp2p.training.coordinator.frozen_lending import MOST_TIMES, MOST_WAITING, FrozenLending
from axonp2p.training.coordinator.state_keeper import StateKeeper
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.pieces import InPieces, serve_pieces
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame
from tests.fakes import ManualClock

FROZEN = random.Random(3).randbytes(3 * PIECE_BYTES + 1)
MODEL = Model(100, 120 + NAME_VALUES, frozen=len(FROZEN), frozen_name=110)


class Lies:
    """Bytes on a disk or at a member."""

    def __init__(self, data: bytes) -> None:
        self.pieces, self.file = book_of(data), memoryview(data)


HELD = Lies(FROZEN)
NAME = HELD.pieces.name


def state_after(rounds: int) -> Lies:
    weights = [float(rounds)] * MODEL.values
    weights[110 : 110 + NAME_VALUES] = values_of(NAME)
    return Lies(struct.pack(f"<{MODEL.values}f", *weights) + bytes(4 * MODEL.parameters))


class Disk:
    """A shelf that says in which order things came to last."""

    def __init__(self) -> None:
        self.lasting: dict[str, bytes] = {}

    def room(self, rounds: int, state: bytes, model: Model) -> Space:
        return Space(self, f"state {rounds}", model.state_bytes)

    def frozen(self, name: bytes) -> InPieces | None:
        return HELD if name.hex() in self.lasting else None

    def frozen_room(self, name: bytes, size: int) -> Space | None:
        return None if name.hex() in self.lasting else Space(self, name.hex(), size)


class Space:
    def __init__(self, disk: Disk, name: str, size: int) -> None:
        self.data = memoryview(bytearray(size))
        self._disk, self._name = disk, name

    def put(self) -> None:
        self._disk.lasting[self._name] = bytes(self.data)

    def drop(self) -> None:
        return


async def test_they_come_to_the_disk_before_the_first_state_and_never_again() -> None:
    disk, asked = Disk(), set()
    over = asyncio.Event()

    def ask(rank: int, ask: AskPieces) -> None:
        asked.add(ask.state)
        held = [HELD, state_after(1), state_after(2)]
        for message, payload in serve_pieces(held, ask):
            asyncio.get_running_loop().call_soon(keeper.heard, rank, message, memoryview(payload))

    keeper = StateKeeper(disk, ask, ManualClock(), lambda state: over.set())
    for rounds in (1, 2):
        asked.clear()
        over.clear()
        state = state_after(rounds)
        keeper.begin(rounds - 1, state.pieces.name, MODEL, [0, 1])
        await asyncio.wait_for(over.wait(), 10)
        assert asked == {state.pieces.name, *([NAME] if rounds == 1 else [])}
    assert list(disk.lasting) == [NAME.hex(), "state 1", "state 2"]
    assert disk.lasting[NAME.hex()] == FROZEN


class Lent:
    """Who was sent what."""

    def __init__(self, there: InPieces | None = HELD) -> None:
        self.sent: list[tuple[int, object, bytes]] = []
        self.gone: dict[int, str] = {}
        self.lending = FrozenLending(lambda name: there, self._send, self._lost)

    async def _send(self, rank: int, frame: bytes) -> None:
        parts = split_frame(frame)
        self.sent.append((rank, decode(parts.header, Piece | PieceList, HEADER_LIMIT), bytes(parts.payload)))

    async def _lost(self, rank: int, reason: str) -> None:
        self.gone[rank] = reason

    async def hear(self, rank: int, *asks: list[int]) -> None:
        for numbers in asks:
            self.lending.ask(rank, AskPieces(state=NAME, numbers=numbers))
        await asyncio.gather(*self.lending._tasks.values())


async def test_members_are_lent_the_list_and_then_pieces() -> None:
    lent = Lent()
    await lent.hear(2, [], [3, 0])
    (_, hashes, listed), (_, last, end), (_, first, begin) = lent.sent
    assert (hashes, listed) == (PieceList(state=NAME), HELD.pieces.hashes)
    assert (last, end) == (Piece(state=NAME, number=3), FROZEN[-1:])
    assert (first, begin) == (Piece(state=NAME, number=0), FROZEN[:PIECE_BYTES])


@pytest.mark.parametrize("there", [None, Lies(b"damaged")])
async def test_who_needs_what_is_not_there_cannot_take_part(there: InPieces | None) -> None:
    lent = Lent(there)
    await lent.hear(2, [])
    assert "its model() makes other frozen parameters than the job has" in lent.gone[2]
    assert not lent.sent


async def test_who_asks_again_and_again_has_to_go() -> None:
    lent = Lent()
    every = list(range(piece_count(len(FROZEN))))
    await lent.hear(2, *[every] * MOST_TIMES)
    assert not lent.gone
    await lent.hear(2, [0])
    assert "sent before" in lent.gone[2]
    with pytest.raises(PeerMisbehaved, match="more than can be sent"):
        await lent.hear(3, *[[]] * (MOST_WAITING + 1))
    await lent.lending.close()
