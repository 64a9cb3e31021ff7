"""A real peer with a real tracker: what it says of itself, what it costs, what it refuses, how it leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.messages import BlobManifest, BlobPiece, BlobReceived
from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import AxonError, Busy, TokenRefused, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.messages import (
    EndLease,
    FetchLog,
    LeaseEnded,
    LeaseTaken,
    LogPart,
    PeerMessage,
    ReceiptSigned,
    SignReceipt,
    TakeLease,
    WorkerEnded,
    WorkerStarted,
)
from axonp2p.ledger.ledger_client import balances
from axonp2p.ledger.receipt import Receipt
from axonp2p.peers.capability import Capability, Need, as_map, read_capability
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.reservation.token import Token
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import announce, query
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.envelope import encode_signed, sign
from axonp2p.wire.frame import FRAME_LIMIT
from axonp2p.wire.schema import SCHEMAS
from tests.system.one_peer import CLIENT, Swarm
from tests.system.processes import Processes

OTHER = PrivateKey(b"o" * 32)
IDLE_LIMIT_KB = 66 * 1024


@pytest.fixture(scope="module")
def swarm(tmp_path_factory):
    base = tmp_path_factory.mktemp("peer")
    with Processes(base, warm=False) as processes:  # its memory is looked at
        processes.start_peers("otter")
        yield Swarm(processes, base / "otter")


def memory_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def test_its_row_says_what_it_lends(swarm):
    offer = read_capability(swarm.row.capability)
    assert (offer.cores, offer.memory_mb, offer.slots, offer.free) == (1, 1200, 1, 1)
    assert offer.gflops > 0
    assert "torch" in offer.packages
    assert swarm.row.addresses[0].startswith("127.0.0.1:")
    assert (swarm.home / "ready").read_text().split() == [swarm.row.peer, swarm.row.addresses[0]]


def test_an_idle_daemon_is_small_and_holds_no_torch(swarm):
    assert memory_kb(swarm.pid) < IDLE_LIMIT_KB
    maps = Path(f"/proc/{swarm.pid}/maps").read_text()
    assert "libtorch" not in maps
    assert "numpy" not in maps


def test_an_idle_daemon_uses_no_processor(swarm):
    def ticks() -> int:
        fields = Path(f"/proc/{swarm.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(3)
    assert ticks() - before <= 3  # hundredths of a second: 1 % of a core


def test_a_second_daemon_on_the_same_home_is_told_so(swarm):
    command = [sys.executable, "-m", "peer_daemon.main", "run", "--home", str(swarm.home)]
    second = subprocess.run([*command, "--tracker", swarm.processes.tracker], capture_output=True, text=True)
    assert second.returncode == 6
    assert f"error AX-606: a peer already runs with {swarm.home} (pid {swarm.pid})" in second.stderr
    assert (swarm.home / "ready").exists()


# --- refused, and nothing changed -----------------------------------------------------------------


@pytest.mark.sandbox
def test_bad_tokens_are_refused(swarm):
    async def conversation() -> None:
        good = encode(swarm.token)
        another_peer = sign(OTHER, Row(
            peer=OTHER.peer_id, name="other", sequence=1, addresses=["127.0.0.1:9"], certificate=b"x" * 32,
            expires=int(time.time()) + 300, capability=as_map(Capability(
                cores=1, memory_mb=512, disk_mb=512, gflops=1, slots=1, free=1, python="3", packages={},
                kinds=["train"],
            )),
        ))  # fmt: skip
        async with swarm.tracker() as tracker:
            await announce(tracker, another_peer)
        short_lived = encode(await swarm.reserve(seconds=1))
        own_made = Token(
            uuid=new_uuid(), issuer=OTHER.peer_id, client=CLIENT.peer_id, client_address="127.0.0.1",
            peers=[swarm.row.peer], kinds=["train"], not_before=0, expires=int(time.time()) + 60,
        )  # fmt: skip
        await asyncio.sleep(1.2)
        for token, options, reason in (
            (short_lived, {}, "expired"),
            (encode(await swarm.reserve(peer=OTHER.peer_id)), {}, "for other peers"),
            (good, {"key": OTHER}, "belongs to another key"),
            (good, {"local_address": "127.0.0.2"}, "the caller is at 127.0.0.2"),
            (encode_signed(OTHER, own_made), {}, "none of this peer's trackers"),
        ):
            with pytest.raises(TokenRefused, match=reason):
                await swarm.take(token, **options)
            await swarm.a_good_lease_works()

    asyncio.run(conversation())


@pytest.mark.sandbox
def test_a_token_in_use_is_refused_and_its_lease_goes_on(swarm):
    async def conversation() -> None:
        session = await swarm.take(encode(swarm.token))
        with pytest.raises(Busy, match="in use"):
            await swarm.take(encode(swarm.token))
        await session.send(FetchLog())
        while not isinstance((await session.receive(PeerMessage))[0], LogPart):
            pass
        await session.close()

    asyncio.run(conversation())


FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def listen(session: Session, kind: Any, said: list[Message]) -> None:
    """Hear all that the peer says until it says no or hangs up, which raises an `AxonError`."""
    async with asyncio.timeout(10):
        while True:
            message, _ = await session.receive(kind)
            said.append(message)


async def ends(session: Session) -> None:
    """The peer says no, or hangs up."""
    with pytest.raises(AxonError):
        await listen(session, LeaseTaken, [])
    await session.close()


@pytest.mark.sandbox
def test_a_flipped_bit_anywhere_in_a_token_is_refused(swarm):
    good = encode(swarm.token)

    @FEW
    @given(st.integers(0, len(good) * 8 - 1))
    def flip(position: int) -> None:
        bad = bytearray(good)
        bad[position // 8] ^= 1 << position % 8

        async def conversation() -> None:
            with pytest.raises(AxonError):
                await swarm.take(bytes(bad))

        asyncio.run(conversation())

    flip()
    asyncio.run(swarm.a_good_lease_works())


@pytest.mark.sandbox
def test_rubbish_on_a_session_ends_that_session_only(swarm):
    whole = encode(
        TakeLease(
            schema=SCHEMAS["train"], token=encode(swarm.token), job="digits", kind="train", cores=1, memory_mb=1024
        )
    )
    frame = len(whole).to_bytes(4, "big") + whole

    @FEW
    @given(st.one_of(st.binary(max_size=2000), st.integers(0, len(frame) - 1).map(lambda cut: frame[:cut])))
    def rubbish(noise: bytes) -> None:
        async def conversation() -> None:
            session = await swarm.dial()
            await session._line.send_bytes(noise)
            await ends(session)

        asyncio.run(conversation())

    async def oversized() -> None:
        for noise in (bytes(FRAME_LIMIT + 2), b"\xff" * 100, (2**31).to_bytes(4, "big") + bytes(FRAME_LIMIT - 4)):
            session = await swarm.dial()
            with suppress(ConnectionError, aiohttp.ClientError):  # refused while it was still being sent
                await session._line.send_bytes(noise)
            await ends(session)

    rubbish()
    asyncio.run(oversized())
    asyncio.run(swarm.a_good_lease_works())


@pytest.mark.sandbox
def test_rubbish_in_the_middle_of_a_lease_ends_it_and_frees_the_slot(swarm):
    async def conversation() -> None:
        session = await swarm.take(encode(swarm.token))
        await session._line.send_bytes(b"\x00\x00\x00\x02\x81\xa1rubbish")
        with pytest.raises(AxonError):
            await listen(session, PeerMessage, [])
        async with asyncio.timeout(60):
            # The slot is free once the worker is gone.
            while not await swarm.a_good_lease_works(unless_busy=True):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    asyncio.run(conversation())


@pytest.mark.sandbox
def test_rubbish_before_a_session_begins_is_survived(swarm):
    host, port = swarm.row.addresses[0].split(":")
    url = f"https://{host}:{port}"

    @FEW
    @given(st.binary(max_size=3000))
    def rubbish(noise: bytes) -> None:
        async def conversation() -> None:
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(noise)
            writer.close()
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as http:
                async with http.post(f"{url}/v1/session", data=noise) as answer:
                    assert answer.status == 405
                async with http.get(f"{url}/{noise[:20].hex()}") as answer:
                    assert answer.status == 404
                async with http.ws_connect(f"{url}/v1/session") as line:
                    await line.receive()
                    await line.send_bytes(noise)
                    while not line.closed:
                        await line.receive()

        asyncio.run(conversation())

    rubbish()
    asyncio.run(swarm.a_good_lease_works())


# --- a lease in a real sandbox --------------------------------------------------------------------


@pytest.mark.sandbox
def test_a_lease_starts_a_worker_takes_files_signs_receipts_and_leaves_nothing(swarm):
    content = b"x" * 700_000

    async def conversation() -> None:
        uuid = new_uuid()
        async with swarm.tracker() as tracker:
            token = await reserve(
                tracker, CLIENT, [swarm.row.peer], uuid=uuid, kinds=["train"], seconds=600, now=time.time()
            )
        session = await swarm.take(encode(token))
        blob = Blob(Manifest(files=[BlobFile(path="data/x", size=len(content), blake3=book_of(content).hashes)]))
        await session.send(BlobManifest(blob=blob.name), blob.encoded)
        for number in range(blob.count):
            piece = content[number * PIECE_BYTES : (number + 1) * PIECE_BYTES]
            await session.send(BlobPiece(blob=blob.name, number=number), piece)
        awaited = {BlobReceived, WorkerStarted}
        async with asyncio.timeout(60):
            while awaited:
                message, _ = await session.receive(PeerMessage)
                assert not isinstance(message, WorkerEnded), message
                awaited.discard(type(message))
        assert (swarm.home / "jobs" / uuid / "bundle" / "data" / "x").read_bytes() == content
        receipt = Receipt(
            reservation=uuid, number=1, job="digits", client=CLIENT.peer_id, peer=swarm.row.peer, round=0,
            flops=10**12, samples=10, milliseconds=10, issued=int(time.time()),
        )  # fmt: skip
        await session.send(SignReceipt(receipt=encode_signed(CLIENT, receipt)))
        assert isinstance((await session.receive(PeerMessage))[0], ReceiptSigned)
        await session.send(EndLease())
        assert isinstance((await session.receive(PeerMessage))[0], LeaseEnded)
        assert list((swarm.home / "jobs").iterdir()) == []
        await session.close()
        async with swarm.tracker() as tracker, asyncio.timeout(60):
            # The client hands nothing in: the peer does, at the end of the lease.
            while (await balances(tracker, [swarm.row.peer])).receipts == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    asyncio.run(conversation())
    assert memory_kb(swarm.pid) < IDLE_LIMIT_KB


@pytest.mark.sandbox
def test_the_row_says_that_the_slot_is_taken_and_then_that_it_is_free(swarm):
    async def until_free(free: int) -> None:
        async with asyncio.timeout(10), swarm.tracker() as tracker:
            while (await query(tracker, as_map(Need()), 10, now=time.time())).fitting != free:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def conversation() -> None:
        # The row that another test announced under a key of its own has gone or fits as well: count from here.
        rows = len(await swarm.rows())
        session = await swarm.take(encode(swarm.token))
        await until_free(rows - 1)
        await session.close()
        await until_free(rows)

    asyncio.run(conversation())


def test_a_peer_without_bubblewrap_says_so_in_its_row(swarm, tmp_path):
    command = [sys.executable, "-m", "peer_daemon.main", "run", "--home", str(tmp_path / "home"), "--name", "bare"]
    options = ["--tracker", swarm.processes.tracker, "--listen", "127.0.0.1:0"]
    with (tmp_path / "out").open("wb") as out:
        bare = subprocess.Popen([*command, *options], env={**os.environ, "PATH": "/nowhere"}, stdout=out, stderr=out)
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "home" / "ready").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        assert "bubblewrap" in (tmp_path / "out").read_text()
        assert "bare" not in [row.name for row in asyncio.run(swarm.rows())]
    finally:
        bare.terminate()
        assert bare.wait(60) == 0


# --- the end, last in this file -------------------------------------------------------------------


@pytest.mark.sandbox
def test_it_leaves_at_once_and_whole(swarm):
    """SIGTERM ends leases, withdraws the row, ends with 0; what a crash leaves behind is removed at the next start."""

    async def conversation() -> None:
        session = await swarm.take(encode(swarm.token))
        process = swarm.processes.process("otter")
        process.send_signal(signal.SIGTERM)
        said: list[Message] = []
        with pytest.raises(Unreachable):
            await listen(session, PeerMessage, said)
        assert said[-1] == LeaseEnded(reason="the peer is stopping")
        await session.close()
        assert await asyncio.to_thread(process.wait, 20) == 0
        assert "otter" not in [row.name for row in await swarm.rows()]
        assert not (swarm.home / "ready").exists()
        assert list((swarm.home / "jobs").iterdir()) == []

    asyncio.run(conversation())
    (swarm.home / "jobs" / "left-by-a-crash").mkdir()
    swarm.processes.start_peers("otter")
    assert list((swarm.home / "jobs").iterdir()) == []
    assert asyncio.run(swarm.find()).sequence > swarm.row.sequence
