"""Daemons pass a bundle on to each other over real links; the client's part is played by the test."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.blobs.manifest import as_bits, from_bits
from axonp2p.blobs.messages import BlobGot, BlobHave, BlobLie, BlobManifest, BlobPiece, BlobReceived
from axonp2p.errors import MalformedMessage, PeerMisbehaved, Unreachable
from axonp2p.jobs.messages import EndLease, LeaseEnded
from axonp2p.sandbox.messages import BundleReady
from peer_daemon.bundles import lease_blobs
from peer_daemon.bundles.lease_blobs import LeaseBlobs
from tests.unit.peer_daemon.bundles.conftest import BLOB, CONTENT, EVERYTHING, PIECES, meet
from tests.unit.peer_daemon.conftest import RESERVATION


async def test_what_each_is_given_all_have_in_the_end(make_peer, lease_of):
    clients = [await lease_of(await make_peer()) for _ in range(3)]
    await meet(*clients)
    for client in clients:
        assert await client.names_the_bundle() == set()
    for rank, client in enumerate(clients):
        await client.gives(*range(rank, BLOB.count, 3))
    for rank, client in enumerate(clients):
        await client.hears(BlobReceived)
        assert isinstance((await client.worker.hear())[0], BundleReady)
        assert client.file() == CONTENT
        mine = sum(len(PIECES[number]) for number in range(rank, BLOB.count, 3))
        assert client.from_members == BLOB.size - mine


async def test_who_comes_late_has_it_from_the_others_alone(make_peer, lease_of):
    first = await lease_of(await make_peer())
    await meet(first)
    await first.names_the_bundle()
    await first.gives(*EVERYTHING)
    await first.hears(BlobReceived)
    late = await lease_of(await make_peer())
    await late.names_the_bundle()
    await meet(first, late, epoch=1)
    await late.hears(BlobReceived)
    assert late.from_members == BLOB.size


async def test_a_flipped_byte_is_found_and_named_and_comes_from_elsewhere(make_peer, lease_of):
    clients = [await lease_of(await make_peer()) for _ in range(3)]
    for client in clients[:2]:
        await client.names_the_bundle()
        await client.gives(*EVERYTHING)
        await client.hears(BlobReceived)
    spoilt = clients[0].worker.folder / "data" / "x"
    spoilt.write_bytes(bytes(len(CONTENT)))  # as a bad disk would, or a bad peer
    await meet(*clients)
    await clients[2].names_the_bundle()
    await clients[2].hears(BlobReceived)
    assert clients[2].file() == CONTENT
    lies = [word for word in clients[2].told if isinstance(word, BlobLie)]
    assert all(lie.rank == 0 for lie in lies)
    assert len(lies) <= 1


async def test_only_a_wrong_peer_to_ask_is_named_and_the_client_gives_the_rest(make_peer, lease_of):
    clients = [await lease_of(await make_peer()) for _ in range(2)]
    await clients[0].names_the_bundle()
    await clients[0].gives(*EVERYTHING)
    await clients[0].hears(BlobReceived)
    (clients[0].worker.folder / "data" / "x").write_bytes(b"?" * len(CONTENT))
    await meet(*clients)
    await clients[1].names_the_bundle()
    lie = await clients[1].hears(BlobLie)
    assert (lie.rank, lie.blob) == (0, BLOB.name)
    await clients[1].gives(*EVERYTHING)
    await clients[1].hears(BlobReceived)
    assert clients[1].file() == CONTENT


async def test_a_client_that_was_cut_off_goes_on_where_it_was(make_peer, lease_of):
    peer = await make_peer()
    client = await lease_of(peer)
    await client.names_the_bundle()
    await client.gives(1, 2)
    await client.hears_that_it_got({1, 2})
    await client.session.close()
    await peer.has_told(1)

    again = await lease_of(peer, reservation="00000000-0000-4000-8000-000000000002")
    assert await again.names_the_bundle() == {1, 2}
    await again.gives(*(EVERYTHING - {1, 2}))
    await again.hears(BlobReceived)
    assert again.file() == CONTENT
    await again.session.send(EndLease())
    await again.hears(LeaseEnded)
    assert list((peer.folder / "jobs").iterdir()) == []


async def test_another_client_takes_the_place_of_what_was_kept(make_peer, lease_of, monkeypatch):
    peer = await make_peer()
    client = await lease_of(peer)
    await client.names_the_bundle()
    await client.gives(1)
    await client.hears_that_it_got({1})
    await client.session.close()
    await peer.has_told(1)
    assert len(list((peer.folder / "jobs").iterdir())) == 1
    peer.door._context.kept.make_room("somebody else", 0)
    async with asyncio.timeout(10):
        while list((peer.folder / "jobs").iterdir()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "say",
    [
        (BlobManifest(blob=bytes(32)), BLOB.encoded),
        (BlobPiece(blob=BLOB.name, number=1), b"abc"),
        (BlobPiece(blob=BLOB.name, number=8000), b"abc"),
        (BlobManifest(blob=BLOB.name), BLOB.encoded),
    ],
)
async def test_a_client_that_sends_something_else_than_it_said_loses_the_lease(lease_of, make_peer, say):
    client = await lease_of(await make_peer())
    await client.names_the_bundle()
    await client.session.send(*say)
    with pytest.raises(PeerMisbehaved):
        await client.session.receive(LeaseEnded)


def test_bits_and_numbers():
    assert from_bits(as_bits({0, 3, 9}, 10), 10) == {0, 3, 9}
    for bits, count in ((b"", 1), (b"\0\0", 8), (b"\x01", 7)):
        with pytest.raises(MalformedMessage):
            from_bits(bits, count)


@given(st.integers(0, 100), st.data())
def test_the_first_piece_is_the_highest_bit_of_the_first_byte(count: int, data: st.DataObject) -> None:
    numbers = data.draw(st.sets(st.integers(0, count - 1))) if count else set[int]()
    bits = bytearray(-(-count // 8))
    for number in numbers:
        bits[number // 8] |= 0x80 >> number % 8
    assert as_bits(numbers, count) == bytes(bits)
    assert from_bits(bytes(bits), count) == numbers


async def test_a_member_that_says_what_it_has_without_end_is_heard_at_a_pace(monkeypatch):
    monkeypatch.setattr(lease_blobs, "HAVE_BYTES_AT_ONCE", 5.0)
    monkeypatch.setattr(lease_blobs, "HAVE_BYTES_A_SECOND", 0.001)
    blobs = LeaseBlobs(None, None, None, None, None, None)
    heard, side = list[int](), mock.Mock(blob=BLOB)
    side.heard = mock.AsyncMock(side_effect=lambda rank, *_: heard.append(rank))
    blobs._bundle = side

    async def says(rank):
        for _ in range(10):
            await blobs.heard(rank, BlobHave(blob=BLOB.name, pieces=b"\xff\xff"), memoryview(b""))

    saying = [asyncio.create_task(says(rank)) for rank in (1, 2)]
    for _ in range(50):
        await asyncio.sleep(0)
    assert sorted(heard) == [1, 1, 2, 2]
    await blobs.heard(1, BlobGot(blob=BLOB.name, numbers=[]), memoryview(b""))  # costs no more than a word
    assert len(heard) == 5
    for task in saying:
        task.cancel()


async def test_what_a_member_said_too_early_and_wrong_costs_this_peer_no_lease(make_peer, lease_of):
    clients = [await lease_of(await make_peer()) for _ in range(2)]
    await meet(*clients)
    liar = clients[0].peer.running_leases.find(RESERVATION).mesh
    async with asyncio.timeout(10):
        while True:
            with suppress(Unreachable):
                await liar.say(1, BlobHave(blob=BLOB.name, pieces=b"\xff" * 9))
                break
            await asyncio.sleep(0.01)
    assert await clients[1].names_the_bundle() == set()
    await clients[1].gives(*EVERYTHING)
    await clients[1].hears(BlobReceived)
