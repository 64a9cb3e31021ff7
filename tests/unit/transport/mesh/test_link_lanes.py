"""Bulk on lanes: in order, without loss or doubling, whatever becomes of the lane, and as slow as the owner wishes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable

import pytest

from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.lanes import plan
from axonp2p.transport.lanes.lane import Lane, LaneReceiver, LaneSender
from axonp2p.transport.lanes.opening import Lanes
from axonp2p.transport.lanes.plan import WORTH_BYTES
from axonp2p.transport.mesh import link_lanes
from axonp2p.transport.mesh.link import MeshMember
from axonp2p.transport.mesh.mesh import Mesh, MeshPatience
from axonp2p.transport.messages import JoinMesh
from axonp2p.transport.sessions.session import Session

RESERVATION = "00000000-0000-4000-8000-000000000000"
HERE = DialPolicy(lambda: ["127.0.0.1"], tells_why=False)
PART = 256 * 1024


class Member:
    """A daemon as far as a mesh is concerned, with lanes."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.key = PrivateKey.generate()
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()
        self.on_lanes: asyncio.Queue[Lane] = asyncio.Queue()
        self.sessions: list[Session] = []
        self.turns: list[int] = []
        self.took_turn = asyncio.Event()
        self.held_back: list[int] = []
        self.may_go, self.open = asyncio.Event(), asyncio.Event()
        self.may_go.set()
        self.open.set()

    async def listen(self, hosts) -> MeshMember:
        host = await hosts.start(self.serve, key=self.key)
        self.lanes = Lanes(host.certificate)
        host.listener.take_lanes(self.lanes)
        self.mesh = Mesh(
            self.key, RESERVATION, self.deliver, self.lost, self, patience=MeshPatience(), policy=HERE, lanes=self.lanes
        )
        certificate = host.certificate.fingerprint
        return MeshMember(self.rank, self.key.peer_id, f"peer-{self.rank}", [host.host_port], certificate)

    async def deliver(self, rank: int, payload: memoryview) -> None:
        await self.open.wait()
        self.heard.put_nowait(bytes(payload))

    async def lost(self, rank: int, reason: str) -> None:
        raise AssertionError(reason)

    async def turn(self, link: Hashable, count: int) -> None:
        self.turns.append(count)
        self.took_turn.set()
        await self.may_go.wait()

    async def word(self, count: int) -> None:
        """Its line is free."""

    def went(self, rank: int, count: int) -> None:
        """Nobody asks."""

    def opened(self, session: Session) -> None:
        self.sessions.append(session)

    def lane_opened(self, lane: Lane) -> None:
        self.on_lanes.put_nowait(lane)

    def hold_back(self, count: int) -> float:
        self.held_back.append(count)
        return 0.0

    async def serve(self, session: Session) -> None:
        await session.receive(JoinMesh)
        await self.mesh.adopt(session)

    async def hears(self, *numbers: int) -> None:
        """These parts next, in this order."""
        assert [int.from_bytes((await self.heard.get())[:4]) for _ in numbers] == list(numbers)


def part(number: int, size: int = PART) -> bytes:
    return number.to_bytes(4) * (size // 4)


def send(sender: Member, receiver: Member, *numbers: int) -> None:
    for number in numbers:
        sender.mesh.post(receiver.rank, part(number))


@pytest.fixture
async def pair(hosts) -> AsyncIterator[tuple[Member, Member]]:
    """The first one dials."""
    members = [Member(0), Member(1)]
    roster = [await member.listen(hosts) for member in members]
    for member in members:
        member.mesh.set_roster(member.rank, roster)
    yield members[0], members[1]
    await asyncio.gather(*(member.mesh.close() for member in members))


async def lane_between(sender: Member, receiver: Member) -> tuple[LaneSender, LaneReceiver]:
    """Both ends of the lane that the next parts open."""
    ends = [await sender.on_lanes.get(), await receiver.on_lanes.get()]
    assert isinstance(ends[0], LaneSender)
    assert isinstance(ends[1], LaneReceiver)
    return ends[0], ends[1]


@pytest.mark.parametrize("up", [True, False])
async def test_bulk_goes_on_a_lane_whichever_side_dialled(pair, up):
    sender, receiver = pair if up else pair[::-1]
    send(sender, receiver, *range(8))
    await receiver.hears(*range(8))
    ends = await lane_between(sender, receiver)
    send(sender, receiver, *range(8, 40))
    await receiver.hears(*range(8, 40))
    assert not any(end.over for end in ends)
    on_session = sum(session.received_bytes for session in receiver.sessions)
    assert on_session < 20 * PART
    assert receiver.held_back
    assert len(sender.turns) == 40


async def test_both_directions_have_a_lane_of_their_own(pair):
    one, other = pair
    send(one, other, *range(8))
    send(other, one, *range(100, 108))
    await asyncio.gather(other.hears(*range(8)), one.hears(*range(100, 108)))
    lanes = [await member.on_lanes.get() for member in (one, one, other, other)]
    assert sorted(type(lane).__name__ for lane in lanes) == 2 * ["LaneReceiver"] + 2 * ["LaneSender"]
    assert len(one.lanes) == len(other.lanes) == 2


async def test_little_opens_no_lane(pair):
    one, other = pair
    one.mesh.post(1, part(0, WORTH_BYTES - 4))
    await other.hears(0)
    assert one.on_lanes.empty()
    assert not len(one.lanes)


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("end", ["sender", "receiver"])
async def test_a_lane_that_is_cut_in_the_middle_of_parts_loses_and_doubles_nothing(pair, up, end):
    sender, receiver = pair if up else pair[::-1]
    send(sender, receiver, *range(8))
    await receiver.hears(*range(8))
    ends = await lane_between(sender, receiver)
    receiver.open.clear()
    send(sender, receiver, *range(8, 60))
    while len(sender.turns) < 12:
        sender.took_turn.clear()
        await sender.took_turn.wait()
    ends[end == "receiver"].cut()
    receiver.open.set()
    await receiver.hears(*range(8, 60))
    assert receiver.heard.empty()
    assert not any(session.closed for session in receiver.sessions)
    assert len(receiver.sessions) == 1


async def test_after_a_cut_another_lane_is_opened_in_a_while(pair, monkeypatch):
    monkeypatch.setattr(plan, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(link_lanes, "OFFERED_AGAIN_S", 0.0)
    one, other = pair
    send(one, other, *range(8))
    first, _ = await lane_between(one, other)
    first.cut()
    send(one, other, *range(8, 30))
    await other.hears(*range(30))
    second, _ = await lane_between(one, other)
    assert second is not first


async def test_an_idle_lane_is_left_and_frees_its_threads(pair, monkeypatch):
    monkeypatch.setattr(link_lanes, "IDLE_S", 0.01)
    one, other = pair
    send(one, other, *range(8))
    await other.hears(*range(8))
    ends = await lane_between(one, other)
    for end in ends:
        while not end.over:
            await asyncio.wait([asyncio.create_task(end._news.wait())])
    send(one, other, *range(8, 16))
    await other.hears(*range(8, 16))


async def test_a_lane_ends_with_its_session_and_what_was_under_way_comes_on_the_next(pair):
    one, other = pair
    send(one, other, *range(8))
    await other.hears(*range(8))
    ends = await lane_between(one, other)
    other.open.clear()
    send(one, other, *range(8, 40))
    await one.sessions[0].close()
    other.open.set()
    await other.hears(*range(8, 40))
    for end in ends:
        while not end.over:
            await asyncio.wait([asyncio.create_task(end._news.wait())])
    assert other.heard.empty()


async def test_nothing_goes_on_a_lane_before_its_turn(pair):
    one, other = pair
    send(one, other, *range(8))
    await other.hears(*range(8))
    await lane_between(one, other)
    one.may_go.clear()
    one.turns.clear()
    send(one, other, *range(8, 20))
    while not one.turns:
        one.took_turn.clear()
        await one.took_turn.wait()
    assert one.turns == [PART]
    assert other.heard.empty()
    one.may_go.set()
    await other.hears(*range(8, 20))


async def test_a_receiver_that_stands_still_holds_up_its_sender(pair):
    one, other = pair
    send(one, other, *range(8))
    await other.hears(*range(8))
    _, receiving = await lane_between(one, other)
    other.open.clear()
    send(one, other, *range(8, 300))
    async with asyncio.timeout(20):
        while receiving._parts.qsize() < 1:
            await asyncio.sleep(0)
    assert receiving._parts.qsize() <= 2
    assert len(one.turns) < 200
    other.open.set()
    await other.hears(*range(8, 300))
