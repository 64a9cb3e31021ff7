"""Leases with a true token: the client's words in order, out of order, twice, and wrong."""

from __future__ import annotations

import asyncio
import hashlib
import time
from contextlib import suppress

import msgspec

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.messages import BlobManifest, BlobPiece
from axonp2p.blobs.pieces import book_of
from axonp2p.errors import AxonError
from axonp2p.jobs.messages import (
    EndLease,
    FetchLog,
    LeaseEnded,
    LeaseTaken,
    Member,
    PeerMessage,
    SetRoster,
    SignReceipt,
    TakeLease,
    ToWorker,
)
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.sandbox.messages import Start
from axonp2p.training.messages import ToWorkerTraining
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.ways import BareWhereabouts
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.envelope import sign
from axonp2p.wire.frame import pack_frame
from axonp2p.wire.schema import SCHEMAS
from tests.fakes import make_receipt
from tests.laboratory.fuzzed_world import HANG_S, Found, World
from tests.laboratory.message_values import CannotBuild
from tests.laboratory.mutations import mutated
from tests.system.small_job import TASK

ENDS_S = 3 * HANG_S
"""A worker that is ended may take as long as the sandbox gives it."""
_JOB = b'name = "line"\ntask = "task.py"\n[train]\nrounds = 3\n'

Words = list[tuple[Message, bytes]]


async def feed_true_leases(world: World, found: Found) -> None:
    """One lease, from its token to its end."""
    assert world.peer_address
    assert world.peer_address.fingerprint
    key, caller, uuid = world.values.key(), world.caller(), new_uuid()
    async with HttpCaller(world.tracker, called="the tracker", local_address=caller) as line:
        token = await reserve(
            line, key, [world.peer_id], uuid=uuid, kinds=["train"], seconds=60, now=time.time()
        )  # fmt: skip
    place = BareWhereabouts(world.peer_id, [world.peer_address.host_port], world.peer_address.fingerprint)
    session = await dial(key, place, called="the fuzzed", local_address=caller)
    try:
        taking = TakeLease(
            token=encode(token), job="fuzzed", kind="train", cores=1, memory_mb=512, schema=SCHEMAS["train"],
            grace=world.chance.choice((0, 0, 1)),
        )  # fmt: skip
        found.inputs += 1
        await session.send(taking)
        async with asyncio.timeout(HANG_S):
            taken, _ = await session.receive(LeaseTaken)
        receipt = msgspec.structs.replace(
            make_receipt(key, key, uuid), peer=world.peer_id, job="fuzzed", issued=int(time.time())
        )
        words = [*_words(world, uuid, taken.row), (SignReceipt(receipt=encode(sign(key, receipt))), b"")]
        if world.chance.random() < 0.5:
            world.chance.shuffle(words)
        await _say(world, found, session, [*words, (EndLease(), b"")])
    except TimeoutError:
        found.hangs += 1
    finally:
        await session.close()


def _words(world: World, uuid: str, row: bytes) -> Words:
    files = [("job.toml", _JOB), ("task.py", TASK.replace("PAUSE", "0").encode())]
    manifest = Manifest(
        files=[BlobFile(path=name, size=len(data), blake3=book_of(data).hashes) for name, data in files]
    )
    packed = encode(manifest)
    name = hashlib.sha256(packed).digest()
    words: Words = [
        (SetRoster(epoch=1, rank=0, members=[Member(rank=0, reservation=uuid, row=row)]), b""),
        (BlobManifest(blob=name), packed),
    ]
    words += [(BlobPiece(blob=name, number=number), data) for number, (_, data) in enumerate(files)]
    assert Blob(manifest).count == len(files)
    for _ in range(world.chance.choice((0, 1, 4))):
        with suppress(CannotBuild):
            order = world.values.any_of(world.chance.choice((ToWorkerTraining, ToWorkerTraining, Start)))
            words.append((ToWorker(), mutated(world.chance, pack_frame(order))[: 2**20]))
    words.append((FetchLog(), b""))
    return words


async def _say(world: World, found: Found, session: Session, words: Words) -> None:
    """All of them, most as they are; then a true end, which must be heard of."""
    ended = asyncio.create_task(_until_ended(session))
    wrong = world.chance.choice((0.0, 0.1, 0.3))
    try:
        for message, payload in words:
            found.inputs += 1
            for _ in range(2 if world.chance.random() < wrong / 2 else 1):
                header = mutated(world.chance, encode(message)) if world.chance.random() < wrong else encode(message)
                if payload and world.chance.random() < wrong:
                    payload = mutated(world.chance, payload)
                await session._line.send_bytes(len(header).to_bytes(4) + header + payload[: 2**20])
            if world.chance.random() < 0.2:
                await asyncio.sleep(world.chance.choice((0.0, 0.1, 2.0)))
        async with asyncio.timeout(ENDS_S):
            await ended
    except (ConnectionError, RuntimeError):
        return  # it has ended the session
    finally:
        ended.cancel()


async def _until_ended(session: Session) -> None:
    with suppress(AxonError):
        while not isinstance((await session.receive(PeerMessage))[0], LeaseEnded):
            pass
