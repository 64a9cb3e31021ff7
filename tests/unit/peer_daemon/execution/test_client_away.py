"""A client that loses its session while its worker waits: who finds the worker again, and who does not."""

from __future__ import annotations

import msgspec

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.messages import BlobManifest, BlobPiece, BlobReceived
from axonp2p.blobs.pieces import book_of
from axonp2p.errors import Busy, TokenRefused
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.messages import (
    EndLease,
    FromWorker,
    LeaseEnded,
    LeaseTaken,
    PeerMessage,
    RosterSet,
    SetRoster,
    TakeLease,
    ToWorker,
    WorkerPaused,
)
from axonp2p.sandbox.messages import BundleReady, Control, Start
from axonp2p.transport.messages import Refusal, error_of
from peer_daemon.lending.leases import MOST_GRACE_S

CONTENT = b"class Task: ..."
BLOB = Blob(Manifest(files=[BlobFile(path="task.py", size=len(CONTENT), blake3=book_of(CONTENT).hashes)]))


async def heard(session, kind):
    message, payload = await session.receive(PeerMessage)
    assert isinstance(message, kind), message
    return message, bytes(payload)


def asking(make_peer, peer, grace: int) -> TakeLease:
    return msgspec.structs.replace(make_peer.take_lease(peer), grace=grace)


async def begin(peer, ask, *, bundle=True):
    """A client whose worker has the bundle."""
    session = await peer.dial()
    await session.send(ask)
    assert not (await heard(session, LeaseTaken))[0].waited
    worker = await peer.workers.get()
    assert isinstance((await worker.hear())[0], Start)
    if bundle:
        await session.send(BlobManifest(blob=BLOB.name), BLOB.encoded)
        await session.send(BlobPiece(blob=BLOB.name, number=0), CONTENT)
        while not isinstance((await session.receive(PeerMessage))[0], BlobReceived):
            pass
        assert isinstance((await worker.hear())[0], BundleReady)
    await session.send(SetRoster(epoch=3, rank=0, members=[peer.member(0)]))
    await heard(session, RosterSet)
    return session, worker


async def again(peer, ask):
    session = await peer.dial()
    await session.send(ask)
    return session


async def test_who_comes_back_finds_the_worker_as_it_was(make_peer):
    peer = await make_peer()
    ask = asking(make_peer, peer, 60)
    session, worker = await begin(peer, ask)
    await session.close()
    worker.inside.send(Control(), b"said to nobody")
    back = await again(peer, ask)
    assert (await heard(back, LeaseTaken))[0].waited
    # A client that has lost its memory counts its rosters anew.
    await back.send(SetRoster(epoch=0, rank=0, members=[peer.member(0)]))
    while not isinstance((await back.receive(PeerMessage))[0], RosterSet):
        pass
    await back.send(ToWorker(), b"go on")
    assert await worker.hear() == (Control(), b"go on")
    worker.inside.send(Control(), b"here")
    assert (await heard(back, FromWorker))[1] == b"here"
    assert not worker.killed
    assert peer.told_free == [0]
    await back.send(EndLease())
    await heard(back, LeaseEnded)
    assert worker.killed
    await peer.has_told(1)


async def test_who_comes_back_before_the_loss_is_noticed_takes_the_place_of_the_old_session(make_peer):
    peer = await make_peer()
    ask = asking(make_peer, peer, 60)
    session, worker = await begin(peer, ask)
    back = await again(peer, ask)
    assert (await heard(back, LeaseTaken))[0].waited
    await session.ended.wait()
    await back.send(ToWorker(), b"go on")
    assert await worker.hear() == (Control(), b"go on")


async def test_it_may_be_lost_again_and_again(make_peer):
    peer = await make_peer()
    ask = asking(make_peer, peer, 60)
    session, worker = await begin(peer, ask)
    for _ in range(3):
        await session.close()
        session = await again(peer, ask)
        assert (await heard(session, LeaseTaken))[0].waited
    await session.send(ToWorker(), b"go on")
    assert await worker.hear() == (Control(), b"go on")


async def test_the_grace_ends(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, asking(make_peer, peer, 1))
    await session.close()
    await peer.has_told(1)
    assert worker.killed
    assert any("the client is gone" in sentence for kind, sentence in peer.noted if kind == "job ended")


async def test_without_a_wish_or_a_bundle_nothing_waits(make_peer):
    peer = await make_peer()
    session, _ = await begin(peer, asking(make_peer, peer, 0))
    await session.close()
    await peer.has_told(1)
    session, worker = await begin(peer, asking(make_peer, peer, 60), bundle=False)
    await session.close()
    await peer.has_told(1)
    assert worker.killed


async def test_a_worker_that_dies_meanwhile_is_not_waited_with(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, asking(make_peer, peer, 60))
    await session.close()
    worker.end("it used too much memory")
    await peer.has_told(1)


async def test_nobody_else_finds_it(make_peer):
    peer = await make_peer()
    ask = asking(make_peer, peer, 60)
    session, worker = await begin(peer, ask)
    await session.close()
    stranger = await peer.dial(PrivateKey(b"s" * 32))
    await stranger.send(ask)
    refusal, _ = await heard(stranger, Refusal)
    assert isinstance(error_of(refusal, "the peer"), TokenRefused)
    other_job = await again(peer, msgspec.structs.replace(ask, job="another"))
    refusal, _ = await heard(other_job, Refusal)
    assert isinstance(error_of(refusal, "the peer"), Busy)
    assert not worker.killed


async def test_who_comes_back_hears_that_the_owner_needs_the_machine(make_peer):
    peer = await make_peer()
    ask = asking(make_peer, peer, 60)
    session, _ = await begin(peer, ask)
    await session.close()
    await peer.running_leases.stop_all("a game")
    back = await again(peer, ask)
    assert (await heard(back, LeaseTaken))[0].waited
    assert (await heard(back, WorkerPaused))[0].reason == "a game"


async def test_an_owner_may_end_the_waiting(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, asking(make_peer, peer, 60))
    await session.close()
    peer.running_leases.hand_back("a game", 0)
    await peer.has_told(1)
    assert worker.killed


async def test_no_worker_waits_longer_than_its_peer_allows(make_peer):
    peer = await make_peer()
    await begin(peer, asking(make_peer, peer, 3600))
    (lease,) = peer.leases.living()
    assert lease.grace_s == MOST_GRACE_S
