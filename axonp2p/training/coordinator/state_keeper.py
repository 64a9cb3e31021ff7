"""Carries out the fetching of accepted states: from several members at once, in pieces, into room on the client's disk.

The frozen parameters that belong to them come once, with the first one.

The next round goes on meanwhile: members send pieces only when they have nothing else to send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Unreachable
from axonp2p.supervision import cancel_and_wait
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.round_messages import RoundBooked
from axonp2p.training.state_transfer.piece_fetch import Asks, PieceFetch
from axonp2p.training.state_transfer.pieces import InPieces

AGAIN_S = 1.0
"""When nobody has a piece that is missing, all are asked again after so long."""


class Arriving(Protocol):
    """Room for one state, on the disk."""

    @property
    def data(self) -> memoryview:
        """Where its bytes go."""

    def put(self) -> None:
        """All bytes are there: make it last. Blocks. Raises `SettingsError`."""

    def drop(self) -> None:
        """It will not be all there."""


class Shelf(Protocol):
    """Where states are kept, and the frozen parameters that belong to them."""

    def room(self, rounds: int, state: bytes, model: Model) -> Arriving:
        """Room for the state after so many rounds. Raises `SettingsError`."""

    def frozen(self, name: bytes) -> InPieces | None:
        """The frozen parameters of this name, where they are there. Blocks."""

    def frozen_room(self, name: bytes, size: int) -> Arriving | None:
        """Room for the frozen parameters of this name; None when they are there. Raises `SettingsError`."""


class StateKeeper:
    """One job's: one state at a time."""

    def __init__(
        self,
        shelf: Shelf,
        ask: Callable[[int, AskPieces], None],
        clock: Clock,
        over: Callable[[bytes], None],
        on_disk: bytes | None = None,
    ) -> None:
        """`over(state)` is called when a state is on the disk, or `broken` says why the disk does not take it."""
        self._shelf = shelf
        self._ask = ask
        self._clock = clock
        self._over = over
        self.kept = on_disk
        """The state that came to the disk last."""
        self.broken: AxonError | None = None
        """Why none can be put there."""
        self._unbooked: int | None = None
        """The round that waits for what is under way, or has come."""
        self._fetch: PieceFetch | None = None
        self._members: list[int] = []
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ending = False

    def begin(self, round: int, state: bytes, model: Model, members: Collection[int]) -> None:
        """Fetch what this round led to; the one before must be over."""
        assert self._task is None or self._task.done()
        self._members, self._unbooked = sorted(members), round
        self._task = asyncio.create_task(self._keep(round, state, model), name=f"state after {round + 1}")

    def booked(self) -> None:
        """The round is in the books."""
        self._unbooked = None

    async def last(self, round: int, state: bytes, model: Model, seconds: float | None) -> RoundBooked | None:
        """After training: have this state too, unless it takes longer than that; what to book then.

        Nobody comes any more, so it ends when nobody is left that holds the state. Raises what the disk refused with.
        """
        self._ending = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wait()
                if self.kept != state and self.broken is None and self._members:
                    self.begin(round, state, model, self._members)
                    await self._wait()
        await self.close()
        if self.broken:
            raise self.broken
        if self.kept != state or self._unbooked is None:
            return None
        self._unbooked = None
        return RoundBooked(round, state)

    async def _wait(self) -> None:
        self._stirred.set()
        if self._task:
            await asyncio.wait([self._task])

    def members_are(self, members: Collection[int]) -> None:
        """These hold it, as far as is known."""
        self._members = sorted(members)
        self._stirred.set()
        if self._fetch:
            self._say(self._fetch.senders(self._members, self._clock.monotonic()))

    def heard(self, rank: int, message: Piece | PieceList, payload: memoryview) -> None:
        """A member sent a piece. Raises `PeerMisbehaved`."""
        fetch, now = self._fetch, self._clock.monotonic()
        if fetch is None:
            return  # it crossed the last one on its way
        try:
            self._say(fetch.hear(rank, message, payload, now))
        finally:
            self._stirred.set()

    async def close(self) -> None:
        """Give up what is under way."""
        await cancel_and_wait(self._task)

    async def _keep(self, round: int, state: bytes, model: Model) -> None:
        try:
            arriving = await asyncio.to_thread(self._shelf.room, round + 1, state, model)
            try:
                await self._get(state, model.state_bytes, arriving)
                if frozen := model.frozen_of(arriving.data):
                    await self._keep_frozen(frozen, model.frozen)
                await asyncio.to_thread(arriving.put)
            finally:
                arriving.drop()
            self.kept = state
        except Unreachable:
            return
        except AxonError as error:
            self.broken = error
        self._over(state)

    async def _keep_frozen(self, name: bytes, size: int) -> None:
        """No state is kept before what belongs to it: a job can go on from all that lies on the disk."""
        arriving = await asyncio.to_thread(self._shelf.frozen_room, name, size)
        if arriving is None:
            return
        try:
            await self._get(name, size, arriving)
            await asyncio.to_thread(arriving.put)
        finally:
            arriving.drop()

    async def _get(self, name: bytes, size: int, arriving: Arriving) -> None:
        fetch = self._fetch = PieceFetch(name, size, room=arriving.data)
        try:
            self._say(fetch.senders(self._members, self._clock.monotonic()))
            while not fetch.complete:
                if self._ending and not self._members:
                    raise Unreachable("nobody is left that holds the state")
                await self._until_due(fetch)
                now = self._clock.monotonic()
                self._say(fetch.senders(self._members, now) if fetch.nobody_left else fetch.due(now))
        finally:
            self._fetch = None

    async def _until_due(self, fetch: PieceFetch) -> None:
        """Until something is late, or all is here; while nobody has it, for a moment."""
        while not fetch.complete and not (self._ending and not self._members):
            deadline = fetch.deadline()
            left = AGAIN_S if deadline is None else deadline - self._clock.monotonic()
            if left <= 0:
                return
            self._stirred.clear()
            try:
                async with asyncio.timeout(left):
                    await self._stirred.wait()
            except TimeoutError:
                return

    def _say(self, asks: Asks) -> None:
        for rank, ask in asks:
            self._ask(rank, ask)
