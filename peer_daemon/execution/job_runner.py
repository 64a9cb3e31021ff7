"""One lease, carried out: the client's session on one side, the sandboxed worker and the mesh on the other.

Each receiver has a queue of its own, which is short: members and clients are read only as fast as the worker takes
what they bring, and the worker says to each only what it has credit for (`worker_credit`). So a slow one slows down
its own traffic, nobody else's, and fills nobody's memory. A worker that takes nothing for a long time is ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from contextlib import suppress
from functools import partial
from typing import Any

from axonp2p.errors import AxonError, PeerMisbehaved, Refused, Unreachable
from axonp2p.identity.peer_id import short
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.messages import (
    HandBack,
    LeaseTaken,
    LineMeasured,
    LinkLost,
    WorkerEnded,
)
from axonp2p.ledger.said import Said, sign_said
from axonp2p.logs import get_logger
from axonp2p.sandbox.child import SandboxedWorker, Usage
from axonp2p.sandbox.messages import BundleReady, FromMember, ToWorkerMessage
from axonp2p.supervision import cancel_and_wait
from axonp2p.transport.mesh.mesh import Mesh
from axonp2p.transport.messages import LONGEST_TEXT
from axonp2p.transport.sessions.session import Session
from peer_daemon.bundles.bundle_writer import BundleWriter
from peer_daemon.bundles.lease_blobs import LeaseBlobs
from peer_daemon.execution.client_side import ClientSide
from peer_daemon.execution.lease_context import LeaseContext, limits_of
from peer_daemon.execution.lease_progress import LeaseLook, LeaseProgress
from peer_daemon.execution.link_shaper import LeaseLinkShaper
from peer_daemon.execution.memory import keep
from peer_daemon.execution.suspension import Suspension
from peer_daemon.execution.worker_credit import CLIENT, WorkerCredit
from peer_daemon.execution.worker_side import WorkerSide
from peer_daemon.lending.leases import LentSlot
from peer_daemon.links.client_sender import ClientLine, ClientSender
from peer_daemon.wheels.unpacking import UnpackingFor

log = get_logger(__name__)

_MIB = 2**20
STALLED_S = 60.0
"""A worker that takes no message for so long is ended."""
HAND_BACK_TOLD_S = 1.0
"""How long a client that reads slowly may delay that its worker is ended."""
LINK_LOST_AGAIN_S = 1.0
"""How often at most the client is told that a member is out of reach, in seconds."""
_CLIENT_GONE = "the client is gone"


class JobRunner:
    """A lease from `LeaseTaken` until nothing of it is left; then `run` returns why it ended."""

    def __init__(self, lease: LentSlot, session: Session, context: LeaseContext) -> None:
        self.lease = lease
        self._credit = WorkerCredit()
        link_shaper = LeaseLinkShaper(context, self._credit)
        session.slow_down(link_shaper.hold_back)
        self.mesh = Mesh(
            context.key,
            lease.reservation,
            self._from_member,
            self._link_lost,
            link_shaper,
            policy=context.dials,
            lanes=context.lanes,
        )
        self.line = ClientLine(session)
        self.over = asyncio.Event()
        """Set when nothing is left of it, and the client was told."""
        self._link_shaper = link_shaper
        self._context = context
        self._limits = limits_of(lease, context.priority)
        log_mb = -(-self._limits.log_bytes // _MIB)
        bundle_mb = max(0, lease.disk_mb - self._limits.scratch_mb - log_mb)
        self._bundle = BundleWriter(
            context.jobs / lease.reservation, bundle_mb * _MIB, context.wheels, executes=self._limits.executes
        )
        self._stop_reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._blobs = LeaseBlobs(
            (lease.client, lease.source), self.line, self._bundle, self.mesh, context.kept, self.stop
        )
        self.mesh.beside = self._blobs
        self._side = ClientSide(lease, session, self._blobs, self.mesh, self._credit, context)
        self._client_sender = ClientSender(self.line, context.upload, self._went_to_client)
        self._progress = LeaseProgress(time.monotonic())
        self.unworked = False
        """Whether it ends because nothing was done under it."""
        self._carried_bytes = self._unpacked_bytes = 0
        self.suspension = Suspension(self.line)
        self._worker: SandboxedWorker | None = None
        self._cores = 0
        self._handing_back: asyncio.Task[None] | None = None
        self.handed_back = ""
        """Why the owner wanted it back, for the owner's history; empty when nobody did."""
        self._handed_back_by = math.inf
        self._worker_fault = ""
        self._cut_off = False
        self._worker_gone = False
        self._lost_told: dict[int, float] = {}

    async def run(self, seconds: float) -> str:
        """Serve the client for at most `seconds`; returns why the lease ended, empty when the client wished it.

        Raises `Refused` when no worker can be started, `LimitReached` when the disk is full, and `PeerMisbehaved`.
        """
        hearing: list[asyncio.Task[None]] = []
        keep()
        try:
            worker = await self._start()
            self.line.session.admit()
            await self.line.session.send(self._taken(waited=False))
            await self.suspension.started(worker)
            hearing = self._begin(worker)
            return await self._until_the_end(worker, hearing[0], time.monotonic() + seconds)
        except Unreachable:
            self._cut_off = True
            return _CLIENT_GONE
        finally:
            await self._clean_up(hearing)

    @property
    def waits_for_clients(self) -> bool:
        """Whether a client that has lost its session finds its worker here."""
        return self.lease.grace_s > 0 and self._blobs.is_there and not self._worker_gone

    async def serve_again(self, session: Session) -> None:
        """The client is back, with this session, until that ends too or the lease is over."""
        log.info("the client is back", job=self.lease.job, client=short(self.lease.client))
        session.slow_down(self._link_shaper.hold_back)
        session.admit()
        await session.send(self._taken(waited=True))
        self._blobs.client_is_back()
        await self.line.put(session).close()
        self.suspension.client_is_back()
        ends = [asyncio.create_task(end.wait()) for end in (session.ended, self.over)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    def stop(self, reason: str) -> None:
        """End the lease from this side."""
        if not self._stop_reason.done():
            self._stop_reason.set_result(reason)

    def look(self, now: float) -> None:
        """See what has been done under the lease by `now` (monotonic seconds), and end it when nothing is."""
        seen = LeaseLook(
            bundle_bytes=self._blobs.bytes_there + self._unpacked_bytes,
            bundle_there=self._blobs.is_there,
            cpu_seconds=self.usage().cpu_seconds,
            carried_bytes=self._carried_bytes + self._link_shaper.carried_bytes + self._blobs.carried_bytes,
            receipts=self._side.receipts,
            stopped=self.suspension.frozen,
            away=self.line.session.closed,
        )
        if why := self._progress.look(seen, now):
            self.unworked = True
            self.stop(why)

    @property
    def idle_s(self) -> float:
        """For how long nothing has been done under the lease; 0 while it is worked."""
        return self._progress.idle_s

    @property
    def unpaid(self) -> bool:
        """Whether it ends because no receipt came for the work."""
        return self._progress.unpaid

    def hand_back(self, reason: str, seconds: float, *, noted: str = "") -> None:
        """The owner wants the machine: the client has `seconds` to end the lease, then this side does."""
        by = time.monotonic() + seconds
        if by < self._handed_back_by:
            self.handed_back = noted or reason
            self._handed_back_by = by
            if self._handing_back is not None:
                self._handing_back.cancel()
            self._handing_back = asyncio.create_task(self._hand_back(reason, seconds))

    def hold_to(self, cores: int) -> None:
        """The worker may use so many cores now; 0: as many as its lease says."""
        if self._worker is not None and cores != self._cores:
            self._cores = cores
            self._worker.hold_to(min(cores, self.lease.cores))

    def end_over(self, limit: str, reason: str) -> None:
        """End the worker, which went over a limit that is seen from outside of its sandbox."""
        if self._worker is not None:
            self._worker.end_over(limit, reason)

    def usage(self) -> Usage:
        """The resources that the worker uses, or used when it has ended."""
        return self._worker.usage() if self._worker is not None else Usage(0, 0.0, 0)

    @property
    def worker_pid(self) -> int:
        """The first process of the sandbox, as seen from outside; 0 before there is one."""
        return self._worker.pid if self._worker is not None else 0

    @property
    def rounds(self) -> int:
        """Accepted rounds for which the client signed a receipt under this lease."""
        return self._side.receipts

    # --- beginning and end ---

    def _taken(self, *, waited: bool) -> LeaseTaken:
        lease = self.lease
        return LeaseTaken(
            until=lease.until, cores=lease.cores, memory_mb=lease.memory_mb, row=self._context.row(), waited=waited
        )

    async def _hand_back(self, reason: str, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(HAND_BACK_TOLD_S):
                await self.line.send(HandBack(reason=reason, seconds=seconds))
        await asyncio.sleep(seconds)
        self.stop(reason)

    async def _start(self) -> SandboxedWorker:
        try:
            await asyncio.to_thread(self._bundle.make)
        except OSError as error:
            raise Refused(f"this peer cannot make a folder for the job: {error.strerror}") from error
        try:
            data = {name: self._context.datasets[name] for name in self.lease.datasets}
            program = KINDS[self.lease.kind].worker
            worker = await self._context.start_worker(
                self._bundle.bundle, self._limits, program=program, data=data, blobs=self._bundle.blobs
            )
        except AxonError as error:  # SandboxMissing is our owner's business; the client hears a refusal
            raise Refused(f"this peer cannot start a worker: {error.message}") from error
        self._worker = worker
        await worker.channel.send(self._limits.start())
        return worker

    def _begin(self, worker: SandboxedWorker) -> list[asyncio.Task[None]]:
        self._credit.begin([CLIENT])
        return [
            asyncio.create_task(work)
            for work in (
                self._hear_worker(worker),
                self._client_sender.carry(),
                self._blobs.run(partial(self._bundle_is_there, worker)),
                self._credit.keep_telling(lambda word: self._to_worker(worker, word, b"")),
                self._context.line.report(self._line_measured),
            )
        ]

    async def _bundle_is_there(self, worker: SandboxedWorker) -> None:
        """Raises what `WheelCache.place` does."""
        lease = UnpackingFor(self._unpacked, self.suspension.also, self._context.priority)
        telling = asyncio.create_task(self._blobs.keep_told())
        try:
            await self._bundle.unpack(lease)
        finally:
            telling.cancel()
        await self._to_worker(worker, BundleReady(), b"")

    def _unpacked(self, count: int) -> None:
        self._unpacked_bytes += count

    async def _until_the_end(self, worker: SandboxedWorker, ending: asyncio.Task[None], until: float) -> str:
        """Hear the client, and wait for it when it is away, until something ends the lease. `ending`: the worker's."""
        while True:
            session = self.line.session
            reason = await self._hear_client(worker, session, until)
            if reason is not None:
                return reason
            if self.waits_for_clients:
                await self._wait_for_client(session, ending, until)
            if self.line.session is session:
                self._cut_off = not self._stop_reason.done()
                return _CLIENT_GONE if self._cut_off else self._stop_reason.result()

    async def _hear_client(self, worker: SandboxedWorker, session: Session, until: float) -> str | None:
        """Why the lease ended; None when the session did."""
        client = asyncio.create_task(self._side.hear(session, partial(self._to_worker, worker), worker))
        lost = asyncio.create_task(session.ended.wait())
        try:
            ends: list[asyncio.Future[Any]] = [client, lost, self._stop_reason]
            await asyncio.wait(ends, timeout=until - time.monotonic(), return_when=asyncio.FIRST_COMPLETED)
            if client.done():
                with suppress(Unreachable):
                    client.result()
                    return ""
                return None
            if self._stop_reason.done():
                return self._stop_reason.result()
            return None if session.closed else "the token expired"
        finally:
            await cancel_and_wait(lost, client)

    async def _wait_for_client(self, session: Session, ending: asyncio.Task[None], until: float) -> None:
        """Until it has another session than this, or has been away for too long."""
        log.info("the client is away", job=self.lease.job, waits_s=self.lease.grace_s)
        back = asyncio.create_task(self.line.other_than(session))
        try:
            ends: list[asyncio.Future[Any]] = [back, ending, self._stop_reason]
            seconds = min(float(self.lease.grace_s), until - time.monotonic())
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            back.cancel()

    async def _clean_up(self, hearing: list[asyncio.Task[None]]) -> None:
        ending = [*hearing, self._handing_back] if self._handing_back else hearing
        await cancel_and_wait(*ending)
        await self.suspension.close()
        try:
            if self._worker is not None:
                await self._worker.kill()
            await self.mesh.close()
        finally:
            await self._blobs.close(keep=self._cut_off)

    # --- the worker's side ---

    async def _hear_worker(self, worker: SandboxedWorker) -> None:
        """Carry what the worker says until it is gone, and tell the client how it ended."""
        try:
            await WorkerSide(self.mesh, self._client_sender, self._credit, self._link_lost, self._sign).hear(worker)
        except PeerMisbehaved as error:
            self._worker_fault = f"broke the protocol: {error.message}"
        except Unreachable:
            pass  # the worker has ended, or the client's session: `_until_the_end` sees that one
        except Exception:  # the edge of a supervised task: a mistake of ours ends this worker, not the daemon
            log.exception("a lease failed", job=self.lease.job)
            self._worker_fault = "was ended by a mistake of this peer"
        end = await (worker.kill() if self._worker_fault else worker.wait())
        reason = self._worker_fault or end.reason
        log.info("worker ended", job=self.lease.job, reason=reason, limit=end.limit)
        self._worker_gone = True
        await self._client_sender.flush()
        await self.line.send(WorkerEnded(reason=reason, limit=end.limit, log_tail=end.log_tail))

    def _went_to_client(self, count: int) -> None:
        self._carried_bytes += count
        self._credit.went(CLIENT, count)

    def _sign(self, payload: memoryview) -> bytes:
        lease, key = self.lease, self._context.key
        sha256 = hashlib.sha256(payload).digest()
        said = Said(job=lease.job, reservation=lease.reservation, client=lease.client, peer=key.peer_id, sha256=sha256)
        return sign_said(key, said)

    async def _to_worker(self, worker: SandboxedWorker, message: ToWorkerMessage, payload: bytes | memoryview) -> None:
        try:
            await self.suspension.within(STALLED_S, partial(worker.channel.send, message, payload))
        except Unreachable:
            pass  # it has ended; the client hears so from `_hear_worker`
        except TimeoutError:
            self._worker_fault = f"took no message for {STALLED_S:.0f} s"
            await worker.kill()

    # --- the other members' side ---

    async def _from_member(self, rank: int, payload: memoryview) -> None:
        self._carried_bytes += len(payload)
        if self._worker is not None:
            await self._to_worker(self._worker, FromMember(rank=rank), payload)

    async def _link_lost(self, rank: int, reason: str) -> None:
        # A worker that goes on sending to a lost member would otherwise fill the client's line with this.
        now = time.monotonic()
        if now < self._lost_told.get(rank, 0.0) + LINK_LOST_AGAIN_S:
            return
        self._lost_told[rank] = now
        log.info("link lost", job=self.lease.job, rank=rank, client=short(self.lease.client), reason=reason)
        await self.line.send(LinkLost(rank=rank, reason=reason[:LONGEST_TEXT]))

    async def _line_measured(self, measured: LineMeasured) -> None:
        await self.line.send(measured)
