"""One lease's bundle: pieces from the client and from members, to disk and on to members. `blobs.swarm` decides.

It stands beside the worker's traffic on the links of the mesh (`transport.link.Beside`) and outlives the bundle's own
arrival: members that come later have it from here.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from axonp2p.blobs.manifest import Blob, as_bits, from_bits, read_manifest
from axonp2p.blobs.messages import (
    MOST_TOLD,
    BetweenHolders,
    BlobAsk,
    BlobGot,
    BlobHave,
    BlobLie,
    BlobManifest,
    BlobPiece,
)
from axonp2p.blobs.swarm import Asks, BlobSwarm
from axonp2p.errors import AxonError, LimitReached, MalformedMessage, PeerMisbehaved
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.messages import BundleReceived
from axonp2p.logs import get_logger
from axonp2p.transport.mesh.mesh import Mesh
from axonp2p.wire.codec import Message
from peer_daemon.bundles.bundle_writer import BundleWriter
from peer_daemon.bundles.kept_bundles import KeptBundles
from peer_daemon.bundles.member_sender import TELL_EVERY_S, MemberSender
from peer_daemon.links.client_line import ClientLine

log = get_logger(__name__)


AT_IT_EVERY_S = 10.0
"""A client gives a peer up that says nothing for two minutes (`client.run.sending.STUCK_S`)."""


class BlobSide:
    """The bundle of one lease of `client`, and the members that pass it on."""

    kinds = BetweenHolders

    def __init__(
        self,
        client: tuple[PeerId, str],
        line: ClientLine,
        bundle: BundleWriter,
        mesh: Mesh,
        kept: KeptBundles,
        fail: Callable[[str], None],
    ) -> None:
        """`client` is its key and its household.

        `fail(reason)` ends the lease: the disk does not take what a member sent.
        """
        self.is_there = False
        """Whether the worker has the whole bundle."""
        self.bytes_there = 0
        """How much of it is on this disk."""
        self.bytes_passed_on = 0
        """How much of it members had from here."""
        self._client = client
        self._line = line
        self._bundle = bundle
        self._mesh = mesh
        self._kept = kept
        self._fail = fail
        self._blob: Blob | None = None
        self._swarm: BlobSwarm | None = None
        self._early: dict[int, BlobHave] = {}
        """What members said they have, before our client told us of the bundle."""
        self._up: set[int] = set()
        self._senders: dict[int, MemberSender] = {}
        self._got: list[int] = []
        self._lies: list[BlobLie] = []
        self._from_members = 0
        self._news = asyncio.Event()
        self._stirred = asyncio.Event()
        self._done = asyncio.Event()

    async def run(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled. `ready()` is awaited once, when all files are there; what it raises ends the lease."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tell_client(ready))
                tasks.create_task(self._watch_time())
        except* Exception:  # the edge of a supervised task: a mistake of ours ends this lease, not the daemon
            log.exception("a lease failed")
            self._fail("a mistake of this peer")

    async def close(self, *, keep: bool) -> None:
        """The lease is over: remove the files, or leave them for a client that was cut off and may come back."""
        for sender in self._senders.values():
            sender.close()
        left = self._kept.keep(*self._client, self._blob.name, self._blob.size) if keep and self._blob else None
        if left is not None:
            await asyncio.to_thread(self._bundle.leave, left)
        else:
            await asyncio.to_thread(self._bundle.remove)

    # --- what the client says ---

    async def manifest(self, message: BlobManifest, payload: memoryview) -> None:
        """The bundle's name and what it is made of. Raises what `BundleWriter.open` does."""
        if self._swarm is not None:
            raise MalformedMessage("a second bundle manifest")
        blob = read_manifest(payload, message.blob)
        have = await asyncio.to_thread(self._bundle.open, blob, self._kept.take(self._client[0], blob.name))
        if have:
            log.info("bundle continued", pieces=len(have), of=blob.count)
        told = BlobHave(blob=blob.name, pieces=as_bits(have, blob.count))
        self._blob, self._swarm = blob, BlobSwarm(blob, have, random.Random())
        self.bytes_there = sum(blob.place(number).length for number in have)
        for rank in self._up:
            self._meet(rank)
        for rank, said in self._early.items():
            with suppress(PeerMisbehaved):  # a member's mistake: the client, who is heard here, made none
                self._have(rank, said)
        self._early.clear()
        await self._line.send(told)
        self._look_if_done()

    async def given(self, message: BlobPiece, payload: memoryview) -> None:
        """A piece from the client. Raises `PeerMisbehaved` for a wrong one, `LimitReached` when the disk is full."""
        if self._swarm is None or self._blob is None or message.blob != self._blob.name:
            raise MalformedMessage("a piece where none is awaited")
        if self._swarm.given(message.number, payload):
            await self._store(message.number, payload)
        self._ask(self._swarm.asks(time.monotonic()))

    # --- what members say (`transport.link.Beside`) ---

    def up(self, rank: int) -> None:
        """`LinkCompanion`."""
        self.down(rank)
        self._up.add(rank)
        if self._swarm is not None:
            self._meet(rank)

    def down(self, rank: int) -> None:
        """`LinkCompanion`."""
        self._up.discard(rank)
        self._early.pop(rank, None)
        sender = self._senders.pop(rank, None)
        if sender is not None:
            sender.close()
        if self._swarm is not None:
            self._ask(self._swarm.gone(rank, time.monotonic()))

    async def heard(self, rank: int, message: Message, payload: memoryview) -> None:
        """`LinkCompanion`."""
        if self._swarm is None or self._blob is None:
            if isinstance(message, BlobHave):
                self._early[rank] = message
            elif isinstance(message, BlobGot) and rank in self._early:
                # Rare, and only for a moment: we hear the whole again when we say what we have.
                self._early[rank] = _with_more(self._early[rank], message)
            return
        if getattr(message, "blob", b"") != self._blob.name:
            return
        match message:
            case BlobHave():
                self._have(rank, message)
            case BlobGot(numbers=numbers):
                self._ask(self._swarm.has(rank, self._checked(numbers), time.monotonic()))
            case BlobAsk(numbers=numbers):
                if rank in self._senders:
                    self._senders[rank].wants(self._checked(numbers))
            case BlobPiece(number=number):
                await self._piece(rank, number, payload)

    def _have(self, rank: int, message: BlobHave) -> None:
        assert self._swarm is not None
        assert self._blob is not None
        if message.blob == self._blob.name:
            self._ask(self._swarm.has(rank, from_bits(message.pieces, self._blob.count), time.monotonic()))

    async def _piece(self, rank: int, number: int, payload: memoryview) -> None:
        assert self._swarm is not None
        assert self._blob is not None
        self._from_members += len(payload)
        try:
            if self._swarm.heard(rank, number, payload, time.monotonic()):
                await self._store(number, payload)
        except PeerMisbehaved as error:
            log.warning("wrong piece", rank=rank, number=number, reason=error.message)
            if rank in self._swarm.liars:
                self._lies.append(BlobLie(blob=self._blob.name, rank=rank, number=number))
                self._news.set()
            self._stirred.set()
        except LimitReached as error:
            self._fail(error.message)
        self._ask(self._swarm.asks(time.monotonic()))

    def _checked(self, numbers: list[int]) -> list[int]:
        assert self._blob is not None
        if max(numbers, default=0) >= self._blob.count:
            raise MalformedMessage("a piece that there is none of")
        return numbers

    # --- what follows ---

    async def _store(self, number: int, piece: memoryview) -> None:
        assert self._swarm is not None
        await asyncio.to_thread(self._bundle.write, number, piece)
        self._swarm.stored(number)
        self.bytes_there += len(piece)
        self._got.append(number)
        self._news.set()
        for sender in self._senders.values():
            sender.got(number)
        self._look_if_done()

    def _look_if_done(self) -> None:
        if self._swarm is not None and self._swarm.complete:
            self._done.set()
            self._news.set()

    def _meet(self, rank: int) -> None:
        assert self._swarm is not None
        assert self._blob is not None
        have = as_bits(self._swarm.have, self._blob.count)
        self._senders[rank] = MemberSender(self._blob.name, have, partial(self._mesh.say, rank), self._read)

    async def _read(self, number: int) -> bytes:
        assert self._swarm is not None
        if number not in self._swarm.have:
            return b""
        piece = await asyncio.to_thread(self._bundle.read, number)
        self.bytes_passed_on += len(piece)
        return piece

    def _ask(self, asks: Asks) -> None:
        for rank, numbers in asks:
            if rank in self._senders:
                self._senders[rank].ask(numbers)
        self._stirred.set()

    async def _watch_time(self) -> None:
        """What is late is asked elsewhere."""
        while True:
            self._stirred.clear()
            deadline = self._swarm.deadline() if self._swarm is not None else None
            try:
                async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
                    await self._stirred.wait()
            except TimeoutError:
                assert self._swarm is not None
                self._ask(self._swarm.due(time.monotonic()))

    async def _tell_client(self, ready: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            lies, self._lies = self._lies, []
            for lie in lies:
                await self._line.send(lie)
            await self._tell_got()
            if self._done.is_set() and not self.is_there:
                try:
                    await ready()
                except AxonError as error:
                    self._fail(error.message)
                    return
                self.is_there = True
                await self._tell_got()
                await self._line.send(BundleReceived())
            await asyncio.sleep(TELL_EVERY_S)

    async def keep_told(self) -> None:
        """Until cancelled: let the client know that this side is still at it."""
        while self._blob is not None:
            await asyncio.sleep(AT_IT_EVERY_S)
            await self._line.send(BlobGot(blob=self._blob.name, numbers=[], from_members=self._from_members))

    async def _tell_got(self) -> None:
        assert self._blob is not None
        while self._got:
            got, self._got = self._got[:MOST_TOLD], self._got[MOST_TOLD:]
            await self._line.send(BlobGot(blob=self._blob.name, numbers=got, from_members=self._from_members))


def _with_more(have: BlobHave, got: BlobGot) -> BlobHave:
    bits = bytearray(have.pieces)
    for number in got.numbers:
        if got.blob == have.blob and number // 8 < len(bits):
            bits[number // 8] |= 0x80 >> number % 8
    return BlobHave(blob=have.blob, pieces=bytes(bits))
