"""Bulk on lanes: in order, without loss or doubling, whatever becomes of the lane, and as slow as the owner wishes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Hashable

import pytest

from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.flow.window import BULK_BYTES
from axonp2p.transport.lanes import lane as lane_room
from axonp2p.transport.lanes import opening, plan
from axonp2p.transport.lanes.lane import BulkLane, LaneReceiver, LaneSender
from axonp2p.transport.lanes.opening import BulkLanes
from axonp2p.transport.lanes.plan import WORTH_BYTES
from axonp2p.transport.mesh import link_lanes
from axonp2p.transport.mesh.link import MeshMember
from axonp2p.transport.mesh.mesh import Mesh, MeshPatience
from axonp2p.transport.messages import (
    AskLane,
    Carry,
    JoinMesh,
    LaneBegins,
    LaneEnded,
    LaneOffer,
    LaneTook,
    LaneWord,
    MeshJoined,
)
from axonp2p.transport.sessions.session import Session
from tests.unit.transport.conftest import Host

RESERVATION = "00000000-0000-4000-8000-000000000000"
HERE = DialPolicy(lambda: ["127.0.0.1"], tells_why=False)
PART = 256 * 1024


class Member:
    """A daemon as far as a mesh is concerned, with lanes."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.key = PrivateKey.generate()
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()
        self.on_lanes: asyncio.Queue[BulkLane] = asyncio.Queue()
        self.sessions: list[Session] = []
        self.turns: list[int] = []
        self.took_turn = asyncio.Event()
        self.held_back: list[int] = []
        self.holds_back_s = 0.0
        self.may_go, self.open = asyncio.Event(), asyncio.Event()
        self.may_go.set()
        self.open.set()

    async def listen(self, hosts) -> MeshMember:
        host = await hosts.start(self.serve, key=self.key)
        self.lanes = BulkLanes(host.certificate)
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

    def lane_opened(self, lane: BulkLane) -> None:
        self.on_lanes.put_nowait(lane)

    def hold_back(self, count: int) -> float:
        self.held_back.append(count)
        return self.holds_back_s

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
    both = await lane_between(sender, receiver)
    send(sender, receiver, *range(8, 40))
    await receiver.hears(*range(8, 40))
    assert not any(end.over for end in both)
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
    both = await lane_between(sender, receiver)
    receiver.open.clear()
    send(sender, receiver, *range(8, 60))
    while len(sender.turns) < 12:
        sender.took_turn.clear()
        await sender.took_turn.wait()
    both[end == "receiver"].cut()
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
    both = await lane_between(one, other)
    for end in both:
        await ends(end)
    send(one, other, *range(8, 16))
    await other.hears(*range(8, 16))


async def test_a_lane_ends_with_its_session_and_what_was_under_way_comes_on_the_next(pair):
    one, other = pair
    send(one, other, *range(8))
    await other.hears(*range(8))
    both = await lane_between(one, other)
    other.open.clear()
    send(one, other, *range(8, 40))
    await one.sessions[0].close()
    other.open.set()
    await other.hears(*range(8, 40))
    for end in both:
        await ends(end)
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


@pytest.mark.parametrize("up", [True, False])
async def test_without_room_for_lanes_all_goes_on_the_session(pair, up, monkeypatch):
    monkeypatch.setattr(opening, "MOST_LANES", 0)
    sender, receiver = pair if up else pair[::-1]
    send(sender, receiver, *range(20))
    await receiver.hears(*range(20))
    assert sender.on_lanes.empty()
    assert not len(sender.lanes)
    assert not len(receiver.lanes)


async def test_the_owners_limit_holds_back_what_comes_on_a_lane(pair):
    one, other = pair
    send(one, other, *range(8))
    await other.hears(*range(8))
    await lane_between(one, other)
    other.holds_back_s = 3600.0
    send(one, other, *range(8, 40))
    await other.hears(8)
    while len(one.turns) < 10:
        one.took_turn.clear()
        await one.took_turn.wait()
    assert other.heard.empty()
    assert len(one.turns) <= 8 + BULK_BYTES // PART + 4


async def test_a_receiver_that_stands_still_holds_up_its_sender_and_stays_a_member(pair):
    one, other = pair
    send(one, other, *range(8))
    await other.hears(*range(8))
    await lane_between(one, other)
    other.open.clear()
    send(one, other, *range(8, 300))
    while len(one.turns) < 12:
        one.took_turn.clear()
        await one.took_turn.wait()
    assert one.mesh._links[1]._outbox.kept_bytes <= BULK_BYTES + PART
    for session in one.sessions:  # what its worker does not take lies in the kernel, and words pass
        await session.send(LaneTook(received=0))
    assert len(one.turns) <= 8 + BULK_BYTES // PART + 8
    other.open.set()
    await other.hears(*range(8, 300))
    assert len(other.sessions) == 1


class Stranger:
    """A member that keeps to the session and says what it likes about lanes."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def hears(self, kind):
        while True:
            word, _ = await self.session.receive(LaneWord | Carry)
            if isinstance(word, kind):
                return word


@pytest.fixture
async def hostile(hosts) -> AsyncIterator[tuple[Member, Stranger, Host]]:
    """An honest member of rank 1, and one of rank 0 that has dialled it and joined its mesh."""
    honest, key = Member(1), PrivateKey.generate()
    roster = [MeshMember(0, key.peer_id, "peer-0", [], b"\0" * 32), await honest.listen(hosts)]
    honest.mesh.set_roster(1, roster)
    (host,) = hosts._started
    session = await host.dial(key)
    await session.send(JoinMesh(reservation=RESERVATION))
    await session.receive(MeshJoined)
    await session.send(MeshJoined(received=0))
    yield honest, Stranger(session), host
    await session.close()
    await honest.mesh.close()


async def lane_to(host: Host, token: bytes) -> LaneSender | None:
    """A lane to it, by that token; None where it is not opened."""
    lanes, lane = BulkLanes(host.certificate), LaneSender()
    lanes.dial(lane, PinnedAddress("127.0.0.1", host.listener.port, host.certificate.fingerprint), token)
    return lane if await lane.opened else None


async def ends(lane: BulkLane) -> None:
    while not lane.over:
        lane._news.clear()
        await lane._news.wait()


async def test_a_token_opens_one_lane_and_another_none(hostile):
    honest, stranger, host = hostile
    assert await lane_to(host, bytes(32)) is None  # nothing was offered: not even TLS is answered
    await stranger.session.send(AskLane())
    offer = await stranger.hears(LaneOffer)
    assert await lane_to(host, bytes(32)) is None
    lane = await lane_to(host, offer.token)
    assert lane is not None
    assert await lane_to(host, offer.token) is None
    await stranger.session.send(LaneBegins(token=offer.token), bulk=True)
    assert await lane.send(part(5))
    await honest.hears(5)
    assert not stranger.session.closed


async def test_the_lane_of_a_token_that_was_replaced_is_not_opened(hostile):
    _, stranger, host = hostile
    await stranger.session.send(AskLane())
    first = await stranger.hears(LaneOffer)
    await stranger.session.send(AskLane())
    second = await stranger.hears(LaneOffer)
    assert await lane_to(host, first.token) is None
    assert await lane_to(host, second.token) is not None


async def test_a_lane_that_begins_and_is_not_there_has_ended(hostile):
    honest, stranger, _ = hostile
    await stranger.session.send(LaneBegins(token=bytes(32)), bulk=True)
    assert await stranger.hears(LaneEnded) == LaneEnded(received=0)
    await stranger.session.send(Carry(), part(3), bulk=True)
    await honest.hears(3)


@pytest.mark.parametrize("head", [b"\0\0\0\0", b"\0\x10\0\1"])
async def test_a_part_that_is_empty_or_too_long_ends_the_session(hostile, head, monkeypatch):
    honest, stranger, host = hostile
    await stranger.session.send(AskLane())
    offer = await stranger.hears(LaneOffer)
    lane = await lane_to(host, offer.token)
    assert lane is not None
    await stranger.session.send(LaneBegins(token=offer.token), bulk=True)
    monkeypatch.setattr(lane_room, "write_part", lambda line, raw: line.sendall(raw))
    assert await lane.send(head)
    await stranger.session.ended.wait()
    assert honest.heard.empty()
    lane.cut()
    await ends(lane)


async def test_half_a_part_is_nobodys_and_the_rest_comes_on_the_session(hostile):
    honest, stranger, host = hostile
    await stranger.session.send(AskLane())
    offer = await stranger.hears(LaneOffer)
    lane = await lane_to(host, offer.token)
    assert lane is not None
    await stranger.session.send(LaneBegins(token=offer.token), bulk=True)
    assert await lane.send(part(1))
    await honest.hears(1)
    lane.cut()
    assert await stranger.hears(LaneEnded) == LaneEnded(received=1)
    await stranger.session.send(Carry(), part(2), bulk=True)
    await honest.hears(2)


async def test_bulk_on_the_session_while_a_lane_brings_it_ends_the_session(hostile):
    honest, stranger, host = hostile
    await stranger.session.send(AskLane())
    offer = await stranger.hears(LaneOffer)
    assert await lane_to(host, offer.token) is not None
    await stranger.session.send(LaneBegins(token=offer.token), bulk=True)
    await stranger.session.send(Carry(), part(1), bulk=True)
    await stranger.session.ended.wait()
    assert honest.heard.empty()


async def test_the_end_of_no_lane_ends_the_session(hostile):
    _, stranger, _ = hostile
    await stranger.session.send(LaneEnded(received=0))
    await stranger.session.ended.wait()


async def test_a_lane_that_was_opened_and_never_begins_ends_with_the_session(hostile):
    honest, stranger, host = hostile
    await stranger.session.send(AskLane())
    offer = await stranger.hears(LaneOffer)
    lane = await lane_to(host, offer.token)
    assert lane is not None
    assert len(honest.lanes) == 1
    await stranger.session.close()
    await asyncio.to_thread(until_none, honest.lanes)
    lane.cut()
    await ends(lane)


def until_none(lanes: BulkLanes) -> None:
    while len(lanes):
        os.sched_yield()
