"""A peer of a test: a real listener, whose conversation the test writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from axonp2p.blobs.manifest import as_bits, read_manifest
from axonp2p.blobs.messages import BlobGot, BlobHave, BlobManifest, BlobPiece, BlobReceived
from axonp2p.errors import AxonError
from axonp2p.identity.certificate import make_certificate
from axonp2p.jobs.messages import (
    ClientMessage,
    EndLease,
    FetchLog,
    LeaseEnded,
    LeaseTaken,
    LogPart,
    ReceiptRefused,
    RosterSet,
    SetRoster,
    SignReceipt,
    TakeLease,
    ToWorker,
)
from axonp2p.peers.capability import Capability
from axonp2p.table.records import Row
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.envelope import encode_signed
from tests.fakes import key_of, make_row

Serve = Callable[[Session], Awaitable[None]]
HOST: ContextVar[FakePeer] = ContextVar("HOST")
"""Whose session is being served."""
WAITED = False
"""What the next `LeaseTaken` says of the worker."""


def taken() -> LeaseTaken:
    """What the peer that serves this session says to a token."""
    host = HOST.get()
    row = encode_signed(host.key, host.row())
    return LeaseTaken(until=2_000_000_000, cores=4, memory_mb=8192, row=row, waited=WAITED)


class FakePeer:
    """Listens as a daemon does; `serve` is what it does with a session."""

    def __init__(self, name: str, folder: Path, serve: Serve) -> None:
        self.name = name
        self.key = key_of(name)
        self._certificate = make_certificate(self.key, folder / f"{name}.pem")
        app = web.Application()
        add_ping(app)
        self._listener = Listener(self.key, self._certificate, app)
        self._serve = serve
        self._listener.serve_sessions(app, self._served)

    async def _served(self, session: Session) -> None:
        HOST.set(self)
        await self._serve(session)

    async def start(self) -> None:
        await self._listener.start("127.0.0.1", 0)

    async def stop(self) -> None:
        await self._listener.stop()

    def row(self, *, offer: Capability | None = None) -> Row:
        return make_row(
            self.key,
            name=self.name,
            offer=offer,
            addresses=[f"127.0.0.1:{self._listener.port}"],
            certificate=self._certificate.fingerprint,
        )


class Daemon:
    """A peer that behaves: takes the lease, the bundle and rosters, has a log, and remembers all that it was told."""

    def __init__(self, log: bytes = b"hello\n", refuse: AxonError | None = None) -> None:
        self.heard: list[Any] = []
        self.pieces: dict[int, bytes] = {}
        self.ended = False
        self.session: Session | None = None
        self._log, self._refuse = log, refuse

    async def __call__(self, session: Session) -> None:
        first, _ = await session.receive(TakeLease)
        self.heard.append(first)
        if self._refuse:
            await session.refuse(self._refuse)
            return
        self.session = session
        await session.send(taken())
        while not self.ended:
            message, payload = await session.receive(ClientMessage)
            self.heard.append(message)
            await self._answer(session, message, bytes(payload))

    async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
        match message:
            case BlobManifest():
                self._blob = read_manifest(payload, message.blob)
                await session.send(BlobHave(blob=message.blob, pieces=as_bits([], self._blob.count)))
            case BlobPiece():
                self.pieces[message.number] = payload
                await session.send(BlobGot(blob=message.blob, numbers=[message.number]))
                if len(self.pieces) == self._blob.count:
                    await session.send(BlobReceived(blob=message.blob))
            case SetRoster():
                await session.send(RosterSet(epoch=message.epoch))
            case SignReceipt():
                await session.send(ReceiptRefused(reason="no room on the disk"))
            case FetchLog():
                await session.send(LogPart(offset=0, total=len(self._log)), self._log)
            case ToWorker():
                self.heard[-1] = payload
            case EndLease():
                self.ended = True
                await session.send(LeaseEnded())


@pytest.fixture
async def start_peer(tmp_path: Path) -> AsyncIterator[Callable[[str, Serve], Awaitable[FakePeer]]]:
    started: list[FakePeer] = []

    async def start(name: str, serve: Serve) -> FakePeer:
        peer = FakePeer(name, tmp_path, serve)
        await peer.start()
        started.append(peer)
        return peer

    yield start
    for peer in started:
        await peer.stop()
