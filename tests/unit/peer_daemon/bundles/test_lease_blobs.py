"""Further blobs at a peer: real daemons with real links; the client's part is played."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest, from_bits
from axonp2p.blobs.messages import (
    BlobDropped,
    BlobGot,
    BlobHave,
    BlobLie,
    BlobManifest,
    BlobPiece,
    BlobReceived,
    BlobRefused,
    DropBlob,
)
from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import PeerMisbehaved
from axonp2p.jobs.bundle import Bundle, alone
from axonp2p.jobs.messages import EndLease, FetchLog, LeaseEnded, LeaseTaken, LogPart
from axonp2p.transport.messages import Refusal, error_of
from axonp2p.wire.codec import encode
from peer_daemon.bundles import lease_room
from tests.unit.peer_daemon.bundles.conftest import BLOB, meet
from tests.unit.peer_daemon.conftest import OFFER

PIECES = 3


def array(folder: Path, sign: bytes, size: int = (PIECES - 1) * PIECE_BYTES + 7) -> Bundle:
    """One file on this disk, of three pieces."""
    path = folder / f"array-{sign.decode()}"
    path.write_bytes(sign * size)
    return alone(path)


def hexed(content: Bundle) -> str:
    return content.blob.name.hex()


@pytest.fixture
def a(tmp_path):
    return array(tmp_path, b"a")


@pytest.fixture
def b(tmp_path):
    return array(tmp_path, b"b")


async def still_answers(client) -> None:
    """The lease continues: its peer answers."""
    await client.session.send(FetchLog())
    await client.hears(LogPart)


async def is_blamed(client) -> None:
    """The lease ends by its client's fault."""
    refusal = await client.hears(Refusal)
    assert isinstance(error_of(refusal, "the peer"), PeerMisbehaved)


async def test_two_that_come_at_once_appear_each_when_it_is_whole(make_peer, lease_of, a, b):
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    for content in (a, b):
        await client.names(content)
        have = await client.hears(BlobHave)
        assert (have.blob, have.pieces) == (content.blob.name, b"\0")
    for content, number in ((a, 2), (b, 0), (a, 0), (b, 1)):
        await client.gives_of(content, number)
    await client.hears(BlobGot)
    assert client.shown() == {}
    await client.gives_of(a, 1)
    assert (await client.hears(BlobReceived)).blob == a.blob.name
    assert client.shown() == {hexed(a): a.files[0].source.read_bytes()}
    await client.gives_of(b, 2)
    assert (await client.hears(BlobReceived)).blob == b.blob.name
    assert client.shown().keys() == {hexed(a), hexed(b)}
    for path in client.worker.blobs.iterdir():
        assert path.stat().st_mode & 0o777 == 0o644  # a worker of root's is another user
    await client.session.send(EndLease())
    await client.hears(LeaseEnded)
    assert list((client.peer.folder / "jobs").iterdir()) == []


async def test_the_name_is_of_the_bytes_alone_and_an_empty_file_is_whole_at_once(make_peer, lease_of, tmp_path):
    (tmp_path / "one").write_bytes(b"")
    (tmp_path / "two").write_bytes(b"")
    content = alone(tmp_path / "one")
    assert content.blob.name == alone(tmp_path / "two").blob.name
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    await client.brings(content)
    assert client.shown() == {hexed(content): b""}


async def test_members_pass_the_second_blob_on_to_one_that_comes_late(make_peer, lease_of, a, b):
    first, second = [await lease_of(await make_peer()) for _ in range(2)]
    for client in (first, second):
        await client.has_the_bundle()
    await meet(first, second)
    for client, numbers in ((first, (0, 1)), (second, (2,))):
        await client.names(b)
        await client.gives_of(b, *numbers)
    for client in (first, second):
        await client.hears(BlobReceived)
    await first.brings(a)  # which the others are not brought
    late = await lease_of(await make_peer())
    await meet(first, second, late, epoch=1)
    await late.has_the_bundle()
    await late.names(b)
    assert (await late.hears(BlobReceived)).blob == b.blob.name
    assert late.from_members_of(b.blob) >= b.size  # the last piece may come from both
    assert late.shown() == {hexed(b): b.files[0].source.read_bytes()}
    assert second.shown().keys() == {hexed(b)}


async def test_all_have_what_each_was_given_a_part_of_and_a_new_offer_after_a_drop_too(make_peer, lease_of, a):
    clients = [await lease_of(await make_peer()) for _ in range(3)]
    for client in clients:
        await client.has_the_bundle()
    await meet(*clients)
    for _ in range(2):
        for client in clients:
            await client.names(a)
        for rank, client in enumerate(clients):
            await client.gives_of(a, rank)
        for client in clients:
            await client.hears(BlobReceived)
        for client in clients:
            await client.session.send(DropBlob(blob=a.blob.name))
            await client.hears(BlobDropped)
            assert client.shown() == {}


async def test_one_that_is_dropped_while_pieces_are_under_way_is_gone_and_can_come_again(make_peer, lease_of, a, b):
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    await client.names(a)
    await client.gives_of(a, 0)
    await client.hears(BlobGot)
    await client.session.send(DropBlob(blob=a.blob.name))
    await client.gives_of(a, 1, 2)  # sent before the client knew
    assert (await client.hears(BlobDropped)).blob == a.blob.name
    await client.brings(b)
    assert client.shown().keys() == {hexed(b)}
    assert list((client.worker.folder.parent / "arriving").iterdir()) == []
    await client.names(a)
    assert from_bits((await client.hears(BlobHave)).pieces, PIECES) == set()
    await client.gives_of(a, 0, 1, 2)
    await client.hears(BlobReceived)
    await client.session.send(DropBlob(blob=a.blob.name))
    await client.hears(BlobDropped)
    await client.session.send(DropBlob(blob=a.blob.name))  # again, of what is not there
    await client.hears(BlobDropped)
    assert client.shown().keys() == {hexed(b)}


def of_files(*files: BlobFile) -> Manifest:
    return Manifest(files=list(files))


SMALL = BlobFile(path="content", size=3, blake3=book_of(b"abc").hashes)


@pytest.mark.parametrize(
    "manifest",
    [
        of_files(BlobFile(path="../../bundle/task.py", size=3, blake3=SMALL.blake3)),
        of_files(BlobFile(path="/etc/passwd", size=3, blake3=SMALL.blake3)),
        of_files(BlobFile(path="other", size=3, blake3=SMALL.blake3)),
        of_files(SMALL, SMALL),
        of_files(BlobFile(path="content", size=3, blake3=b"")),
        of_files(BlobFile(path="content", size=2**40, blake3=SMALL.blake3)),
    ],
)
async def test_a_manifest_that_is_none_ends_the_lease(make_peer, lease_of, manifest):
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    encoded = encode(manifest)
    await client.session.send(BlobManifest(blob=hashlib.sha256(encoded).digest()), encoded)
    await is_blamed(client)
    await client.peer.has_told(1)
    assert list((client.peer.folder / "jobs").iterdir()) == []


@pytest.mark.parametrize(
    "say",
    [
        (BlobPiece(blob=b"?" * 32, number=0), b"of a blob that nobody has named"),
        (BlobManifest(blob=BLOB.name), BLOB.encoded),
        (DropBlob(blob=BLOB.name), b""),
    ],
)
async def test_words_of_no_further_blob_end_the_lease(make_peer, lease_of, say):
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    await client.session.send(*say)
    await is_blamed(client)


async def test_a_wrong_piece_of_the_client_ends_the_lease(make_peer, lease_of, a):
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    await client.names(a)
    await client.session.send(BlobPiece(blob=a.blob.name, number=0), b"x" * PIECE_BYTES, bulk=True)
    await is_blamed(client)


async def test_too_many_are_refused_by_name_and_the_lease_continues(make_peer, lease_of, monkeypatch, a, b):
    monkeypatch.setattr(lease_room, "MOST_BLOBS", 1)
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    await client.brings(a)
    await client.names(b)
    refused = await client.hears(BlobRefused)
    assert (refused.blob, "holds 1 blobs" in refused.reason) == (b.blob.name, True)
    await client.gives_of(b, 0)  # as if it had been sent before
    await still_answers(client)
    await client.session.send(DropBlob(blob=a.blob.name))
    await client.brings(b)
    assert client.shown().keys() == {hexed(b)}


async def test_what_the_owner_has_no_room_for_is_refused_before_it_is_sent(make_peer, lease_of, a):
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    pieces = 8 * OFFER.disk_mb  # of a quarter of a MiB: twice what the peer lends
    huge = Blob(of_files(BlobFile(path="content", size=pieces * PIECE_BYTES, blake3=bytes(32 * pieces))))
    await client.session.send(BlobManifest(blob=huge.name), huge.encoded)
    refused = await client.hears(BlobRefused)
    assert refused.blob == huge.name
    assert "may store" in refused.reason
    assert sum(path.stat().st_blocks for path in client.worker.folder.parent.rglob("*")) < 10 * 1024
    await client.brings(a)


async def test_a_disk_that_is_full_gives_that_one_up_and_the_rest_continues(make_peer, lease_of, a, b):
    client = await lease_of(await make_peer())
    await client.has_the_bundle()
    await client.names(a)
    await client.hears(BlobHave)
    (arriving,) = (client.worker.folder.parent / "arriving").iterdir()
    arriving.unlink()  # as a disk that takes no more
    arriving.mkdir()
    await client.gives_of(a, 0)
    assert (await client.hears(BlobRefused)).blob == a.blob.name
    await client.brings(b)


async def test_a_member_that_sends_other_bytes_is_named_for_that_blob(make_peer, lease_of, a):
    clients = [await lease_of(await make_peer()) for _ in range(2)]
    for client in clients:
        await client.has_the_bundle()
    await clients[0].brings(a)
    (clients[0].worker.blobs / hexed(a)).write_bytes(b"?" * a.size)
    await meet(*clients)
    await clients[1].names(a)
    lie = await clients[1].hears(BlobLie)
    assert (lie.rank, lie.blob) == (0, a.blob.name)
    await clients[1].gives_of(a, 0, 1, 2)
    await clients[1].hears(BlobReceived)


async def test_a_member_has_nothing_of_a_blob_that_its_own_client_did_not_name(make_peer, lease_of, a):
    clients = [await lease_of(await make_peer()) for _ in range(2)]
    for client in clients:
        await client.has_the_bundle()
    await meet(*clients)
    await clients[0].brings(a)
    await asyncio.gather(*(still_answers(client) for client in clients))
    assert clients[1].shown() == {}
    assert list((clients[1].worker.folder.parent / "arriving").iterdir()) == []


async def again(make_peer, client):
    """The same client with another session of the same lease."""
    session = await client.peer.dial()
    await session.send(make_peer.take_lease(client.peer, grace=60))
    taken, _ = await session.receive(LeaseTaken)
    assert taken.waited
    client.session, client.told = session, []


async def test_a_client_that_is_back_sends_nothing_again_and_what_it_does_not_name_gives_way(
    make_peer, lease_of, monkeypatch, a, b, tmp_path
):
    monkeypatch.setattr(lease_room, "MOST_BLOBS", 2)
    client = await lease_of(await make_peer(), grace=60)
    await client.has_the_bundle()
    await client.brings(a)
    await client.brings(b)
    await client.session.close()
    await again(make_peer, client)
    await client.names(b)
    assert from_bits((await client.hears(BlobHave)).pieces, PIECES) == {0, 1, 2}
    assert (await client.hears(BlobReceived)).blob == b.blob.name
    c = array(tmp_path, b"c")
    await client.brings(c)
    assert client.shown().keys() == {hexed(b), hexed(c)}
    await client.names(a)
    assert (await client.hears(BlobRefused)).blob == a.blob.name
