"""The messages from the client of a lease, and the response to each, one message after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from axonp2p.blobs.messages import BlobManifest, BlobPiece, DropBlob
from axonp2p.errors import PeerMisbehaved, Refused, Unreachable
from axonp2p.jobs.messages import (
    LOG_BYTES_A_SECOND,
    MOST_LOG_NEWS,
    PART_BYTES,
    ClientMessage,
    EndLease,
    FetchLog,
    FollowLog,
    LogNews,
    LogPart,
    ReceiptRefused,
    ReceiptSigned,
    RosterSet,
    SetRoster,
    SignReceipt,
    ToWorker,
)
from axonp2p.ledger.receipt import DOUBLY_SIGNED_LIMIT, DoublySigned, Receipt
from axonp2p.logs import get_logger
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.sandbox.log import harmless, without_a_broken_end
from axonp2p.sandbox.messages import Control, ToWorkerMessage
from axonp2p.transport.flow.in_time import in_time
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.mesh.mesh import Mesh
from axonp2p.transport.messages import LONGEST_TEXT
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import decode_as
from axonp2p.wire.ranks import MOST_MEMBERS
from peer_daemon.bundles.lease_blobs import LeaseBlobs
from peer_daemon.execution.lease_context import HOUSEHOLDS, LeaseContext
from peer_daemon.execution.roster import read_roster
from peer_daemon.execution.worker_credit import WorkerCredit
from peer_daemon.lending.leases import LentSlot
from peer_daemon.links.in_turn import InTurn

LOOK_EVERY_S = 0.25
ROSTERS_A_SECOND, ROSTERS_AT_ONCE = 1.0, 4.0 * MOST_MEMBERS
"""Rosters that are taken: while a job begins there are up to two for each member. Each may begin all links anew."""
LOGS_A_SECOND, LOGS_AT_ONCE = 1.0, 8.0
"""Words for the log to be sent or followed: a client has one of each, and each reads as much as is kept."""
_MOST_READ = MOST_LOG_NEWS // 3
"""A byte that is replaced becomes three."""


class LogFollower:
    """One session's. A worker that writes faster than is sent goes on: text no longer kept by then is left out."""

    def __init__(self, session: Session, upload: InTurn, worker: SandboxedWorker) -> None:
        self._session = session
        self._upload = upload
        self._worker = worker
        self._following: asyncio.Task[None] | None = None

    def follow(self, start: int) -> None:
        """From that byte on; one that was followed before is followed no more."""
        self.stop()
        self._following = asyncio.create_task(self._follow(start))

    def stop(self) -> None:
        """Send nothing more."""
        if self._following is not None:
            self._following.cancel()

    async def _follow(self, at: int) -> None:
        while True:
            start, written = self._worker.log_since(at, _MOST_READ)
            written = without_a_broken_end(written)
            if not written:
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            at = start + len(written)
            text = harmless(written).encode()
            await self._upload.bulk(self._session, len(text))
            try:
                await self._session.send(LogNews(start=start, end=at), text, bulk=True)
            except Unreachable:
                return  # the client is away: it asks anew when it is back
            await asyncio.sleep(max(LOOK_EVERY_S, len(text) / LOG_BYTES_A_SECOND))


log = get_logger(__name__)

TellWorker = Callable[[ToWorkerMessage, bytes | memoryview], Awaitable[None]]


class ClientSide:
    """The client's session, heard until it ends the lease; when it is lost, the one that takes its place."""

    def __init__(
        self,
        lease: LentSlot,
        session: Session,
        blobs: LeaseBlobs,
        mesh: Mesh,
        credit: WorkerCredit,
        context: LeaseContext,
    ) -> None:
        self._lease = lease
        self._session = session
        self._blobs = blobs
        self._mesh = mesh
        self._credit = credit
        self._book = context.book
        self._context = context
        self._epoch = -1
        self._rosters = RateLimit(ROSTERS_A_SECOND, ROSTERS_AT_ONCE)
        self._logs = RateLimit(LOGS_A_SECOND, LOGS_AT_ONCE)
        self._newest_receipt = 0
        self.receipts = 0
        """Different ones, signed under this lease."""

    async def hear(self, session: Session, tell_worker: TellWorker, worker: SandboxedWorker) -> None:
        """Do what the client says until it ends the lease; `tell_worker` reaches into the sandbox of `worker`.

        A client that comes back counts its rosters anew, and members that were out of reach may be in reach again.
        Raises `Unreachable`, `PeerMisbehaved` or `LimitReached`, which end the lease as well.
        """
        self._session, self._epoch = session, -1
        self._mesh.forget_lost()
        follower = LogFollower(session, self._context.upload, worker)
        try:
            await self._hear(session, tell_worker, worker, follower)
        finally:
            follower.stop()

    async def _hear(
        self, session: Session, tell_worker: TellWorker, worker: SandboxedWorker, follower: LogFollower
    ) -> None:
        while True:
            message, payload = await session.receive(ClientMessage)
            match message:
                case ToWorker():
                    await tell_worker(Control(), payload)
                case BlobManifest():
                    await self._blobs.manifest(message, payload)
                case BlobPiece():
                    await self._blobs.given(message, payload)
                case DropBlob():
                    await self._blobs.drop(message)
                case SetRoster():
                    await self._set_roster(message, tell_worker)
                case SignReceipt():
                    await self._sign_receipt(message)
                case FetchLog(start=start):
                    await in_time(self._logs)
                    follower.stop()  # the client would hear the same twice
                    await self._send_log(worker.log(start))
                case FollowLog(start=start):
                    await in_time(self._logs)
                    follower.follow(start)
                case EndLease(reason=reason):
                    if reason:
                        log.warning("the client let this peer go", job=self._lease.job, reason=reason)
                    return

    async def _set_roster(self, roster: SetRoster, tell_worker: TellWorker) -> None:
        await in_time(self._rosters)
        members = read_roster(
            roster,
            peer=self._lease.peer,
            reservation=self._lease.reservation,
            epoch=self._epoch,
            now=self._context.clock.now(),
        )
        self._epoch = roster.epoch
        self._credit.begin(self._mesh.set_roster(roster.rank, members))
        await self._credit.tell(lambda word: tell_worker(word, b""))
        await self._session.send(RosterSet(epoch=roster.epoch))

    async def _sign_receipt(self, message: SignReceipt) -> None:
        for name, cost in ((self._lease.source, 1.0), ("", 1 / HOUSEHOLDS)):
            await in_time(self._context.receipts, name, cost)
        try:
            number, doubly = await asyncio.to_thread(self._sign, message.receipt)
        except (Refused, PeerMisbehaved) as error:
            log.warning("receipt refused", job=self._lease.job, reason=error.message)
            await self._session.send(ReceiptRefused(reason=error.message[:LONGEST_TEXT]))
            return
        if number > self._newest_receipt:  # the same one again is answered again, and pays for nothing
            self._newest_receipt = number
            self.receipts += 1
        await self._session.send(ReceiptSigned(receipt=doubly))

    def _sign(self, envelope: bytes) -> tuple[int, bytes]:
        """The receipt's number, and what both signed."""
        doubly = self._book.sign(envelope, self._lease)
        opened = decode_as(doubly, DoublySigned, DOUBLY_SIGNED_LIMIT)
        return decode_as(opened.receipt.payload, Receipt, Receipt.LIMIT).number, doubly

    async def _send_log(self, whole: bytes) -> None:
        text = memoryview(whole)
        for offset in range(0, max(1, len(text)), PART_BYTES):
            part = text[offset : offset + PART_BYTES]
            await self._context.upload.bulk(self._session, len(part))
            await self._session.send(LogPart(offset=offset, total=len(text)), part, bulk=True)
