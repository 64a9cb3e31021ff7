"""The client's end of a lease, against a peer on a real session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.messages import BlobGot, BlobManifest, BlobPiece
from axonp2p.blobs.pieces import book_of
from axonp2p.client.leasing import lease as lease_module
from axonp2p.client.leasing import owner
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.leasing.lease_sides import Reservation
from axonp2p.client.leasing.take_lease import LeaseRequest, take_lease
from axonp2p.errors import Busy, PeerMisbehaved, Refused, Unreachable
from axonp2p.jobs.messages import (
    EndLease,
    FetchLog,
    FollowLog,
    FromWorker,
    HandBack,
    LeaseEnded,
    LineMeasured,
    LogNews,
    LogPart,
    Member,
    OwnersMessage,
    SetRoster,
    TakeLease,
    WorkerEnded,
    WorkerPaused,
    WorkerResumed,
)
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.transport.messages import refusal_of
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.envelope import sign
from axonp2p.wire.schema import SCHEMAS
from tests.fakes import HERE, key_of
from tests.unit.client.conftest import Daemon, taken

pytestmark = pytest.mark.slow

CLIENT = key_of("client")
WANTED = LeaseRequest(job="digits-1", kind="train", cores=2, memory_mb=512, datasets=("imagenet-tiny",))


class Ear:
    """Remembers what a lease tells."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.gone: list[str] = []
        self.owner: list[OwnersMessage] = []
        self.lines: list[tuple[int, int, int]] = []
        self.refused: list[str] = []
        self.left = asyncio.Event()

    async def worker_said(self, rank: int, payload: memoryview, signature: bytes) -> None:
        self.said.append(bytes(payload))

    def receipt_signed(self, rank: int, receipt: bytes) -> None: ...

    def receipt_refused(self, rank: int, reason: str) -> None:
        self.refused.append(reason)

    async def link_lost(self, rank: int, other: int, reason: str) -> None: ...

    def line_measured(self, rank: int, upload: int, download: int) -> None:
        self.lines.append((rank, upload, download))

    def owner_says(self, rank: int, message: OwnersMessage) -> None:
        self.owner.append(message)

    def peer_gone(self, rank: int, reason: str) -> None:
        self.gone.append(reason)
        self.left.set()


def promise(*peers: str) -> Reservation:
    uuid, tracker = new_uuid(), key_of("tracker")
    token = Token(
        uuid=uuid, issuer=tracker.peer_id, client=CLIENT.peer_id, client_address="127.0.0.1",
        peers=[key_of(name).peer_id for name in peers], kinds=["train"], not_before=0, expires=2**33,
    )  # fmt: skip
    return Reservation(uuid, sign(tracker, token), "tracker lab", "https://lab:7070")


async def lease_from(peer: Any) -> Lease:
    return await take_lease(CLIENT, HERE, peer.row(), promise("otter"), WANTED, name="otter")


def itself(lease: Lease) -> Member:
    """The peer of a lease, as a roster has it."""
    return Member(rank=0, reservation=lease.promise.uuid, row=lease.taken.row)


async def test_a_lease_from_its_token_to_its_end(start_peer: Any) -> None:
    daemon = Daemon(log=b"epoch 1\n")
    lease = await lease_from(await start_peer("otter", daemon))
    (asked,) = daemon.heard
    assert isinstance(asked, TakeLease)
    assert (asked.job, asked.cores, asked.memory_mb) == ("digits-1", 2, 512)
    assert asked.datasets == ["imagenet-tiny"]
    assert asked.schema == SCHEMAS["train"]

    heard: list[Any] = []
    blob = Blob(Manifest(files=[BlobFile(path=name, size=1, blake3=book_of(name.encode()).hashes) for name in "ab"]))
    received = await lease.expect_blob(blob.name, heard.append)
    await lease.give(BlobManifest(blob=blob.name), blob.encoded)
    await lease.give(BlobPiece(blob=blob.name, number=1), b"b", bulk=True)
    await lease.give(BlobPiece(blob=blob.name, number=0), b"a", bulk=True)
    await received
    lease.blobs.arrived(blob.name)
    assert daemon.pieces == {0: b"a", 1: b"b"}
    assert heard[1:] == [BlobGot(blob=blob.name, numbers=[1]), BlobGot(blob=blob.name, numbers=[0])]

    await lease.set_roster(SetRoster(epoch=1, rank=0, members=[itself(lease)]))
    lease.tell_worker(b"prepare")
    await lease.send_to_worker(b"state")
    assert await lease.fetch_log() == b"epoch 1\n"
    assert daemon.heard[-3:-1] == [b"prepare", b"state"]
    assert lease.wire_bytes > 0
    assert lease.gone == ""
    await lease.end()
    assert daemon.ended
    assert lease.hung_up
    await lease.end()


async def test_a_refusal_comes_back_as_its_error(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon(refuse=Busy("every slot is taken")))
    with pytest.raises(Busy, match="peer otter: every slot is taken"):
        await lease_from(peer)


async def test_another_answer_than_yes_or_no_is_misbehaviour(start_peer: Any) -> None:
    async def serve(session: Session) -> None:
        await session.receive(TakeLease)
        await session.send(LeaseEnded())
        await session.ended.wait()

    with pytest.raises(PeerMisbehaved, match="answered TakeLease with LeaseEnded"):
        await lease_from(await start_peer("otter", serve))


async def test_a_peer_that_does_not_sign_goes_on_working(start_peer: Any) -> None:
    ear = Ear()
    lease = await lease_from(await start_peer("otter", Daemon()))
    lease.attach(0, ear)
    lease.ask_signature(b"a receipt")
    await lease.set_roster(SetRoster(epoch=1, rank=0, members=[itself(lease)]))
    assert (lease.gone, ear.gone, ear.refused) == ("", [], ["no room on the disk"])
    await lease.end()


async def test_the_worker_is_heard_and_its_end_told_once(start_peer: Any) -> None:
    daemon, ear = Daemon(), Ear()
    lease = await lease_from(await start_peer("otter", daemon))
    assert daemon.session
    lease.attach(3, ear)
    await daemon.session.send(FromWorker(), b"prepared")
    await daemon.session.send(WorkerEnded(reason="killed", limit="memory", log_tail="out of memory"))
    await daemon.session.send(FromWorker(), b"from beyond")
    await ear.left.wait()
    assert await lease.fetch_log() == b"hello\n"  # the lease goes on, and the log can still be had
    await lease.end()
    assert ear.said == [b"prepared"]
    assert ear.gone == ["its worker ended: killed"]


async def test_a_line_that_is_cut_is_told_to_whoever_waits(start_peer: Any) -> None:
    async def serve(session: Session) -> None:
        await session.receive(TakeLease)
        await session.send(taken())
        await session.receive(SetRoster)

    lease, ear = await lease_from(await start_peer("otter", serve)), Ear()
    lease.attach(0, ear)
    with pytest.raises(Unreachable):
        await lease.set_roster(SetRoster(epoch=1, rank=0, members=[itself(lease)]))
    await ear.left.wait()
    assert len(ear.gone) == 1
    assert lease.hung_up
    late = Ear()
    lease.attach(0, late)
    assert late.gone == ear.gone
    assert lease.cut_off
    assert await lease.fetch_log() == b""
    await lease.end()


async def test_what_a_job_writes_is_heard_as_it_comes(start_peer: Any) -> None:
    news = [(LogNews(start=3, end=8), b"one\n"), (LogNews(start=20, end=24), b"two\n")]

    async def serve(session: Session) -> None:
        await session.receive(TakeLease)
        await session.send(taken())
        asked, _ = await session.receive(FollowLog)
        assert asked.start == 3
        for message, text in news:
            await session.send(message, text, bulk=True)
        await session.ended.wait()

    lease, heard = await lease_from(await start_peer("otter", serve)), list[bytes]()
    both = asyncio.Event()

    def hear(text: bytes) -> None:
        heard.append(text)
        if len(heard) == 2:
            both.set()

    lease.log_end = 3  # of an earlier lease
    lease.follow_log(hear)
    await both.wait()
    assert heard == [b"one\n", b"\n[... 12 bytes left out ...]\ntwo\n"]
    assert lease.log_end == 24
    assert lease.gone == ""
    await lease.end()


async def test_what_was_heard_of_a_log_is_not_fetched_again(start_peer: Any) -> None:
    asked = []

    async def serve(session: Session) -> None:
        await session.receive(TakeLease)
        await session.send(taken())
        await session.receive(FollowLog)
        await session.send(LogNews(start=0, end=4), b"one\n", bulk=True)
        fetch, _ = await session.receive(FetchLog)
        asked.append(fetch.start)
        await session.send(LogNews(start=4, end=8), b"two\n", bulk=True)  # was on its way
        await session.send(LogPart(offset=0, total=10), b"two\nthree\n")
        await session.ended.wait()

    lease, heard = await lease_from(await start_peer("otter", serve)), list[bytes]()
    first = asyncio.Event()
    lease.follow_log(lambda text: (heard.append(text), first.set()))
    await first.wait()
    assert (await lease.fetch_log(), heard, asked) == (b"two\nthree\n", [b"one\n"], [4])
    await lease.end()


@pytest.mark.parametrize(
    ("start", "end", "size", "asked"), [(0, 5, 5, False), (0, 5, 5, True), (9, 9, 1, True), (9, 10, 2**17, True)]
)
async def test_news_of_a_log_that_do_not_fit_end_the_lease(
    start_peer: Any, start: int, end: int, size: int, asked: bool
) -> None:
    async def serve(session: Session) -> None:
        await session.receive(TakeLease)
        await session.send(taken())
        if asked:
            await session.receive(FollowLog)
        await session.send(LogNews(start=start, end=end), bytes(size))
        await session.ended.wait()

    lease, ear = await lease_from(await start_peer("otter", serve)), Ear()
    lease.attach(0, ear)
    if asked:
        lease.log_end = 3
        lease.follow_log(lambda text: None)
    await ear.left.wait()
    assert "news of a log that do not fit" in ear.gone[0]


async def test_a_log_that_does_not_fit_together_ends_the_lease(start_peer: Any) -> None:
    async def serve(session: Session) -> None:
        await session.receive(TakeLease)
        await session.send(taken())
        await session.send(LogPart(offset=0, total=2**30), b"x")
        await session.ended.wait()

    lease, ear = await lease_from(await start_peer("otter", serve)), Ear()
    lease.attach(0, ear)
    await ear.left.wait()
    assert "does not fit together" in ear.gone[0]
    assert not lease.cut_off  # its own fault: nobody takes it again
    await lease.end()


async def test_the_owner_may_end_the_lease(start_peer: Any) -> None:
    async def serve(session: Session) -> None:
        await session.receive(TakeLease)
        await session.send(taken())
        await session.send(LeaseEnded(reason="the owner is back"))
        await session.ended.wait()

    lease, ear = await lease_from(await start_peer("otter", serve)), Ear()
    lease.attach(0, ear)
    await ear.left.wait()
    assert "the owner is back" in ear.gone[0]
    assert not lease.cut_off
    await lease.end()


async def test_a_refused_receipt_does_not_end_the_lease(start_peer: Any) -> None:
    daemon, ear = Daemon(), Ear()
    lease = await lease_from(await start_peer("otter", daemon))
    assert daemon.session
    lease.attach(0, ear)
    await daemon.session.send(refusal_of(Refused("that receipt is wrong")))
    await daemon.session.send(FromWorker(), b"goes on")
    assert await lease.fetch_log() == b"hello\n"
    assert ear.said == [b"goes on"]
    assert not ear.gone
    await lease.end()
    assert isinstance(daemon.heard[-1], EndLease)


async def test_an_owner_who_comes_and_goes_is_told_of_and_is_no_end(start_peer: Any) -> None:
    daemon, ear = Daemon(), Ear()
    lease = await lease_from(await start_peer("otter", daemon))
    assert daemon.session
    lease.attach(0, ear)
    back, later = HandBack(reason="memory is short", seconds=60), HandBack(reason="finishing", seconds=600)
    for message in (WorkerPaused(reason="a game"), WorkerPaused(reason="a game"), WorkerResumed(), WorkerResumed()):
        await daemon.session.send(message)
    for message in (later, back, later):
        await daemon.session.send(message)
    assert await lease.fetch_log() == b"hello\n"
    assert ear.owner == [WorkerPaused(reason="a game"), WorkerResumed(), later, back]
    assert lease.gone == ""
    await lease.end()
    assert isinstance(daemon.heard[-1], EndLease)


async def test_how_fast_the_line_is_is_passed_on(start_peer: Any) -> None:
    daemon, ear = Daemon(), Ear()
    lease = await lease_from(await start_peer("otter", daemon))
    assert daemon.session
    lease.attach(3, ear)
    await daemon.session.send(LineMeasured(upload=1_250_000, download=5_000_000))
    await lease.fetch_log()
    assert ear.lines == [(3, 1_250_000, 5_000_000)]
    await lease.end()


async def test_who_listens_late_learns_how_things_stand(start_peer: Any) -> None:
    daemon, ear = Daemon(), Ear()
    lease = await lease_from(await start_peer("otter", daemon))
    assert daemon.session
    await daemon.session.send(WorkerPaused(reason="a game"))
    await daemon.session.send(HandBack(reason="a game", seconds=600))
    await lease.fetch_log()
    lease.attach(0, ear)
    paused, back = ear.owner
    assert paused == WorkerPaused(reason="a game")
    assert isinstance(back, HandBack)
    assert 0 < back.seconds <= 600
    await lease.end()


async def test_with_no_time_left_the_worker_has_gone(start_peer: Any) -> None:
    daemon, ear = Daemon(), Ear()
    lease = await lease_from(await start_peer("otter", daemon))
    assert daemon.session
    lease.attach(0, ear)
    await daemon.session.send(HandBack(reason="a game", seconds=0))
    await daemon.session.send(WorkerPaused(reason="a game"))
    await ear.left.wait()
    assert await lease.fetch_log() == b"hello\n"
    assert ear.owner == [HandBack(reason="a game", seconds=0)]
    assert ear.gone == ["handed back: a game"]
    await lease.end()


async def test_an_owner_who_comes_back_all_the_time_is_misbehaviour(
    start_peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "MOST_PAUSES", 3)
    daemon, ear = Daemon(), Ear()
    lease = await lease_from(await start_peer("otter", daemon))
    assert daemon.session
    lease.attach(0, ear)
    for _ in range(4):
        await daemon.session.send(WorkerPaused(reason="a game"))
        await daemon.session.send(WorkerResumed())
    await ear.left.wait()
    assert ear.owner.count(WorkerResumed()) == 3
    assert "paused its worker 4 times" in ear.gone[0]
    await lease.end()


async def test_a_machine_that_is_wanted_back_sooner_again_and_again_is_no_news_for_ever(
    start_peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "MOST_HAND_BACKS", 3)

    class Sooner(Daemon):
        async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
            await super()._answer(session, message, payload)
            for number in range(10):
                await session.send(HandBack(reason="a game", seconds=3600.0 - 10 * number))

    ear, lease = Ear(), await lease_from(await start_peer("otter", Sooner()))
    lease.attach(0, ear)
    lease.tell_worker(b"anything")
    async with asyncio.timeout(5):
        await ear.left.wait()
    assert "was handed back 4 times" in ear.gone[0]
    await lease.end()


async def test_a_peer_that_says_words_without_end_is_read_no_faster(
    start_peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "WORDS_AT_ONCE", 20.0)
    monkeypatch.setattr(lease_module, "WORDS_A_SECOND", 1.0)

    class Chatting(Daemon):
        async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
            await super()._answer(session, message, payload)
            for _ in range(100):
                await session.send(LineMeasured(upload=1, download=1))

    ear, lease = Ear(), await lease_from(await start_peer("otter", Chatting()))
    lease.attach(0, ear)
    lease.tell_worker(b"anything")
    await asyncio.sleep(0.5)
    assert 10 < len(ear.lines) <= 21
    assert not ear.gone
    await lease.end()
