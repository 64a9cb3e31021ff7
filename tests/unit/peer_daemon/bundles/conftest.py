"""Daemons with real links, and the client's part of each lease, which a test plays."""

from __future__ import annotations

import asyncio

import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest, from_bits
from axonp2p.blobs.messages import BlobGot, BlobHave, BlobManifest, BlobPiece, BlobReceived
from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.messages import LeaseTaken, PeerMessage, RosterSet, SetRoster
from axonp2p.sandbox.messages import Start

CONTENT = b"".join(bytes([number]) * PIECE_BYTES for number in range(5)) + b"the end"
BLOB = Blob(
    Manifest(
        files=[
            BlobFile(path="task.py", size=3, blake3=book_of(b"abc").hashes),
            BlobFile(path="data/x", size=len(CONTENT), blake3=book_of(CONTENT).hashes),
        ]
    )
)
PIECES = [b"abc", *(CONTENT[start : start + PIECE_BYTES] for start in range(0, len(CONTENT), PIECE_BYTES))]
EVERYTHING = set(range(BLOB.count))


class Client:
    """One lease's session, all that was heard on it, and the worker behind it."""

    def __init__(self, peer, session, worker):
        self.peer, self.session, self.worker = peer, session, worker
        self.told: list = []

    async def hears(self, kind):
        async with asyncio.timeout(20):
            while True:
                message, _ = await self.session.receive(PeerMessage)
                self.told.append(message)
                if isinstance(message, kind):
                    return message

    async def names_the_bundle(self) -> set[int]:
        """What the peer has of it."""
        await self.session.send(BlobManifest(blob=BLOB.name), BLOB.encoded)
        return from_bits((await self.hears(BlobHave)).pieces, BLOB.count)

    async def gives(self, *numbers: int) -> None:
        for number in numbers:
            await self.session.send(BlobPiece(blob=BLOB.name, number=number), PIECES[number], bulk=True)

    async def hears_that_it_got(self, numbers: set[int]) -> None:
        while not numbers <= {number for word in self.told if isinstance(word, BlobGot) for number in word.numbers}:
            await self.hears(BlobGot)

    @property
    def from_members(self) -> int:
        return self.from_members_of(BLOB)

    def from_members_of(self, blob: Blob) -> int:
        told = [word for word in self.told if isinstance(word, BlobGot) and word.blob == blob.name]
        return max((word.from_members for word in told), default=0)

    async def has_the_bundle(self) -> None:
        await self.names_the_bundle()
        await self.gives(*EVERYTHING)
        await self.hears(BlobReceived)

    async def names(self, content: Bundle) -> None:
        """Offer a further blob."""
        await self.session.send(BlobManifest(blob=content.blob.name), content.blob.encoded)

    async def gives_of(self, content: Bundle, *numbers: int) -> None:
        for number in numbers:
            await self.session.send(BlobPiece(blob=content.blob.name, number=number), content.piece(number), bulk=True)

    async def brings(self, content: Bundle) -> None:
        """All of it from here."""
        await self.names(content)
        await self.gives_of(content, *range(content.blob.count))
        assert (await self.hears(BlobReceived)).blob == content.blob.name

    def shown(self) -> dict[str, bytes]:
        """What the worker sees in /blobs."""
        return {path.name: path.read_bytes() for path in self.worker.blobs.iterdir()}

    def file(self) -> bytes:
        return (self.worker.folder / "data" / "x").read_bytes()


@pytest.fixture
def lease_of(make_peer):
    async def lease(peer, **settings) -> Client:
        session = await peer.dial()
        await session.send(make_peer.take_lease(peer, **settings))
        await session.receive(LeaseTaken)
        worker = await peer.workers.get()
        assert isinstance((await worker.hear())[0], Start)
        return Client(peer, session, worker)

    return lease


async def meet(*clients: Client, epoch: int = 0) -> None:
    """Each knows the others from now on, by their order here."""
    members = [client.peer.member(rank) for rank, client in enumerate(clients)]
    for rank, client in enumerate(clients):
        await client.session.send(SetRoster(epoch=epoch, rank=rank, members=members))
        await client.hears(RosterSet)
