"""Conversations at a peer's door: the client says this, hears that; the worker is played by the test."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from contextlib import suppress

import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.messages import BlobGot, BlobHave, BlobManifest, BlobPiece, BlobReceived
from axonp2p.blobs.pieces import book_of
from axonp2p.clock import SystemClock
from axonp2p.errors import Busy, MalformedMessage, Refused, TokenRefused, Unreachable, VersionMismatch
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.messages import (
    LOG_BYTES_A_SECOND,
    MOST_LOG_NEWS,
    EndLease,
    FetchLog,
    FollowLog,
    FromWorker,
    LeaseEnded,
    LeaseTaken,
    LinkLost,
    LogNews,
    LogPart,
    PeerMessage,
    ReceiptRefused,
    ReceiptSigned,
    RosterSet,
    SetRoster,
    SignReceipt,
    ToWorker,
    WorkerEnded,
    WorkerStarted,
)
from axonp2p.ledger.receipt import DoublySigned, Receipt, open_doubly_signed
from axonp2p.sandbox.log import BoundedLog
from axonp2p.sandbox.messages import BundleReady, Control, FromMember, Start, Started, ToMember
from axonp2p.transport.messages import JoinMesh, Refusal
from axonp2p.transport.relay.server import RelayServer
from axonp2p.transport.tunnel.messages import RegisterAtRelay, RelayLimits, RelayTerms
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import encode_signed
from axonp2p.wire.frame import FRAME_COST, PAYLOAD_LIMIT
from axonp2p.wire.schema import SCHEMAS
from peer_daemon import session_router
from peer_daemon.execution import client_side, lease_context
from peer_daemon.links.credit import FIRST_BYTES
from tests.unit.peer_daemon.conftest import TRACKER

CLIENT = PrivateKey(b"c" * 32)
RESERVATION = "00000000-0000-4000-8000-000000000001"
OTHER = "00000000-0000-4000-8000-000000000002"
CONTENT = b"class Task: ..."


async def heard(session, kind):
    message, payload = await session.receive(PeerMessage)
    assert isinstance(message, kind), message
    return message, bytes(payload)


async def begin(peer, ask):
    session = await peer.dial()
    await session.send(ask)
    await heard(session, LeaseTaken)
    worker = await peer.workers.get()
    first, _ = await worker.hear()
    assert isinstance(first, Start)
    return session, worker


async def fill(session):
    """Send until neither the worker's channel nor the session takes any more, which raises `TimeoutError`."""
    while True:
        async with asyncio.timeout(0.5):
            await session.send(ToWorker(), bytes(1024 * 1024))


async def gone(peer):
    """Wait until no slot is held any more."""
    await peer.has_told(1)


@pytest.mark.parametrize("executes", [False, True])
async def test_a_lease_starts_the_program_of_its_kind_behind_the_wall_of_its_kind(make_peer, monkeypatch, executes):
    toy = dataclasses.replace(KINDS["train"], name="toy", worker="toys.worker", executes=executes)
    monkeypatch.setitem(KINDS, "toy", toy)
    monkeypatch.setitem(SCHEMAS, "toy", "0" * 16)
    peer = await make_peer(kinds=["train", "toy"])
    session = await peer.dial()
    await session.send(make_peer.take_lease(peer, kind="toy"))
    await heard(session, LeaseTaken)
    worker = await peer.workers.get()
    start, _ = await worker.hear()
    assert (worker.program, start.executes) == ("toys.worker", executes)


@pytest.mark.parametrize("kind", ["toy", "os", "axonp2p.client.swarm", ""])
async def test_a_kind_that_is_not_known_starts_nothing(make_peer, kind):
    peer = await make_peer()
    session = await peer.dial()
    await session.send(make_peer.take_lease(peer, kind=kind))
    refusal, _ = await heard(session, Refusal)
    assert refusal.code == VersionMismatch.code
    assert "only: train" in refusal.cause
    assert peer.workers.empty()


async def test_a_lease_from_its_beginning_to_its_end(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    assert peer.told_free == [0]

    worker.inside.send(Started())
    await heard(session, WorkerStarted)

    blob = Blob(Manifest(files=[BlobFile(path="task.py", size=len(CONTENT), blake3=book_of(CONTENT).hashes)]))
    await session.send(BlobManifest(blob=blob.name), blob.encoded)
    assert (await heard(session, BlobHave))[0].pieces == b"\0"
    await session.send(BlobPiece(blob=blob.name, number=0), CONTENT)
    assert (await heard(session, BlobGot))[0].numbers == [0]
    await heard(session, BlobReceived)
    assert isinstance((await worker.hear())[0], BundleReady)
    assert (worker.folder / "task.py").read_bytes() == CONTENT

    await session.send(SetRoster(epoch=0, rank=0, members=[peer.member(0)]))
    assert (await heard(session, RosterSet))[0].epoch == 0

    await session.send(ToWorker(), b"train")
    assert await worker.hear() == (Control(), b"train")
    worker.inside.send(Control(), b"trained")
    assert (await heard(session, FromWorker))[1] == b"trained"

    await session.send(FetchLog())
    parts = [await heard(session, LogPart), await heard(session, LogPart)]
    assert b"".join(payload for _, payload in parts) == worker.log()

    await session.send(EndLease())
    assert (await heard(session, LeaseEnded))[0].reason == ""
    assert worker.killed
    assert not worker.folder.parent.exists()
    assert peer.told_free == [0, 1]


class SlowTrackers(asyncio.Event):
    """Set when they know; says when somebody waits for that."""

    def __init__(self):
        super().__init__()
        self.waited_for = asyncio.Event()

    async def wait(self):
        self.waited_for.set()
        return await super().wait()


async def test_a_lease_has_ended_for_its_client_when_trackers_show_the_slot_to_its_next_command(make_peer):
    peer = await make_peer()
    trackers = peer.trackers_know = SlowTrackers()
    session, _ = await begin(peer, make_peer.take_lease(peer))
    await session.send(EndLease())
    ended = asyncio.create_task(heard(session, LeaseEnded))
    async with asyncio.timeout(10):
        await trackers.waited_for.wait()
    assert not ended.done()
    assert peer.told_free == [0, 1]
    trackers.set()
    await ended


async def test_trackers_that_do_not_answer_keep_no_client_waiting(make_peer, monkeypatch):
    monkeypatch.setattr(session_router, "TOLD_S", 0.01)
    peer = await make_peer()
    peer.trackers_know = SlowTrackers()
    session, _ = await begin(peer, make_peer.take_lease(peer))
    await session.send(EndLease())
    await heard(session, LeaseEnded)


async def test_receipts_are_signed_and_a_wrong_one_ends_nothing(make_peer):
    peer = await make_peer()
    session, _ = await begin(peer, make_peer.take_lease(peer))
    for number, right in ((2, False), (1, True)):
        receipt = Receipt(
            reservation=RESERVATION,
            number=number,
            job="digits",
            client=CLIENT.peer_id,
            peer=peer.key.peer_id,
            round=0,
            flops=1,
            samples=1,
            milliseconds=1,
            issued=1,
        )
        await session.send(SignReceipt(receipt=encode_signed(CLIENT, receipt)))
        if right:
            answer, _ = await heard(session, ReceiptSigned)
            assert open_doubly_signed(decode_as(answer.receipt, DoublySigned, 4096)) == receipt
        else:
            assert "number" in (await heard(session, ReceiptRefused))[0].reason
    await session.close()


async def test_a_lost_session_leaves_nothing_behind(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    await session.close()
    await gone(peer)
    assert worker.killed
    assert not worker.folder.parent.exists()


async def test_a_lost_session_is_noticed_while_the_worker_takes_nothing(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))

    with pytest.raises(TimeoutError):
        await fill(session)
    await session.close()
    await gone(peer)
    assert worker.killed


async def test_a_worker_that_ends_is_told_of_and_its_log_can_still_be_had(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    worker.end("used 300 MiB of memory", "memory")
    end, _ = await heard(session, WorkerEnded)
    assert (end.reason, end.limit, end.log_tail) == ("used 300 MiB of memory", "memory", "last words")
    await session.send(ToWorker(), b"nobody is there")
    await session.send(FetchLog())
    await heard(session, LogPart)
    await session.close()


async def test_a_log_is_followed_from_where_it_is_known_and_cleaned(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    worker.written.add(b"known, new\x1b[2J\n")
    await session.send(FollowLog(start=7))
    assert await heard(session, LogNews) == (LogNews(start=7, end=15), "new\N{REPLACEMENT CHARACTER}[2J\n".encode())
    worker.written.add("half a \N{EURO SIGN}".encode()[:-1])
    assert await heard(session, LogNews) == (LogNews(start=15, end=22), b"half a ")
    worker.written.add("\N{EURO SIGN}".encode()[-1:])
    assert await heard(session, LogNews) == (LogNews(start=22, end=25), "\N{EURO SIGN}".encode())
    # Whoever asks again begins anew; the lease goes on beside it.
    await session.send(FollowLog(start=0))
    assert (await heard(session, LogNews))[0].start == 0
    await session.send(EndLease())
    await heard(session, LeaseEnded)


async def test_of_a_flood_that_is_followed_what_is_kept_no_more_is_left_out(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    worker.written = BoundedLog(1024)
    await session.send(FollowLog(start=0))
    worker.written.add(b"\x00" * 2 * LOG_BYTES_A_SECOND)
    first, text = await heard(session, LogNews)
    second, more = await heard(session, LogNews)
    assert (first.start, second.end) == (0, 2 * LOG_BYTES_A_SECOND)
    assert second.start == second.end - 512  # the tail; what lies between is gone
    assert len(text) + len(more) <= MOST_LOG_NEWS
    await session.close()


async def test_a_worker_that_speaks_rubbish_is_ended(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    worker.inside._socket.sendall(b"\x00\x00\x00\x08\x00\x00\x00\x04rubb")
    end, _ = await heard(session, WorkerEnded)
    assert "broke the protocol" in end.reason
    assert worker.killed
    await session.close()


async def test_a_lease_ends_with_its_token(make_peer):
    peer = await make_peer()
    peer.clock.ahead = 58.0
    session, worker = await begin(peer, make_peer.take_lease(peer, seconds=60))
    assert (await heard(session, LeaseEnded))[0].reason == "the token expired"
    assert worker.killed
    assert peer.leases.free(time.time()) == 1


async def test_a_peer_that_stops_says_so(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    await peer.door.close("the peer is stopping")
    assert (await heard(session, LeaseEnded))[0].reason == "the peer is stopping"
    assert worker.killed
    late = await peer.dial()
    await late.send(make_peer.take_lease(peer))
    with pytest.raises(Refused, match="stopping"):
        await late.receive(LeaseTaken)


async def test_no_second_lease_where_there_is_one_slot(make_peer):
    peer = await make_peer()
    ask = make_peer.take_lease(peer)
    session, _ = await begin(peer, ask)
    for again, reason in ((ask, "in use"), (make_peer.take_lease(peer, reservation=OTHER), "every slot")):
        other = await peer.dial()
        await other.send(again)
        with pytest.raises(Busy, match=reason):
            await other.receive(LeaseTaken)
    await session.send(EndLease())
    await heard(session, LeaseEnded)
    session, _ = await begin(peer, ask)
    await session.close()


async def test_somebody_elses_token_gets_nothing(make_peer):
    peer = await make_peer()
    thief = await peer.dial(PrivateKey(b"x" * 32))
    await thief.send(make_peer.take_lease(peer))
    with pytest.raises(TokenRefused):
        await thief.receive(LeaseTaken)
    assert peer.leases.free(time.time()) == 1


@pytest.mark.parametrize(
    "say",
    [
        lambda peer, other: BlobPiece(blob=bytes(32), number=0),
        lambda peer, other: SetRoster(epoch=1, rank=1, members=[peer.member(0)]),
        lambda peer, other: SetRoster(epoch=1, rank=0, members=[peer.member(0), peer.member(1)]),
        lambda peer, other: SetRoster(epoch=1, rank=1, members=[peer.member(0), other.member(1)]),
        lambda peer, other: JoinMesh(reservation="0" * 36),
    ],
)
async def test_who_breaks_the_rules_loses_the_lease(make_peer, say):
    peer, other = await make_peer(), await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    await session.send(say(peer, other))
    with pytest.raises(MalformedMessage):
        await session.receive(LeaseEnded)
    await gone(peer)
    assert worker.killed


async def test_members_reach_each_other_and_nobody_else_does(make_peer):
    peers = [await make_peer(), await make_peer()]
    # The second one works under another reservation, as who stands in for a busy peer does.
    reservations = [RESERVATION, OTHER]
    asks = [make_peer.take_lease(peer, reservation=name) for peer, name in zip(peers, reservations, strict=True)]
    pairs = [await begin(peer, ask) for peer, ask in zip(peers, asks, strict=True)]

    stranger = await peers[0].dial(PrivateKey(b"x" * 32))
    await stranger.send(JoinMesh(reservation=RESERVATION))
    with pytest.raises(Refused, match="no roster"):
        await stranger.receive(RosterSet)

    roster = [peer.member(rank, reservations[rank]) for rank, peer in enumerate(peers)]
    for rank, (session, _) in enumerate(pairs):
        await session.send(SetRoster(epoch=0, rank=rank, members=roster))
        await heard(session, RosterSet)
    for sender, receiver in ((0, 1), (1, 0)):
        pairs[sender][1].inside.send(ToMember(rank=receiver), b"slice %d" % sender)
        assert await pairs[receiver][1].hear() == (FromMember(rank=sender), b"slice %d" % sender)

    pairs[0][1].inside.send(ToMember(rank=5), b"nobody")
    assert (await heard(pairs[0][0], LinkLost))[0].rank == 5
    for session, _ in pairs:
        await session.send(EndLease())


async def together(make_peer, count):
    """So many peers in one job, each with its session and its worker, which have heard of each other."""
    peers = [await make_peer() for _ in range(count)]
    pairs = [await begin(peer, make_peer.take_lease(peer)) for peer in peers]
    roster = [peer.member(rank) for rank, peer in enumerate(peers)]
    for rank, (session, worker) in enumerate(pairs):
        await session.send(SetRoster(epoch=0, rank=rank, members=roster))
        await heard(session, RosterSet)
        worker.inside.send(Control(), b"here")
        await heard(session, FromWorker)
        await session.send(ToWorker(), b"begin")
        assert await worker.hear() == (Control(), b"begin")
    return peers, pairs


async def test_a_worker_has_credit_for_every_other_member_before_its_first_order(make_peer):
    _, pairs = await together(make_peer, 3)
    for rank, (session, worker) in enumerate(pairs):
        others = {0, 1, 2, None} - {rank}
        assert worker.credit == dict.fromkeys(others, FIRST_BYTES)
        await session.close()


async def test_a_member_that_takes_nothing_holds_up_nobody_else(make_peer):
    _, pairs = await together(make_peer, 3)
    (session, talker), _, (_, quick) = pairs
    part, taken = bytes(FIRST_BYTES), asyncio.Event()

    async def tell_the_deaf_one():
        """For as long as there is credit for it."""
        said = 0
        while True:
            while talker.credit[1] <= said:
                await talker.take()
            if talker.credit[1] > 2 * FIRST_BYTES:
                taken.set()
            await talker.say(ToMember(rank=1), part)
            said += len(part) + FRAME_COST

    telling = asyncio.create_task(tell_the_deaf_one())
    await taken.wait()  # what its link took is granted again
    await asyncio.wait([telling], timeout=0.5)  # until it takes no more
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)
    await talker.say(ToMember(rank=2), part)
    assert await quick.hear() == (FromMember(rank=0), part)
    await talker.say(Control(), b"heard")
    while (said := await session.receive(PeerMessage))[0] != FromWorker():
        pass
    assert said[1] == b"heard"


async def test_who_says_more_than_it_has_credit_for_is_ended(make_peer):
    _, pairs = await together(make_peer, 2)
    session, worker = pairs[0]
    await worker.say(Control(bulk=True), bytes(FIRST_BYTES))
    await worker.say(ToMember(rank=7), b"to nobody")
    first, second = await session.receive(PeerMessage), await session.receive(PeerMessage)
    assert {type(first[0]), type(second[0])} == {FromWorker, LinkLost}
    with suppress(Unreachable):
        while True:
            await worker.say(ToMember(rank=1), bytes(PAYLOAD_LIMIT))
    ended, _ = await heard(session, WorkerEnded)
    assert "more than it has credit for" in ended.reason


async def test_words_pass_bulk_that_the_owners_limit_holds_back(make_peer):
    peer = await make_peer(upload_limit=1000)
    session, worker = await begin(peer, make_peer.take_lease(peer))
    for _ in range(2):
        await worker.say(Control(bulk=True), bytes(100_000))
    await worker.say(Control(), b"a word")
    lengths = {len((await heard(session, FromWorker))[1]) for _ in range(2)}
    assert lengths == {100_000, len(b"a word")}, "and not the second large one"
    await session.close()


async def test_a_peer_is_a_relay_only_where_its_owner_wants_it(make_peer) -> None:
    peer = await make_peer()
    session = await peer.dial()
    await session.send(RegisterAtRelay())
    with pytest.raises(Refused, match="carries connections for nobody"):
        await session.receive(RelayTerms)
    await session.close()
    peer.door.relay = RelayServer(RelayLimits(streams_of_peer=3), SystemClock())
    session = await peer.dial()
    await session.send(RegisterAtRelay())
    terms, _ = await session.receive(RelayTerms)
    assert terms.streams == 3
    assert peer.door.relay.admission.peers == 1
    await session.close()


async def test_a_lease_without_a_bundle_ends_in_minutes_and_its_client_and_owner_hear_why(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    peer.running_leases.look(time.monotonic() + 300)
    peer.running_leases.look(time.monotonic() + 400)
    assert (await heard(session, LeaseEnded))[0].reason == "no bundle came within 6 min"
    assert worker.killed
    await gone(peer)
    assert ("job ended", "digits after 0 rounds: no bundle came within 6 min") in peer.noted
    again = await peer.dial()
    await again.send(make_peer.take_lease(peer, reservation=OTHER))
    assert "was not worked here" in (await heard(again, Refusal))[0].message


async def test_an_idle_lease_gives_way_to_a_new_one_when_its_worker_is_gone(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    assert not peer.running_leases.look(time.monotonic())
    assert peer.running_leases.look(time.monotonic() + 120)
    assert not peer.running_leases.look(time.monotonic() + 121)
    _, newer = await begin(peer, make_peer.take_lease(peer, reservation=OTHER))
    assert "another client wants the slot" in (await heard(session, LeaseEnded))[0].reason
    assert worker.killed
    assert not newer.killed


def numbered(peer, number):
    """A receipt that is signed, if it is the next one."""
    receipt = Receipt(
        reservation=RESERVATION,
        number=number,
        job="digits",
        client=CLIENT.peer_id,
        peer=peer.key.peer_id,
        round=0,
        flops=1,
        samples=1,
        milliseconds=1,
        issued=1,
    )
    return SignReceipt(receipt=encode_signed(CLIENT, receipt))


async def test_receipts_without_end_fill_nobodys_disk(make_peer, monkeypatch):
    """Each stays on this disk and in trackers' logs, and its client alone says how many rounds there were."""
    monkeypatch.setattr(lease_context, "RECEIPTS_AT_ONCE", 3.0)
    monkeypatch.setattr(lease_context, "RECEIPTS_A_SECOND", 0.01)
    peer = await make_peer()
    session, _ = await begin(peer, make_peer.take_lease(peer))
    for number in range(1, 6):
        await session.send(numbered(peer, number))
    for _ in range(3):
        await heard(session, ReceiptSigned)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await session.receive(PeerMessage)
    assert len(peer.book.waiting(TRACKER.peer_id, TRACKER.peer_id)) == 3
    await session.close()


async def test_rosters_without_end_are_taken_at_a_pace(make_peer, monkeypatch):
    """Each may begin all links of the job anew."""
    monkeypatch.setattr(client_side, "ROSTERS_AT_ONCE", 3.0)
    monkeypatch.setattr(client_side, "ROSTERS_A_SECOND", 0.001)
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    for epoch in range(20):
        await session.send(SetRoster(epoch=epoch, rank=0, members=[peer.member(0)]))
    for epoch in range(3):
        assert (await heard(session, RosterSet))[0].epoch == epoch
    worker.inside.send(Control(), b"a word")
    assert (await heard(session, FromWorker))[1] == b"a word"
    await session.close()


@pytest.mark.parametrize("asks", [FetchLog(), FollowLog(start=0)])
async def test_a_log_that_is_asked_for_without_end_is_read_at_a_pace(make_peer, monkeypatch, asks):
    monkeypatch.setattr(client_side, "LOGS_AT_ONCE", 3.0)
    monkeypatch.setattr(client_side, "LOGS_A_SECOND", 0.001)
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    taken = asyncio.Queue()
    worker.log = lambda start=0: taken.put_nowait(start) or b"text"
    monkeypatch.setattr(client_side.LogFollower, "follow", lambda follower, start: taken.put_nowait(start))
    for _ in range(20):
        await session.send(asks)
    for _ in range(3):
        await taken.get()
    worker.inside.send(Control(), b"a word")
    while not isinstance((await session.receive(PeerMessage))[0], FromWorker):
        pass
    assert taken.empty()
    await session.close()


async def test_one_receipt_again_and_again_pays_once(make_peer):
    peer = await make_peer()
    session, _ = await begin(peer, make_peer.take_lease(peer))
    for _ in range(3):
        await session.send(numbered(peer, 1))
        await heard(session, ReceiptSigned)
    assert peer.running_leases.find(RESERVATION).rounds == 1
    await session.close()
