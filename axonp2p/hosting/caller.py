"""The client's side of the conversation: one session with one host."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, Self

from axonp2p.blobs.manifest import Blob, from_bits
from axonp2p.blobs.messages import BlobHave, BlobPiece
from axonp2p.errors import MalformedMessage, Unreachable
from axonp2p.hosting.folder_files import check_listing
from axonp2p.hosting.host import Host
from axonp2p.hosting.messages import (
    AskFolder,
    AskJobs,
    AskPart,
    FolderState,
    HostedFilePart,
    HostedJob,
    HostedJobs,
    HostedWish,
    HostJob,
    HostOffer,
    JobHosted,
    JobTold,
    TellJob,
)
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.ways import BareWhereabouts
from axonp2p.wire.codec import Message

HOSTING_PATH = "/v1/hosting"
_OFFER_LIMIT = 1024
ANSWER_S = 30.0
"""How long an answer may take, in seconds."""


async def ask_offer(line: HttpCaller) -> HostOffer:
    """Whether, and how much, the other side hosts. Raises as `HttpCaller.call`."""
    return await line.call(HOSTING_PATH, None, HostOffer, _OFFER_LIMIT)


class HostLine:
    """A session with `host`. Use it in an `async with`; the methods are called one after the other.

    They raise what the host refused with, `Unreachable`, or `PeerMisbehaved` for an answer that cannot be.
    """

    def __init__(self, host: Host, session: Session) -> None:
        self.host = host
        self._session = session

    @classmethod
    async def open(cls, key: PrivateKey, host: Host) -> HostLine:
        """Dial it, as the client with that key."""
        place = BareWhereabouts(host.peer, [host.address.host_port], host.address.fingerprint)
        return cls(host, await dial(key, place, called=host.called))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session."""
        await self._session.close()

    async def hand_over(
        self, asked: HostJob, blob: Blob, read: Callable[[int], bytes], sent: Callable[[int], None]
    ) -> None:
        """Give the job and its bundle to the host; returns when the job runs there.

        `read` gives a piece by its number, in a thread; `sent` hears of each that was sent.
        """
        await self._session.send(asked, blob.encoded, bulk=True)
        have, _ = await self._next(BlobHave)
        if have.blob != blob.name:
            raise MalformedMessage(f"{self.host.called} answers of another bundle")
        missing = sorted(set(range(blob.count)) - from_bits(have.pieces, blob.count))
        for number in missing:
            piece = await asyncio.to_thread(read, number)
            try:
                await self._session.send(BlobPiece(blob=blob.name, number=number), piece, bulk=True)
            except Unreachable:
                break  # what it said before it hung up comes next
            sent(len(piece))
        await self._next(JobHosted, len(missing))

    async def jobs(self) -> list[HostedJob]:
        """All jobs of this client there."""
        await self._session.send(AskJobs())
        answer, _ = await self._next(HostedJobs)
        found: list[HostedJob] = answer.jobs
        return found

    async def folder(self, job: str, record: bytes) -> tuple[FolderState, bytes]:
        """The files in the job's folder; and its job.json, unless it is `record`."""
        known = hashlib.sha256(record).digest() if record else b""
        await self._session.send(AskFolder(job=job, record=known))
        answer, payload = await self._next(FolderState)
        state: FolderState = answer
        if state.job != job:
            raise MalformedMessage(f"{self.host.called} answers of another job")
        check_listing(state.files)
        return state, bytes(payload)

    async def part(self, job: str, name: str, offset: int, before: bytes = b"") -> tuple[int, bytes]:
        """Bytes of a file, and where they begin: at `offset`, or at 0 when those before it are others there."""
        await self._session.send(AskPart(job=job, name=name, offset=offset, before=before))
        answer, payload = await self._next(HostedFilePart)
        if answer.offset not in (offset, 0) or (answer.offset != offset and not before):
            raise MalformedMessage(f"{self.host.called} answers with another part than the one asked for")
        return answer.offset, bytes(payload)

    async def tell(self, job: str, wish: HostedWish) -> None:
        """Tell what is to become of the job."""
        await self._session.send(TellJob(job=job, wish=wish))
        await self._next(JobTold)

    async def _next(self, kind: type[Message], pieces: int = 0) -> tuple[Any, memoryview]:
        """The next message; the host writes so many pieces before it."""
        try:
            async with asyncio.timeout(ANSWER_S + pieces):
                return await self._session.receive(kind)
        except TimeoutError as error:
            raise Unreachable(f"{self.host.called} does not answer") from error
