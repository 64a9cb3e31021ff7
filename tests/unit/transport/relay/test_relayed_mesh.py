"""Links among members that nobody can dial: through relays, over to another relay, and over to a direct way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.mesh.link import MeshMember
from axonp2p.transport.mesh.mesh import Mesh, MeshPatience
from axonp2p.transport.messages import JoinMesh
from axonp2p.transport.sessions.session import Session

RESERVATION = "3f0a8c1e-5f0e-4f2a-9a53-0f4a5b6c7d8e"
HERE = DialPolicy(lambda: ["127.0.0.1"], tells_why=False)


class OpenRoad:
    """A road without limits, which counts the links that were opened."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.direct = asyncio.Event()

    async def turn(self, link, count) -> None:
        pass

    def went(self, rank, count) -> None:
        pass

    def opened(self, session) -> None:
        self.sessions.append(session)
        if not session.relay:
            self.direct.set()

    def lane_opened(self, lane) -> None:
        """It counts nothing."""

    def hold_back(self, count: int) -> float:
        return 0.0


class Pair:
    """Two members behind routers; rank 0 dials."""

    def __init__(self, relays, hosts, patience: MeshPatience) -> None:
        self._relays = relays
        self._patience = patience
        self.meshes: list[Mesh] = []
        self.roads = [OpenRoad(), OpenRoad()]
        self.heard: list[asyncio.Queue[bytes]] = [asyncio.Queue(), asyncio.Queue()]
        self.lost: list[str] = []

    async def build(self, *at) -> None:
        self.members = []
        self.hidden = []
        for rank in range(2):
            hidden = await self._relays.hidden(self._serving(rank), *at)
            self.hidden.append(hidden)
            place = hidden.at(*at)
            self.members.append(
                MeshMember(
                    rank,
                    place.peer,
                    f"peer-{rank}",
                    list(place.addresses),
                    place.certificate,
                    RESERVATION,
                    place.relays,
                    dialable=False,
                )
            )
            self.meshes.append(self._mesh(rank, hidden.host.key))
        self.tell()

    def tell(self) -> None:
        for rank, mesh in enumerate(self.meshes):
            mesh.set_roster(rank, self.members)

    def _mesh(self, rank: int, key) -> Mesh:
        async def deliver(other: int, payload: memoryview) -> None:
            self.heard[rank].put_nowait(bytes(payload))

        async def lost(other: int, reason: str) -> None:
            self.lost.append(reason)

        return Mesh(key, RESERVATION, deliver, lost, self.roads[rank], patience=self._patience, policy=HERE)

    def _serving(self, rank: int):
        async def serve(session: Session) -> None:
            await session.receive(JoinMesh)
            await self.meshes[rank].adopt(session)

        return serve

    async def hears(self, rank: int, count: int) -> list[bytes]:
        async with asyncio.timeout(20):
            return [await self.heard[rank].get() for _ in range(count)]

    async def close(self) -> None:
        await asyncio.gather(*(mesh.close() for mesh in self.meshes))


@pytest.fixture
async def pair(relays, hosts) -> AsyncIterator[Pair]:
    pair = Pair(relays, hosts, MeshPatience(steady=0.0, direct_again=lambda tried: 0.1))
    yield pair
    await pair.close()


async def test_both_ways_through_a_relay(pair: Pair, relays) -> None:
    await pair.build(await relays.relay())
    for number in range(30):
        pair.meshes[0].post(1, b"down %d" % number)
        pair.meshes[1].post(0, b"up %d" % number)
    assert await pair.hears(1, 30) == [b"down %d" % number for number in range(30)]
    assert await pair.hears(0, 30) == [b"up %d" % number for number in range(30)]
    assert pair.roads[0].sessions[0].relay


async def test_a_relay_that_dies_is_replaced_and_no_message_lost_or_doubled(pair: Pair, relays) -> None:
    both = [await relays.relay(), await relays.relay()]
    first, second = sorted(both, key=lambda relay: str(relay.address))  # in the order in which they are tried
    await pair.build(first, second)
    pair.meshes[0].post(1, b"before")
    assert await pair.hears(1, 1) == [b"before"]
    for number in range(40):
        pair.meshes[0].post(1, bytes([number]) * 100_000)
        pair.meshes[1].post(0, bytes([number]) * 100_000)
    await first.stop()
    assert await pair.hears(1, 40) == [bytes([number]) * 100_000 for number in range(40)]
    assert await pair.hears(0, 40) == [bytes([number]) * 100_000 for number in range(40)]
    assert pair.roads[0].sessions[-1].relay == f"relay {second.address.host_port}"
    assert pair.lost == []


async def test_a_link_moves_to_a_direct_way_once_there_is_one(pair: Pair, relays) -> None:
    await pair.build(await relays.relay())
    pair.meshes[0].post(1, b"relayed")
    assert await pair.hears(1, 1) == [b"relayed"]
    for number in range(40):
        pair.meshes[0].post(1, bytes([number]) * 100_000)
        pair.meshes[1].post(0, bytes([number]) * 100_000)
    # A router has learnt to let callers in; the row says the same as before.
    pair.members = [
        replace(member, addresses=[hidden.host.host_port])
        for member, hidden in zip(pair.members, pair.hidden, strict=True)
    ]
    pair.tell()
    async with asyncio.timeout(10):
        await pair.roads[0].direct.wait()
    pair.meshes[0].post(1, b"direct")
    assert await pair.hears(1, 41) == [*(bytes([number]) * 100_000 for number in range(40)), b"direct"]
    assert await pair.hears(0, 40) == [bytes([number]) * 100_000 for number in range(40)]
    assert len(pair.roads[0].sessions) == 2
    assert pair.lost == []
