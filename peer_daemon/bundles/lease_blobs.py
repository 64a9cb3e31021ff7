"""All blobs of one lease, by name: the bundle, which comes first, and what its client brings the worker besides.

Its words travel on the links of the mesh, which carry the worker's traffic too (`transport.link.LinkCompanion`). A
member's words about a blob that the client has not named are ignored: the member says them again when it is asked.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from axonp2p.blobs.manifest import Blob, read_manifest
from axonp2p.blobs.messages import (
    MOST_BLOBS,
    MOST_PIECES,
    BetweenHolders,
    BlobDropped,
    BlobHave,
    BlobManifest,
    BlobPiece,
    BlobRefused,
    DropBlob,
)
from axonp2p.errors import LimitReached, MalformedMessage
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.supervision import in_background
from axonp2p.transport.flow.in_time import in_time
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.mesh.mesh import Mesh
from axonp2p.transport.messages import LONGEST_TEXT
from axonp2p.wire.codec import Message
from peer_daemon.bundles.blob_side import BlobSide
from peer_daemon.bundles.blob_writer import BlobWriter
from peer_daemon.bundles.bundle_writer import BundleWriter
from peer_daemon.bundles.kept_bundles import KeptBundles
from peer_daemon.links.client_sender import ClientLine

log = get_logger(__name__)

HAVE_BYTES_A_SECOND, HAVE_BYTES_AT_ONCE = 4096.0, 64.0 * MOST_PIECES / 8
"""Bits of what one member has that are read: those of 32,768 pieces a second. Each costs a search for what to ask."""


@dataclass(frozen=True)
class _Further:
    """One blob that is not the bundle."""

    side: BlobSide
    writer: BlobWriter


class LeaseBlobs:
    """The blobs of one lease of `client`, and the members that pass them on."""

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

        `fail(reason)` ends the lease: the disk does not take what a member sent of the bundle.
        """
        self._client = client
        self._line = line
        self._writer = bundle
        self._mesh = mesh
        self._kept = kept
        self._fail = fail
        self._bundle: BlobSide | None = None
        self._further: dict[bytes, _Further] = {}
        self._dropped: deque[bytes] = deque(maxlen=MOST_BLOBS)
        """Of which pieces may still be on the way."""
        self._unclaimed: list[bytes] = []
        """Blobs that the client brought before it was away, and has not named since: they give way to others."""
        self._up: set[int] = set()
        self._haves = RateLimit(HAVE_BYTES_A_SECOND, HAVE_BYTES_AT_ONCE)
        self._gone_bytes = 0
        self._begun: asyncio.Queue[BlobSide] = asyncio.Queue(MOST_BLOBS)
        self._serving: dict[bytes, asyncio.Task[None]] = {}
        self._ready: Callable[[], Awaitable[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_there(self) -> bool:
        """Whether the worker has the whole bundle."""
        return self._bundle is not None and self._bundle.is_there

    @property
    def bytes_there(self) -> int:
        """How much of the bundle is on this disk."""
        return self._bundle.bytes_there if self._bundle else 0

    @property
    def carried_bytes(self) -> int:
        """How much came of other blobs, and how much of all blobs members had from here."""
        passed_on = self._bundle.bytes_passed_on if self._bundle else 0
        sides = [further.side for further in self._further.values()]
        return passed_on + self._gone_bytes + sum(side.bytes_there + side.bytes_passed_on for side in sides)

    async def run(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled. `ready()` is awaited once, when the bundle is there; what it raises ends the lease."""
        self._ready = ready
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    side = await self._begun.get()
                    if side in self._sides:
                        self._serving[side.blob.name] = tasks.create_task(side.run())
        except* Exception:  # the edge of a supervised task: a mistake of ours ends this lease, not the daemon
            log.exception("a lease failed")
            self._fail("a mistake of this peer")

    async def close(self, *, keep: bool) -> None:
        """The lease is over: remove the files, or leave the bundle for a client that was cut off and may come back."""
        for side in self._sides:
            side.close()
        for further in self._further.values():
            await asyncio.to_thread(further.writer.remove)
        blob = self._bundle.blob if self._bundle else None
        left = self._kept.keep(*self._client, blob.name, blob.size) if keep and blob else None
        if left is not None:
            await asyncio.to_thread(self._writer.leave, left)
        else:
            await asyncio.to_thread(self._writer.remove)

    # --- what the client says ---

    async def manifest(self, message: BlobManifest, payload: memoryview) -> None:
        """A blob's name and what it is made of; the first one is the bundle.

        Raises what `BundleWriter.open` does for the bundle, and `MalformedMessage`.
        """
        if self._bundle is None:
            await self._open_bundle(read_manifest(payload, message.blob))
        elif message.blob == self._bundle.blob.name:
            raise MalformedMessage("a second bundle manifest")
        elif message.blob in self._further:
            if message.blob in self._unclaimed:
                self._unclaimed.remove(message.blob)
            await self._further[message.blob].side.offered()
        else:
            await self._open_further(read_manifest(payload, message.blob))

    async def given(self, message: BlobPiece, payload: memoryview) -> None:
        """A piece from the client. Raises `PeerMisbehaved` for a wrong one, `LimitReached` when the disk is full."""
        side = self._side(message.blob)
        if side is None:
            if message.blob not in self._dropped:
                raise MalformedMessage("a piece where none is awaited")
            return
        try:
            await side.given(message, payload)
        except LimitReached as error:
            if side is self._bundle:
                raise
            self._give_up(message.blob, error.message)

    async def drop(self, message: DropBlob) -> None:
        """The worker needs a blob no more. Raises `MalformedMessage` for the bundle."""
        if self._bundle is None or message.blob == self._bundle.blob.name:
            raise MalformedMessage("the bundle is dropped with the lease")
        await self._remove(message.blob)
        await self._line.send(BlobDropped(blob=message.blob))

    def client_is_back(self) -> None:
        """It has another session: perhaps it is another life of its program, which does not know what is here."""
        self._unclaimed = list(self._further)

    async def keep_told(self) -> None:
        """Until cancelled: let the client know that this side is still at the bundle."""
        if self._bundle is not None:
            await self._bundle.keep_told()

    # --- what members say (`transport.link.LinkCompanion`) ---

    def up(self, rank: int) -> None:
        """`LinkCompanion`."""
        self._up.add(rank)
        for side in self._sides:
            side.up(rank)

    def down(self, rank: int) -> None:
        """`LinkCompanion`."""
        self._up.discard(rank)
        for side in self._sides:
            side.down(rank)

    async def heard(self, rank: int, message: Message, payload: memoryview) -> None:
        """`LinkCompanion`."""
        side = self._side(getattr(message, "blob", b""))
        if side is None:
            return
        if isinstance(message, BlobHave):
            await in_time(self._haves, f"{rank}", len(message.pieces))
        await side.heard(rank, message, payload)

    # --- what follows ---

    @property
    def _sides(self) -> list[BlobSide]:
        bundle = [self._bundle] if self._bundle else []
        return [*bundle, *(further.side for further in self._further.values())]

    def _side(self, name: bytes) -> BlobSide | None:
        if self._bundle is not None and name == self._bundle.blob.name:
            return self._bundle
        further = self._further.get(name)
        return further.side if further else None

    async def _open_bundle(self, blob: Blob) -> None:
        have = await asyncio.to_thread(self._writer.open, blob, self._kept.take(self._client[0], blob.name))
        if have:
            log.info("bundle continued", pieces=len(have), of=blob.count)
        self._bundle = BlobSide(blob, have, self._writer, self._line, self._mesh, self._show_bundle, self._fail)
        await self._begin(self._bundle)

    async def _show_bundle(self) -> None:
        assert self._ready is not None
        await self._ready()

    async def _open_further(self, blob: Blob) -> None:
        try:
            writer = await self._writer_of(blob)
        except LimitReached as error:
            self._dropped.append(blob.name)
            await self._refuse(blob.name, error.message)
            return
        show = partial(asyncio.to_thread, writer.show)
        side = BlobSide(blob, (), writer, self._line, self._mesh, show, partial(self._give_up, blob.name))
        self._further[blob.name] = _Further(side, writer)
        await self._begin(side)

    async def _writer_of(self, blob: Blob) -> BlobWriter:
        while True:
            try:
                return await asyncio.to_thread(self._writer.further, blob)
            except LimitReached:
                if not self._unclaimed:
                    raise
                await self._remove(self._unclaimed[0])

    async def _begin(self, side: BlobSide) -> None:
        for rank in self._up:
            side.up(rank)
        await side.offered()
        await self._begun.put(side)

    async def _remove(self, name: bytes) -> None:
        if further := self._forget(name):
            await asyncio.to_thread(further.writer.remove)

    def _give_up(self, name: bytes, reason: str) -> None:
        """The disk does not take that blob, whose client and worker continue without it."""
        if further := self._forget(name):
            log.warning("a blob was given up", reason=reason)
            in_background(self._tasks, self._remove_and_refuse(further, name, reason))

    async def _remove_and_refuse(self, further: _Further, name: bytes, reason: str) -> None:
        await asyncio.to_thread(further.writer.remove)
        await self._refuse(name, reason)

    async def _refuse(self, name: bytes, reason: str) -> None:
        await self._line.send(BlobRefused(blob=name, reason=reason[:LONGEST_TEXT]))

    def _forget(self, name: bytes) -> _Further | None:
        further = self._further.pop(name, None)
        if further is None:
            return None
        further.side.close()
        if serving := self._serving.pop(name, None):
            serving.cancel()
        if name in self._unclaimed:
            self._unclaimed.remove(name)
        self._dropped.append(name)
        self._gone_bytes += further.side.bytes_there + further.side.bytes_passed_on
        return further
