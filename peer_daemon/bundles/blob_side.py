"""One blob of a lease: pieces from the client and from members, to disk and on to members. `blobs.swarm` decides.

It outlives the blob's own arrival: members that come later have it from here.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol

from axonp2p.blobs.manifest import Blob, as_bits, from_bits
from axonp2p.blobs.messages import (
    MOST_TOLD,
    BlobAsk,
    BlobGot,
    BlobHave,
    BlobLie,
    BlobPiece,
    BlobReceived,
)
from axonp2p.blobs.swarm import Asks, BlobSwarm
from axonp2p.errors import AxonError, LimitReached, MalformedMessage, PeerMisbehaved
from axonp2p.logs import get_logger
from axonp2p.transport.mesh.mesh import Mesh
from axonp2p.wire.codec import Message
from peer_daemon.bundles.member_sender import TELL_EVERY_S, MemberSender
from peer_daemon.links.client_sender import ClientLine

log = get_logger(__name__)


AT_IT_EVERY_S = 10.0
"""A client gives a peer up that says nothing for two minutes (`client.run.sending.STUCK_S`)."""


class BlobFiles(Protocol):
    """The blob's files on the disk. Methods run in a thread."""

    def write(self, number: int, piece: bytes | memoryview) -> None:
        """Raises `LimitReached`."""
        ...

    def read(self, number: int) -> bytes:
        """Empty when it cannot be read."""
        ...


class BlobSide:
    """One blob, and the members that pass it on."""

    def __init__(
        self,
        blob: Blob,
        have: Iterable[int],
        files: BlobFiles,
        line: ClientLine,
        mesh: Mesh,
        show: Callable[[], Awaitable[None]],
        fail: Callable[[str], None],
    ) -> None:
        """`have`: the pieces that are on the disk already. `show()` is awaited once, when all are there.

        `fail(reason)`: the disk does not take what a member sent, or `show` raised one of the family.
        """
        self.is_there = False
        """Whether the worker has the whole blob."""
        self.blob = blob
        self._swarm = BlobSwarm(blob, have, random.Random())
        self.bytes_there = sum(blob.place(number).length for number in self._swarm.have)
        """How much of it is on this disk."""
        self.bytes_passed_on = 0
        """How much of it members had from here."""
        self._files = files
        self._line = line
        self._mesh = mesh
        self._show = show
        self._fail = fail
        self._senders: dict[int, MemberSender] = {}
        self._got: list[int] = []
        self._lies: list[BlobLie] = []
        self._from_members = 0
        self._news = asyncio.Event()
        self._stirred = asyncio.Event()
        if self._swarm.complete:
            self._news.set()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tell_client())
            tasks.create_task(self._watch_time())

    def close(self) -> None:
        """Say no more to members."""
        for sender in self._senders.values():
            sender.close()

    # --- what the client says ---

    async def offered(self) -> None:
        """The client named the blob, perhaps again: it hears what is here."""
        have = as_bits(self._swarm.have, self.blob.count)
        await self._line.send(BlobHave(blob=self.blob.name, pieces=have))
        if self.is_there:
            await self._line.send(BlobReceived(blob=self.blob.name))

    async def given(self, message: BlobPiece, payload: memoryview) -> None:
        """A piece from the client. Raises `PeerMisbehaved` for a wrong one, `LimitReached` when the disk is full."""
        if self._swarm.given(message.number, payload):
            await self._store(message.number, payload)
        self._ask(self._swarm.asks(time.monotonic()))

    # --- what members say (`transport.link.LinkCompanion`) ---

    def up(self, rank: int) -> None:
        """A link to that member begins."""
        self.down(rank)
        have = as_bits(self._swarm.have, self.blob.count)
        self._senders[rank] = MemberSender(self.blob.name, have, partial(self._mesh.say, rank), self._read)

    def down(self, rank: int) -> None:
        """It has ended."""
        sender = self._senders.pop(rank, None)
        if sender is not None:
            sender.close()
            self._ask(self._swarm.gone(rank, time.monotonic()))

    async def heard(self, rank: int, message: Message, payload: memoryview) -> None:
        """A member said something of this blob."""
        match message:
            case BlobHave(pieces=bits, answers=answers):
                self._ask(self._swarm.has(rank, from_bits(bits, self.blob.count), time.monotonic()))
                if not answers and rank in self._senders:
                    self._senders[rank].answer(as_bits(self._swarm.have, self.blob.count))
            case BlobGot(numbers=numbers):
                self._ask(self._swarm.has(rank, self._checked(numbers), time.monotonic()))
            case BlobAsk(numbers=numbers):
                if rank in self._senders:
                    self._senders[rank].wants(self._checked(numbers))
            case BlobPiece(number=number):
                await self._piece(rank, number, payload)

    async def _piece(self, rank: int, number: int, payload: memoryview) -> None:
        self._from_members += len(payload)
        try:
            if self._swarm.heard(rank, number, payload, time.monotonic()):
                await self._store(number, payload)
        except PeerMisbehaved as error:
            log.warning("wrong piece", rank=rank, number=number, reason=error.message)
            if rank in self._swarm.liars:
                self._lies.append(BlobLie(blob=self.blob.name, rank=rank, number=number))
                self._news.set()
            self._stirred.set()
        except LimitReached as error:
            self._fail(error.message)
        self._ask(self._swarm.asks(time.monotonic()))

    def _checked(self, numbers: list[int]) -> list[int]:
        if max(numbers, default=0) >= self.blob.count:
            raise MalformedMessage("a piece that there is none of")
        return numbers

    # --- what follows ---

    async def _store(self, number: int, piece: memoryview) -> None:
        await asyncio.to_thread(self._files.write, number, piece)
        self._swarm.stored(number)
        self.bytes_there += len(piece)
        self._got.append(number)
        self._news.set()
        for sender in self._senders.values():
            sender.got(number)

    async def _read(self, number: int) -> bytes:
        if number not in self._swarm.have:
            return b""
        piece = await asyncio.to_thread(self._files.read, number)
        self.bytes_passed_on += len(piece)
        return piece

    def _ask(self, asks: Asks) -> None:
        for rank, numbers in asks:
            if rank in self._senders:
                self._senders[rank].ask(numbers)
        self._stirred.set()

    async def _watch_time(self) -> None:
        """A piece that is late is asked for elsewhere."""
        while not self._swarm.complete:
            self._stirred.clear()
            deadline = self._swarm.deadline()
            try:
                async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
                    await self._stirred.wait()
            except TimeoutError:
                self._ask(self._swarm.due(time.monotonic()))

    async def _tell_client(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            lies, self._lies = self._lies, []
            for lie in lies:
                await self._line.send(lie)
            await self._tell_got()
            if self._swarm.complete and not self.is_there:
                try:
                    await self._show()
                except AxonError as error:
                    self._fail(error.message)
                    return
                self.is_there = True
                await self._tell_got()
                await self._line.send(BlobReceived(blob=self.blob.name))
            await asyncio.sleep(TELL_EVERY_S)

    async def keep_told(self) -> None:
        """Until cancelled: let the client know that this side is still at it."""
        while True:
            await asyncio.sleep(AT_IT_EVERY_S)
            await self._line.send(BlobGot(blob=self.blob.name, numbers=[], from_members=self._from_members))

    async def _tell_got(self) -> None:
        while self._got:
            got, self._got = self._got[:MOST_TOLD], self._got[MOST_TOLD:]
            await self._line.send(BlobGot(blob=self.blob.name, numbers=got, from_members=self._from_members))
