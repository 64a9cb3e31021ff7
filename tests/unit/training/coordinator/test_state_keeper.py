"""States on their way to the client's disk while rounds go on: who is asked, who lies, who is too late."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import AxonError, PeerMisbehaved, SettingsError
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.coordinator.state_keeper import StateKeeper
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.round_messages import RoundBooked
from axonp2p.training.state_transfer.pieces import serve_pieces
from tests.fakes import ManualClock

MODEL = Model(PIECE_BYTES, PIECE_BYTES)
DATA = random.Random(3).randbytes(MODEL.state_bytes)
BOOK = book_of(DATA)
NAME = BOOK.name


class Held:
    pieces, file = BOOK, memoryview(DATA)


class Room:
    def __init__(self, error: AxonError | None) -> None:
        self.bytes = bytearray(MODEL.state_bytes)
        self.data = memoryview(self.bytes)
        self.lasting = False
        self.dropped = False
        self._error = error

    def put(self) -> None:
        if self._error:
            raise self._error
        self.lasting = True

    def drop(self) -> None:
        self.dropped = True


class Table:
    """A keeper, its disk, and members that answer at once if they are there and hold the state."""

    def __init__(self, holders: Sequence[int], error: AxonError | None = None) -> None:
        self.holders = set(holders)
        self.silent: set[int] = set()
        self.liars: set[int] = set()
        self.named: list[str] = []
        self.asked: set[int] = set()
        self.first_ask = asyncio.Event()
        self.over: list[bytes] = []
        self.rooms: list[Room] = []
        self._error = error
        self.keeper = StateKeeper(self, self._ask, ManualClock(), self.over.append)

    def room(self, rounds: int, state: bytes, model: Model) -> Room:
        assert (rounds, state, model) == (5, NAME, MODEL)
        self.rooms.append(Room(self._error))
        return self.rooms[-1]

    def frozen(self, name: bytes) -> None:
        raise AssertionError("the model has none")

    def frozen_room(self, name: bytes, size: int) -> None:
        raise AssertionError("the model has none")

    def _ask(self, rank: int, ask: AskPieces) -> None:
        self.asked.add(rank)
        self.first_ask.set()
        if rank not in self.silent:
            asyncio.get_running_loop().call_soon(self._answer, rank, ask)

    def _answer(self, rank: int, ask: AskPieces) -> None:
        for message, payload in serve_pieces([Held()] if rank in self.holders else [], ask):
            if rank in self.liars and isinstance(message, Piece):
                payload = bytes(len(payload))
            try:
                self.keeper.heard(rank, message, memoryview(payload))
            except PeerMisbehaved as error:
                self.named.append(error.message)
                self.keeper.members_are(sorted(self.holders - self.liars))

    async def keep(self, members: Sequence[int]) -> None:
        self.keeper.begin(4, NAME, MODEL, members)
        await self.end()

    async def end(self) -> RoundBooked | None:
        return await self.keeper.last(4, NAME, MODEL, 10)


async def test_a_state_comes_from_several_members_at_once_and_then_lasts() -> None:
    table = Table([0, 1, 2])
    await table.keep([0, 1, 2])
    assert table.over == [NAME]
    (room,) = table.rooms
    assert room.lasting
    assert bytes(room.bytes) == DATA
    assert table.asked == {0, 1, 2}


async def test_a_wrong_piece_is_named_and_comes_from_somebody_else() -> None:
    table = Table([0, 1])
    table.liars.add(1)
    await table.keep([0, 1])
    assert table.over == [NAME]
    assert table.named
    assert all("rank 1 sent piece" in named for named in table.named)
    assert bytes(table.rooms[0].bytes) == DATA


async def test_who_does_not_hold_it_costs_nothing() -> None:
    table = Table([2])
    await table.keep([0, 1, 2])
    assert table.over == [NAME]


async def test_what_the_disk_refuses_is_said() -> None:
    full = SettingsError("no space left")
    table = Table([0], full)
    with pytest.raises(SettingsError, match="no space left"):
        await table.keep([0])
    assert table.over == [NAME]
    assert table.rooms[0].dropped


async def test_nobody_left_ends_it_only_when_nobody_comes_any_more() -> None:
    table = Table([0])
    table.silent.add(0)
    table.keeper.begin(4, NAME, MODEL, [0])
    await asyncio.sleep(0)
    table.keeper.members_are([])
    for _ in range(20):
        await asyncio.sleep(0)
    assert table.over == []
    assert await table.end() is None
    assert table.over == []
    assert not table.rooms[0].lasting


async def test_after_training_what_is_missing_is_fetched_once() -> None:
    table = Table([0, 1])
    table.keeper.members_are([0, 1])
    assert await table.end() == RoundBooked(4, NAME)
    assert await table.end() is None
    assert len(table.rooms) == 1


async def test_pieces_that_come_when_nothing_is_fetched_are_let_go() -> None:
    table = Table([0])
    table.keeper.heard(0, PieceList(state=NAME), memoryview(BOOK.hashes))
    table.silent.add(0)
    table.keeper.begin(4, NAME, MODEL, [0])
    await table.first_ask.wait()
    with pytest.raises(PeerMisbehaved, match="not asked for"):
        table.keeper.heard(0, Piece(state=NAME, number=1), memoryview(b"x"))
    await table.keeper.close()
