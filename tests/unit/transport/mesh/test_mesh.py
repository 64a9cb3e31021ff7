"""Links among members: one a pair, in order, without loss or doubling, and an honest word when one is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from dataclasses import replace
from unittest import mock

import pytest

from axonp2p.errors import MalformedMessage, MessageTooLarge, PeerMisbehaved, Refused, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.mesh import link
from axonp2p.transport.mesh.link import MeshMember
from axonp2p.transport.mesh.mesh import Mesh, MeshPatience
from axonp2p.transport.messages import JoinMesh, MeshJoined, Refusal
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import Message
from axonp2p.wire.frame import PAYLOAD_LIMIT

RESERVATION = "00000000-0000-4000-8000-000000000000"
QUICK = MeshPatience(first_link=1.0, after_cut=1.0, steady=0.2, joining=2, pause=0.01)


class Nod(Message, tag=True, frozen=True):
    """A word beside what is carried."""


class Wink(Message, tag=True, frozen=True):
    """Another one."""


HERE = DialPolicy(lambda: ["127.0.0.1"], tells_why=False)


class Member:
    """A daemon as far as a mesh is concerned: a listener, a mesh, and a notebook of what it heard."""

    def __init__(self, rank: int, patience: MeshPatience) -> None:
        self.rank = rank
        self.key = PrivateKey.generate()
        self.heard: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self.losses: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
        self.sessions: list[Session] = []
        self.opened_sessions: list[Session] = []
        self.gone: Counter[int] = Counter()
        self.asked_for: list[str] = []
        self.dialled = asyncio.Event()
        self.moved = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self.mesh = self.meshed(patience)

    def meshed(self, patience: MeshPatience = QUICK, policy: DialPolicy = HERE) -> Mesh:
        return Mesh(self.key, RESERVATION, self.deliver, self.lost, self, patience=patience, policy=policy)

    async def deliver(self, rank: int, payload: memoryview) -> None:
        await self.open.wait()
        self.heard.put_nowait((rank, bytes(payload)))

    async def lost(self, rank: int, reason: str) -> None:
        self.losses.put_nowait((rank, reason))

    async def turn(self, link: Hashable, count: int) -> None:
        """Its line is free."""

    async def word(self, count: int) -> None:
        """Its line is free."""

    def went(self, rank: int, count: int) -> None:
        self.gone[rank] += count
        self.moved.set()

    def opened(self, session: Session) -> None:
        self.opened_sessions.append(session)

    def lane_opened(self, lane) -> None:
        """It counts nothing."""

    def hold_back(self, count: int) -> float:
        return 0.0

    async def serve(self, session: Session) -> None:
        self.sessions.append(session)
        self.dialled.set()
        join, _ = await session.receive(JoinMesh)
        self.asked_for.append(join.reservation)
        if not self.mesh.is_member(session.peer):
            raise Refused("not on the roster")
        await self.mesh.adopt(session)

    async def hears(self, count: int) -> list[tuple[int, bytes]]:
        return [await self.heard.get() for _ in range(count)]


class Job:
    """A few members that know of each other."""

    def __init__(self, hosts, patience: MeshPatience) -> None:
        self._hosts = hosts
        self._patience = patience
        self.members: list[Member] = []
        self.roster: list[MeshMember] = []
        self.hosts = []

    async def grow(self, count: int) -> None:
        for rank in range(len(self.members), len(self.members) + count):
            member = Member(rank, self._patience)
            host = await self._hosts.start(member.serve, key=member.key)
            self.members.append(member)
            self.hosts.append(host)
            self.roster.append(
                MeshMember(rank, member.key.peer_id, f"peer-{rank}", [host.host_port], host.certificate.fingerprint)
            )

    def tell_all(self) -> None:
        for member in self.members:
            member.mesh.set_roster(member.rank, self.roster)

    async def close(self) -> None:
        await asyncio.gather(*(member.mesh.close() for member in self.members))


@pytest.fixture
async def job(hosts) -> AsyncIterator[Job]:
    job = Job(hosts, QUICK)
    yield job
    await job.close()


async def test_everybody_reaches_everybody_in_order_over_one_link_a_pair(job: Job) -> None:
    await job.grow(4)
    job.tell_all()
    for number in range(20):
        for sender in job.members:
            for other in job.members:
                if other is not sender:
                    sender.mesh.post(other.rank, b"%d" % number)
    for member in job.members:
        heard = await member.hears(60)
        for rank in {0, 1, 2, 3} - {member.rank}:
            assert [payload for sender, payload in heard if sender == rank] == [b"%d" % n for n in range(20)]
        assert len(member.sessions) == member.rank, "each is dialled by every lower rank, once"


async def test_the_higher_rank_may_speak_first(job: Job) -> None:
    await job.grow(2)
    job.tell_all()
    job.members[1].mesh.post(0, b"hello")
    assert await job.members[0].hears(1) == [(1, b"hello")]


async def test_a_roster_that_comes_late_is_waited_for(job: Job) -> None:
    await job.grow(2)
    first, second = job.members
    first.mesh.set_roster(0, job.roster)
    first.mesh.post(1, b"early")
    await second.dialled.wait()
    await second.sessions[0].ended.wait()  # it was dialled, and has refused
    second.mesh.set_roster(1, job.roster)
    assert await second.hears(1) == [(0, b"early")]


@pytest.mark.parametrize("cutter", [0, 1])
async def test_a_cut_link_is_dialled_again_and_nothing_is_lost_or_doubled(job: Job, cutter: int) -> None:
    await job.grow(2)
    job.tell_all()
    both = {member.rank: member for member in job.members}
    part = bytes(100_000)

    async def talk(member: Member) -> None:
        for number in range(200):
            member.mesh.post(1 - member.rank, b"%03d" % number + part)

    async def listen(member: Member) -> list[bytes]:
        numbers = []
        for number in range(200):
            numbers.append((await member.heard.get())[1][:3])
            if number == 70 and member.rank == cutter:
                await both[1].sessions[-1].close()
        return numbers

    _, _, *heard = await asyncio.gather(*(talk(m) for m in job.members), *(listen(m) for m in job.members))
    assert heard == [[b"%03d" % number for number in range(200)]] * 2
    assert len(both[1].sessions) == 2
    assert both[0].losses.empty()
    assert both[1].losses.empty()


async def test_what_goes_again_after_a_cut_is_counted_once(job: Job) -> None:
    await job.grow(2)
    job.tell_all()
    first, second = job.members
    first.mesh.post(1, b"hello")
    await second.hears(1)
    second.open.clear()
    first.moved.clear()
    for _ in range(8):
        first.mesh.post(1, bytes(PAYLOAD_LIMIT))
    await first.moved.wait()
    await second.sessions[0].close()
    second.open.set()
    assert len(await second.hears(8)) == 8
    assert first.gone == {1: 8 * PAYLOAD_LIMIT + len(b"hello")}
    assert len(first.opened_sessions) == len(second.opened_sessions) == 2


async def test_a_member_that_is_gone_is_lost_for_both_kinds_of_waiting(job: Job, hosts) -> None:
    await job.grow(3)
    job.tell_all()
    lowest, middle, highest = job.members
    lowest.mesh.post(1, b"a")
    highest.mesh.post(1, b"b")
    await middle.hears(2)
    await asyncio.gather(middle.mesh.close(), job.hosts[1].listener.stop())
    rank, reason = await lowest.losses.get()
    assert rank == 1
    assert reason.endswith("(not reached)")
    rank, reason = await highest.losses.get()
    assert rank == 1
    assert "did not connect" in reason
    with pytest.raises(Unreachable, match="peer-1 is lost"):
        lowest.mesh.post(1, b"more")
    lowest.mesh.post(2, b"the others go on")
    assert await highest.hears(1) == [(0, b"the others go on")]


@pytest.mark.slow
async def test_a_member_that_never_answers_is_lost_only_once_it_is_needed(job: Job) -> None:
    await job.grow(2)
    await job.hosts[1].listener.stop()
    first = job.members[0]
    first.mesh.set_roster(0, job.roster)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(first.losses.get(), 2 * QUICK.first_link)
    first.mesh.post(1, b"now")
    rank, reason = await first.losses.get()
    assert rank == 1
    assert reason.endswith("(not reached)")


async def test_who_left_the_roster_is_cut_off_without_being_called_lost(job: Job) -> None:
    await job.grow(3)
    job.tell_all()
    first, second, third = job.members
    first.mesh.post(1, b"a")
    await second.hears(1)
    first.mesh.set_roster(0, [job.roster[0], job.roster[2]])
    assert not first.mesh.is_member(second.key.peer_id)
    assert first.mesh.is_member(third.key.peer_id)
    with pytest.raises(Unreachable, match="rank 1 is not in the job"):
        first.mesh.post(1, b"b")
    assert (await second.losses.get())[0] == 0
    assert first.losses.empty()


async def test_a_slow_member_holds_nobody_else_back(job: Job) -> None:
    await job.grow(3)
    job.tell_all()
    first, slow, quick = job.members
    slow.open.clear()
    part = bytes(PAYLOAD_LIMIT)

    for _ in range(64):
        first.mesh.post(1, part)
    for number in range(50):
        first.mesh.post(2, b"%d" % number)
    assert len(await quick.hears(50)) == 50
    assert first.gone[1] < 8 * PAYLOAD_LIMIT, "what the slow one does not take waits in its own queue"
    slow.open.set()
    assert len(await slow.hears(64)) == 64
    assert first.gone[1] == 64 * PAYLOAD_LIMIT


async def test_only_a_lower_member_may_open_a_link(job: Job) -> None:
    await job.grow(2)
    job.members[0].mesh.set_roster(0, job.roster)
    stranger = await job.hosts[0].dial()
    await stranger.send(JoinMesh(reservation=RESERVATION))
    with pytest.raises(Refused, match="not on the roster"):
        await stranger.receive(MeshJoined)
    higher = await job.hosts[0].dial(job.members[1].key)
    await higher.send(JoinMesh(reservation=RESERVATION))
    answer, _ = await higher.receive(MeshJoined | Refusal)
    assert answer.message == "the lower rank opens a link"
    await asyncio.gather(stranger.close(), higher.close())


async def test_a_member_that_forgot_everything_is_lost(job: Job) -> None:
    await job.grow(2)
    job.tell_all()
    first, second = job.members
    for number in range(30):
        first.mesh.post(1, bytes(PAYLOAD_LIMIT // 2) + b"%d" % number)
    await second.hears(30)
    again = second.meshed()
    again.set_roster(1, job.roster)
    forgotten, second.mesh = second.mesh, again
    await forgotten.close()
    rank, reason = await first.losses.get()
    assert rank == 1
    assert "says that it has had 0 messages" in reason
    await again.close()


async def test_a_message_over_the_limit_is_refused_at_the_sender(job: Job) -> None:
    await job.grow(2)
    job.tell_all()
    with pytest.raises(MessageTooLarge):
        job.members[0].mesh.post(1, bytes(PAYLOAD_LIMIT + 1))


async def test_a_failing_worker_ends_the_link(job: Job) -> None:
    await job.grow(2)

    async def fail(rank: int, payload: memoryview) -> None:
        raise PeerMisbehaved("the worker has ended")

    second = job.members[1]
    second.mesh = Mesh(second.key, RESERVATION, fail, second.lost, second, patience=QUICK, policy=HERE)
    job.tell_all()
    job.members[0].mesh.post(1, b"a")
    assert (await job.members[0].losses.get())[0] == 1
    assert (await second.losses.get())[0] == 0


async def test_a_member_hired_anew_starts_from_nothing_and_is_asked_for_by_its_own_reservation(job: Job, hosts) -> None:
    await job.grow(2)
    job.tell_all()
    first, second = job.members
    first.mesh.post(1, b"old")
    await second.hears(1)
    await second.mesh.close()
    await first.losses.get()
    hired = "11111111-1111-4111-8111-111111111111"
    job.roster[1] = replace(job.roster[1], reservation=hired)
    second.mesh = Mesh(second.key, hired, second.deliver, second.lost, second, patience=QUICK, policy=HERE)
    job.tell_all()
    first.mesh.post(1, b"new")
    assert await second.hears(1) == [(0, b"new")]
    assert second.asked_for[0] == RESERVATION
    assert second.asked_for[-1] == hired


class Aside:
    """Who has words of its own on the links of a member: notes all that it is told."""

    kinds = Nod | Wink

    def __init__(self, member: Member) -> None:
        self.news: asyncio.Queue[tuple[object, ...]] = asyncio.Queue()
        member.mesh.beside = self

    def up(self, rank: int) -> None:
        self.news.put_nowait(("up", rank))

    def down(self, rank: int) -> None:
        self.news.put_nowait(("down", rank))

    async def heard(self, rank: int, message: Message, payload: memoryview) -> None:
        self.news.put_nowait((rank, message, bytes(payload)))


async def test_words_beside_travel_on_the_same_links_and_cost_no_message(job: Job) -> None:
    await job.grow(2)
    first, second = job.members
    asides = [Aside(first), Aside(second)]
    with pytest.raises(Unreachable, match="not in the job"):
        await first.mesh.say(1, Nod())
    job.tell_all()
    assert [await aside.news.get() for aside in asides] == [("up", 1), ("up", 0)]

    async def chat(member: Member) -> None:
        for number in range(100):
            member.mesh.post(1 - member.rank, b"%03d" % number + bytes(50_000))
            with contextlib.suppress(Unreachable):  # nobody is told again what was said into a cut
                await member.mesh.say(1 - member.rank, Wink(), b"x" * 50_000, bulk=True)
                await member.mesh.say(1 - member.rank, Nod())

    async def listen(member: Member) -> list[bytes]:
        numbers = []
        for number in range(100):
            numbers.append((await member.heard.get())[1][:3])
            if number == 30 and member is second:
                await second.sessions[-1].close()
        return numbers

    _, _, *heard = await asyncio.gather(*(chat(m) for m in job.members), *(listen(m) for m in job.members))
    assert heard == [[b"%03d" % number for number in range(100)]] * 2
    await first.mesh.say(1, Nod(), b"the last word")
    for aside, said in ((asides[1], (0, Nod(), b"the last word")),):
        told = []
        while not told or told[-1] != said:
            told.append(await aside.news.get())
        assert [word for word in told if word[0] in ("up", "down")] == [("down", 0), ("up", 0)]
        assert (0, Wink(), b"x" * 50_000) in told


async def test_a_word_that_nobody_agreed_on_ends_the_link(job: Job) -> None:
    await job.grow(2)
    job.tell_all()
    first, second = job.members
    first.mesh.post(1, b"hello")
    await second.hears(1)
    await first.opened_sessions[-1].send(Nod())
    await second.sessions[-1].ended.wait()
    assert isinstance(second.sessions[-1].failure, MalformedMessage | Unreachable)


async def test_a_member_whose_address_may_not_be_dialled_is_not(job: Job) -> None:
    await job.grow(2)
    first, second = job.members
    known_publicly = DialPolicy(lambda: ["8.8.8.8"], tells_why=False)
    first.mesh = first.meshed(policy=known_publicly)
    job.tell_all()
    first.mesh.post(1, b"a word")
    assert await first.losses.get() == (1, "peer peer-1 cannot be reached (not reached)")
    assert second.sessions == []


async def test_a_member_to_which_there_is_nothing_to_carry_is_not_dialled_for_ever(job: Job) -> None:
    await job.grow(2)
    first = job.members[0]
    rests_at_once = replace(QUICK, unasked=0)
    first.mesh = first.meshed(rests_at_once)
    with mock.patch("axonp2p.transport.mesh.mesh.dial", side_effect=Unreachable("nobody there")) as dialled:
        first.mesh.set_roster(0, job.roster)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not dialled.called
        first.mesh.post(1, b"a word")
        assert await first.losses.get() == (1, "nobody there")
        assert dialled.called


async def test_words_beside_without_end_are_dealt_with_at_a_pace(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "WORDS_AT_ONCE", 5.0)
    monkeypatch.setattr(link, "WORDS_A_SECOND", 0.1)
    await job.grow(2)
    first, second = job.members
    asides = [Aside(first), Aside(second)]
    job.tell_all()
    assert [await aside.news.get() for aside in asides] == [("up", 1), ("up", 0)]
    for _ in range(20):
        await first.mesh.say(1, Nod())
    await asyncio.sleep(0.3)
    assert asides[1].news.qsize() == 5


async def test_pauses_between_tries_grow_up_to_the_longest(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    await job.grow(2)
    first, pauses, sleep = job.members[0], list[float](), asyncio.sleep

    async def passes(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    brief = replace(QUICK, first_link=0.05, longest_pause=0.1, dials_together=1e9)
    first.mesh = first.meshed(brief)
    with mock.patch("axonp2p.transport.mesh.mesh.dial", side_effect=Unreachable("nobody there")):
        first.mesh.set_roster(0, job.roster)
        first.mesh.post(1, b"a word")
        monkeypatch.setattr(asyncio, "sleep", passes)
        await first.losses.get()
    assert pauses[:6] == [0.01, 0.02, 0.04, 0.08, 0.1, 0.1]
    assert max(pauses) == 0.1


async def test_so_many_members_are_dialled_at_once(job: Job) -> None:
    await job.grow(6)
    first, dialled = job.members[0], 0

    async def nobody_answers(*_: object, **__: object) -> None:
        nonlocal dialled
        dialled += 1
        await asyncio.Event().wait()

    two = replace(QUICK, dials_at_once=2)
    first.mesh = first.meshed(two)
    with mock.patch("axonp2p.transport.mesh.mesh.dial", nobody_answers):
        first.mesh.set_roster(0, job.roster)
        for _ in range(20):
            await asyncio.sleep(0)
        assert dialled == 2
        await first.mesh.close()


async def test_rosters_that_begin_all_links_anew_bring_no_more_dials_than_their_pace_allows(job: Job) -> None:
    await job.grow(4)
    first, dialled = job.members[0], 0

    async def nobody_there(*_: object, **__: object) -> None:
        nonlocal dialled
        dialled += 1
        raise Unreachable("nobody there")

    paced = replace(QUICK, dials_together=10.0, dials_a_second=0.001)
    first.mesh = first.meshed(paced)
    with mock.patch("axonp2p.transport.mesh.mesh.dial", nobody_there):
        for number in range(20):
            first.mesh.set_roster(0, [replace(member, reservation=f"{number}") for member in job.roster])
            for _ in range(5):
                await asyncio.sleep(0)
        assert dialled == 10
        await first.mesh.close()
