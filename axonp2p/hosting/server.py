"""The host's side of the conversation: sessions of clients that hand jobs over, look at them, copy them, steer them."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from aiohttp import web

from axonp2p.blobs.manifest import Blob, as_bits, read_manifest
from axonp2p.blobs.messages import BlobHave, BlobPiece
from axonp2p.blobs.store import PieceStore
from axonp2p.errors import Busy, JobFileWrong, LimitReached, MalformedMessage, Refused, Unreachable
from axonp2p.hosting.admission import arrives_within
from axonp2p.hosting.caller import HOSTING_PATH
from axonp2p.hosting.folder_files import GROWING_LIMIT
from axonp2p.hosting.hosted_folder import HostedFolder
from axonp2p.hosting.keeper import Keeper
from axonp2p.hosting.messages import (
    MOST_HOSTED,
    AskFolder,
    AskJobs,
    AskPart,
    FolderState,
    HostAsk,
    HostedFilePart,
    HostedJob,
    HostedJobs,
    HostJob,
    HostOffer,
    JobHosted,
    JobTold,
    TellJob,
)
from axonp2p.hosting.tending import Tending
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.spec import read_spec
from axonp2p.transport.flow.in_time import in_time
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.http.http_replies import reply
from axonp2p.transport.sessions.session import Session

SILENT_S = 120.0
"""A client that says nothing for so long is gone."""
OFFER_LASTS_S = 1.0
"""An offer is told for so long, whoever asks: to make it every job's folder is looked at."""
HASHED_A_SECOND, HASHED_AT_ONCE = 32.0 * 2**20, 2.0 * 2**30
"""Bytes before a part that are hashed for one client, which then waits. A file as long as can be is copied in one go:
with each part all before it is hashed again."""
MOST_HASHING = 2
"""So many sessions at a time; the threads are there for all others too."""


class HostServer:
    """Serves the jobs of one `Keeper`, under the key `host`."""

    asks: Any = HostAsk
    """With one of these a session begins that is for it."""

    def __init__(self, host: PeerId, keeper: Keeper) -> None:
        self._host = host
        self._keeper = keeper
        self._looking = asyncio.Lock()
        self._told: tuple[float, HostOffer] | None = None
        self._hashed = RateLimit(HASHED_A_SECOND, HASHED_AT_ONCE)
        self._hashing = asyncio.Semaphore(MOST_HASHING)

    def add_routes(self, app: web.Application) -> None:
        """GET /v1/hosting."""
        app.router.add_get(HOSTING_PATH, self._offer)

    async def _offer(self, request: web.Request) -> web.Response:
        async with self._looking:
            now = self._keeper.clock.monotonic()
            if self._told is None or not 0 <= now - self._told[0] < OFFER_LASTS_S:
                limits = self._keeper.limits
                disk_mb, days = limits.disk_bytes // 2**20, limits.keep_s / 86400
                free = await self._keeper.free()
                self._told = now, HostOffer(host=self._host, jobs=limits.jobs, free=free, disk_mb=disk_mb, days=days)
            return reply(self._told[1])

    async def serve(self, session: Session, message: HostAsk, payload: memoryview) -> None:
        """Answer this, and all that follows on the session. Raises what is to be told as a refusal."""
        while True:
            if payload and not isinstance(message, HostJob):
                raise MalformedMessage(f"a {type(message).__name__} has no payload")
            try:
                await self._answer(session, message, payload)
                async with asyncio.timeout(SILENT_S):
                    message, payload = await session.receive(HostAsk)
            except (Unreachable, TimeoutError):
                return

    async def _answer(self, session: Session, message: HostAsk, payload: memoryview) -> None:
        owner = session.peer
        match message:
            case HostJob():
                await self._take(session, message, bytes(payload))
            case AskJobs():
                jobs = [
                    HostedJob(job=one.record.job, at_work=one.at_work, role=one.record.role)
                    for one in self._keeper.of(owner)
                ]
                await session.send(HostedJobs(jobs=jobs[:MOST_HOSTED]))
            case AskFolder(job=job, record=known):
                await self._tell_folder(session, self._keeper.find_to_read(owner, job), known)
            case AskPart(job=job):
                offset, part = await self._part(owner, self._keeper.find_to_read(owner, job).folder, message)
                await session.send(HostedFilePart(offset=offset), part, bulk=True)
            case TellJob(job=job, wish=wish):
                tending = self._keeper.find(owner, job)
                if wish == "resume" and tending.record.copies:
                    await self._keeper.take_over(tending)
                else:
                    await tending.tell(wish)
                await session.send(JobTold(job=job))

    async def _part(self, owner: PeerId, folder: HostedFolder, asked: AskPart) -> tuple[int, bytes]:
        if not asked.before:
            return await asyncio.to_thread(folder.part, asked.name, asked.offset, b"")
        await in_time(self._hashed, owner, min(asked.offset, GROWING_LIMIT))
        async with self._hashing:
            return await asyncio.to_thread(folder.part, asked.name, asked.offset, asked.before)

    async def _tell_folder(self, session: Session, tending: Tending, known: bytes) -> None:
        at_work = tending.at_work  # before the files: what is told of a job that is over is all of it
        folder = tending.folder
        files, record = await asyncio.to_thread(lambda: (folder.listing(), folder.record_bytes()))
        if hashlib.sha256(record).digest() == known:
            record = b""
        known_here = tending.record
        state = FolderState(
            job=known_here.job, at_work=at_work, trouble=known_here.trouble, files=files, role=known_here.role
        )
        await session.send(state, record)

    async def _take(self, session: Session, asked: HostJob, manifest: bytes) -> None:
        blob = await asyncio.to_thread(read_manifest, manifest, asked.blob)
        tending = await self._keeper.take(session.peer, session.source, asked, blob)
        session.admit()
        if tending.arriving.locked():
            raise Busy("this job comes on another session just now")
        async with tending.arriving:
            if not tending.record.arrived:
                await self._receive(session, tending, blob)
                await self._check(tending)
                await self._keeper.arrived(tending)
            else:
                have = as_bits(range(blob.count), blob.count)
                await session.send(BlobHave(blob=blob.name, pieces=have))
        await session.send(JobHosted(job=asked.job))

    async def _receive(self, session: Session, tending: Tending, blob: Blob) -> None:
        store = PieceStore(tending.folder.bundle, blob)
        until = self._keeper.clock.monotonic() + arrives_within(blob.size)
        try:
            await asyncio.to_thread(store.make)
            held = await asyncio.to_thread(store.held)
            tending.came_bytes = sum(blob.place(number).length for number in held)
            await session.send(BlobHave(blob=blob.name, pieces=as_bits(held, blob.count)))
            for number in sorted(set(range(blob.count)) - held):
                async with asyncio.timeout(SILENT_S):
                    message, piece = await session.receive(BlobPiece)
                if why := tending.forgotten or ("it came too slowly" if self._keeper.clock.monotonic() > until else ""):
                    raise Refused(f"this host takes no more of the bundle: {why}", fix="hand it over again")
                if (message.blob, message.number) != (blob.name, number) or not blob.fits(number, piece):
                    raise MalformedMessage(f"piece {number} of the bundle is not what its manifest says")
                await asyncio.to_thread(store.write, number, piece)
                tending.came(len(piece))
        except OSError as error:
            raise LimitReached(f"this host cannot write the bundle: {error.strerror}") from error

    async def _check(self, tending: Tending) -> None:
        """Raise `Refused`, and forget it, when what came is no job."""
        try:
            await asyncio.to_thread(read_spec, tending.folder.bundle)
        except JobFileWrong as error:
            await self._keeper.forget(tending, "it is no job")
            raise Refused(f"that is no job: {error.message}") from error
