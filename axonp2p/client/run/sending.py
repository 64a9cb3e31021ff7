"""A blob's way from this disk to the peers: each piece about once, and what the peers say of those they have.

`blobs.seeding` decides who is given what; every peer takes it at its own speed. It lasts as long as peers need the
blob: a peer that comes late has it from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from axonp2p.blobs.manifest import Blob, from_bits
from axonp2p.blobs.messages import BlobGot, BlobHave, BlobLie, BlobManifest, BlobPiece
from axonp2p.blobs.seeding import Seeding
from axonp2p.client.events.bundle_events import BundleProgress, PeerHelped, PieceWrong
from axonp2p.client.events.event import Event
from axonp2p.client.leasing.blob_news import BlobNews
from axonp2p.client.leasing.lease import Lease
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, MalformedMessage, SettingsError, Unreachable
from axonp2p.jobs.bundle import Bundle
from axonp2p.logs import get_logger

PROGRESS_EVERY_S = 0.5
STUCK_S = 120.0
"""A peer that gets nothing for so long is given up."""

log = get_logger(__name__)


@dataclass
class _Taker:
    """One peer that takes the blob."""

    lease: Lease
    news: asyncio.Event
    from_members: int = 0
    moved: float = 0.0
    """When it last got anything."""


class Sending:
    """One job's bundle, or one further blob, given to peers."""

    def __init__(
        self, bundle: Bundle, clock: Clock, tell: Callable[[Event], None], *, shows_progress: bool = True
    ) -> None:
        """`shows_progress`: whether `BundleProgress` is told."""
        self.sent_bytes = 0
        """Bytes of pieces that left this machine."""
        self._bundle = bundle
        self._blob: Blob = bundle.blob
        self._clock = clock
        self._tell = tell
        self._shows_progress = shows_progress
        self._seeding = Seeding(self._blob.count)
        self._named: set[tuple[int, int]] = set()
        """Pairs of members: the first has told of the second that it sent wrong bytes."""
        self._takers: dict[int, _Taker] = {}
        self._told_helped: set[int] = set()
        self._from_members_of_gone = 0
        self._shown_at = float("-inf")

    @property
    def name(self) -> bytes:
        """The blob's."""
        return self._blob.name

    @property
    def member_bytes(self) -> int:
        """Bytes of pieces that peers had from each other."""
        return self._from_members_of_gone + sum(taker.from_members for taker in self._takers.values())

    async def deliver(self, rank: int, lease: Lease) -> str:
        """See to it that one peer gets it; why it did not, whatever the peer says or the line does.

        Raises `JobFileWrong` when a file changed since it was hashed.
        """
        try:
            await self.bring(rank, lease)
        except SettingsError:  # of this computer: no peer's word comes back as one
            raise
        except AxonError as error:
            return error.in_a_line
        return ""

    async def bring(self, rank: int, lease: Lease) -> None:
        """See to it that one peer gets it. Raises what the peer refuses it with, `Unreachable`, or `JobFileWrong`."""
        received = await lease.expect_blob(self.name, lambda message: self._heard(rank, message))
        self._forget_the_gone()
        taker = self._takers[rank] = _Taker(lease, asyncio.Event(), moved=self._clock.monotonic())
        try:
            try:
                await lease.give(BlobManifest(blob=self.name), self._blob.encoded)
                await self._feed(rank, taker, received)
                received.result()
            finally:
                lease.blobs.arrived(self.name)
            if lease.gone:
                raise Unreachable(lease.gone)
        except BaseException:
            if self._takers.get(rank) is taker:  # else the same peer is back, under another lease
                self.gone(rank)
            raise

    async def _feed(self, rank: int, taker: _Taker, received: asyncio.Future[None]) -> None:
        received.add_done_callback(lambda _: taker.news.set())
        while not received.done():
            taker.news.clear()
            now = self._clock.monotonic()
            if taker.lease.gone:
                raise Unreachable(taker.lease.gone)
            if now > taker.moved + STUCK_S:
                raise Unreachable(f"peer {taker.lease.name} took nothing of what it was sent for {STUCK_S:g} s")
            joined = self._seeding.has_joined(rank)
            number = self._seeding.next(rank, now) if joined else None
            if number is not None:
                self._say_who_is_helped(rank, taker)
                piece = await asyncio.to_thread(self._bundle.piece, number)
                self.sent_bytes += len(piece)
                await taker.lease.give(BlobPiece(blob=self._blob.name, number=number), piece, bulk=True)
                continue
            deadline = self._seeding.deadline(rank) if joined else None
            until = min(taker.moved + STUCK_S + 1, now + STUCK_S if deadline is None else max(deadline, now + 0.01))
            try:
                async with asyncio.timeout(until - now):
                    await taker.news.wait()
            except TimeoutError:
                continue

    # --- what peers say ---

    def _heard(self, rank: int, message: BlobNews) -> None:
        """Raises `PeerMisbehaved`."""
        if message.blob != self._blob.name or rank not in self._takers:
            return
        taker, now = self._takers[rank], self._clock.monotonic()
        match message:
            case BlobHave(pieces=bits):
                if self._seeding.has_joined(rank):
                    raise MalformedMessage(f"peer {taker.lease.name} says twice what it has kept")
                self._seeding.joined(rank, from_bits(bits, self._blob.count), now)
            case BlobGot(numbers=numbers, from_members=count):
                if max(numbers, default=-1) >= self._blob.count:
                    raise MalformedMessage(f"peer {taker.lease.name} has pieces that there are none of")
                if not self._seeding.has_joined(rank):
                    return  # said before it heard of us again; what it has by now it says next
                taker.from_members = max(taker.from_members, count)
                self._seeding.got(rank, numbers, now)
                self._show_progress(now)
            case BlobLie(rank=liar, number=number):
                self._name(rank, liar, number)
        taker.moved = now
        self._wake()

    def _name(self, told_by: int, liar: int, number: int) -> None:
        """Once: who had wrong bytes of a member asks it for nothing more, so it has nothing more to tell of it."""
        if liar not in self._takers or (told_by, liar) in self._named:
            return
        self._named.add((told_by, liar))
        name, teller = (self._takers[rank].lease.name for rank in (liar, told_by))
        log.warning("wrong bytes from a member", peer=name, told_by=teller, piece=number)
        self._tell(PieceWrong(peer=name, told_by=teller, piece=number))

    def _show_progress(self, now: float) -> None:
        if not self._shows_progress or now < self._shown_at + PROGRESS_EVERY_S:
            return
        self._shown_at = now
        done = sum(self._seeding.held_by(rank) for rank in self._takers)
        share = done / max(1, self._blob.count * len(self._takers))
        self._tell(BundleProgress(bytes=self.sent_bytes, member_bytes=self.member_bytes, fraction=share))

    def _say_who_is_helped(self, rank: int, taker: _Taker) -> None:
        if rank in self._seeding.helped and rank not in self._told_helped:
            self._told_helped.add(rank)
            log.info("members pass nothing on", peer=taker.lease.name)
            self._tell(PeerHelped(peer=taker.lease.name))

    # --- who goes ---

    def _forget_the_gone(self) -> None:
        for rank, taker in list(self._takers.items()):
            if taker.lease.gone:
                self.gone(rank)

    def gone(self, rank: int) -> None:
        """That peer has gone, with what it has of the blob."""
        taker = self._takers.pop(rank, None)
        if taker is not None:
            self._from_members_of_gone += taker.from_members
            taker.news.set()
        self._seeding.gone(rank, self._clock.monotonic())
        self._wake()

    def _wake(self) -> None:
        for taker in self._takers.values():
            taker.news.set()
