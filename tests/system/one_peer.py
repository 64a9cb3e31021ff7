"""A tracker, one peer, and a client that speaks to it message by message."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from axonp2p.errors import AxonError, Busy
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.messages import EndLease, LeaseEnded, LeaseTaken, PeerMessage, TakeLease
from axonp2p.peers.capability import Need, as_map
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.reservation.token import Token
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import query
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed
from axonp2p.wire.schema import SCHEMAS
from tests.system.processes import Processes

CLIENT = PrivateKey(b"c" * 32)


class Swarm:
    """A tracker, the peer "otter", and a good token for it."""

    def __init__(self, processes: Processes, home: Path):
        self.processes = processes
        self.home = home
        self.row = asyncio.run(self.find())
        self.token = asyncio.run(self.reserve())

    @property
    def pid(self) -> int:
        return self.processes.process("otter").pid

    def tracker(self) -> HttpCaller:
        return HttpCaller(PinnedAddress.parse(self.processes.tracker), called="the tracker")

    async def rows(self) -> list[Row]:
        async with self.tracker() as tracker:
            return (await query(tracker, as_map(Need()), 10, now=time.time())).rows

    async def find(self) -> Row:
        return next(row for row in await self.rows() if row.name == "otter")

    async def reserve(self, peer: str = "", seconds: int = 600) -> Signed[Token]:
        async with self.tracker() as tracker:
            return await reserve(
                tracker,
                CLIENT,
                [peer or self.row.peer],
                uuid=new_uuid(),
                kinds=["train"],
                seconds=seconds,
                now=time.time(),
            )

    async def dial(self, key: PrivateKey = CLIENT, local_address: str | None = None) -> Session:
        return await dial(key, self.row, called="otter", local_address=local_address)

    async def take(self, token: bytes, key: PrivateKey = CLIENT, local_address: str | None = None) -> Session:
        """The session with a lease on it."""
        session = await self.dial(key, local_address)
        try:
            await session.send(
                TakeLease(schema=SCHEMAS["train"], token=token, job="digits", kind="train", cores=1, memory_mb=1024)
            )
            answer, _ = await session.receive(LeaseTaken)
        except AxonError:
            await session.close()
            raise
        assert answer.cores == 1
        return session

    async def a_good_lease_works(self, *, unless_busy: bool = False) -> bool:
        try:
            session = await self.take(encode(self.token))
        except Busy:
            assert unless_busy
            return False
        await session.send(EndLease())
        while True:
            message, _ = await session.receive(PeerMessage)
            if isinstance(message, LeaseEnded):
                break
        await session.close()
        return True
