"""The client gives a bundle to peers whose conversation the test plays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from axonp2p.blobs import seeding
from axonp2p.blobs.messages import BlobGot, BlobLie, BlobManifest, BlobReceived
from axonp2p.blobs.pieces import PIECE_BYTES
from axonp2p.client.events.bundle_events import BundleProgress, PeerHelped, PieceWrong
from axonp2p.client.events.event import Event
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.leasing.lease_sides import Reservation
from axonp2p.client.leasing.take_lease import LeaseRequest, take_lease
from axonp2p.client.run.sending import Sending
from axonp2p.clock import SystemClock
from axonp2p.errors import AxonError, JobFileWrong, error_classes
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.kinds.train.section import TrainJob
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.envelope import sign
from tests.fakes import HERE, key_of
from tests.unit.client.conftest import Daemon

CLIENT = key_of("client")
SIZES = {"task.py": 100, "data.bin": 3 * PIECE_BYTES + 5}


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    folder = tmp_path / "job"
    folder.mkdir()
    for number, (name, size) in enumerate(SIZES.items()):
        (folder / name).write_bytes(bytes([number]) * size)
    (folder / "job.toml").write_text("name = 'x'\n")
    return collect(folder, TrainJob(name="x", task="task.py", data=["data.bin"]))


async def lease_from(peer: Any, name: str) -> Lease:
    tracker = key_of("tracker")
    token = Token(
        uuid=new_uuid(), issuer=tracker.peer_id, client=CLIENT.peer_id, client_address="127.0.0.1",
        peers=[peer.key.peer_id], kinds=["train"], not_before=0, expires=2**33,
    )  # fmt: skip
    promise = Reservation(token.uuid, sign(tracker, token), "tracker lab", "https://lab:7070")
    return await take_lease(CLIENT, HERE, peer.row(), promise, LeaseRequest("x", "train", 1, 1), name=name)


class PassingOn(Daemon):
    """One of a few daemons that pass all on to each other, as if over links; `said` is what it says besides."""

    def __init__(self, group: list[PassingOn], *, apart: bool = False) -> None:
        super().__init__()
        self.group, self.apart = group, apart
        self.from_members = 0
        group.append(self)

    async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
        await super()._answer(session, message, payload)
        if isinstance(message, BlobManifest):
            for other in self.group:
                await self.pass_from(other)
        elif self.pieces:
            for other in self.group:
                if other.session and hasattr(other, "_blob"):
                    await other.pass_from(self)

    async def pass_from(self, other: PassingOn) -> None:
        new = {} if self.apart or other.apart or other is self else {
            number: piece for number, piece in other.pieces.items() if number not in self.pieces
        }  # fmt: skip
        if new and self.session:
            self.pieces |= new
            self.from_members += sum(map(len, new.values()))
            await self.session.send(BlobGot(blob=self._blob.name, numbers=list(new), from_members=self.from_members))
            if len(self.pieces) == self._blob.count:
                await self.session.send(BlobReceived(blob=self._blob.name))


async def test_each_piece_goes_out_about_once_and_late_ones_cost_nothing(start_peer: Any, bundle: Bundle) -> None:
    told: list[Event] = []
    sending, group = Sending(bundle, SystemClock(), told.append), []
    leases = [await lease_from(await start_peer(name, PassingOn(group)), name) for name in ("otter", "fox", "hare")]
    answers = await asyncio.gather(*(sending.deliver(rank, lease) for rank, lease in enumerate(leases[:2])))
    assert answers == ["", ""]
    # Two may be given the same piece only when the first has not been heard to have it.
    assert sending.sent_bytes == bundle.size
    assert await sending.deliver(7, leases[2]) == ""
    assert sending.sent_bytes == bundle.size
    assert sending.member_bytes == 2 * bundle.size
    assert {daemon.pieces[bundle.blob.count - 1] for daemon in group} == {bytes([1]) * 5}
    assert any(isinstance(event, BundleProgress) for event in told)
    assert not [event for event in told if isinstance(event, PeerHelped | PieceWrong)]
    await asyncio.gather(*(lease.end() for lease in leases))


async def test_who_has_nothing_from_others_is_helped_and_that_is_told(
    start_peer: Any, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeding, "HELP_AFTER_S", 0.1)
    told: list[Event] = []
    sending, group = Sending(bundle, SystemClock(), told.append), []
    first = await lease_from(await start_peer("otter", PassingOn(group)), "otter")
    second = await lease_from(await start_peer("fox", PassingOn(group, apart=True)), "fox")
    assert await sending.deliver(0, first) == ""
    assert await sending.deliver(1, second) == ""
    assert sending.sent_bytes == 2 * bundle.size
    assert [event for event in told if isinstance(event, PeerHelped)] == [PeerHelped(peer="fox")]
    await asyncio.gather(first.end(), second.end())


async def test_who_sent_wrong_bytes_is_told_by_name(start_peer: Any, bundle: Bundle) -> None:
    told: list[Event] = []

    class Telling(Daemon):
        async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
            if isinstance(message, BlobManifest):
                for rank in (0, 0, 999, 0):  # again and again, and of nobody
                    await session.send(BlobLie(blob=message.blob, rank=rank, number=2))
            await super()._answer(session, message, payload)

    sending = Sending(bundle, SystemClock(), told.append)
    leases = [
        await lease_from(await start_peer(name, daemon), name)
        for name, daemon in (("otter", Daemon()), ("fox", Telling()))
    ]
    assert await sending.deliver(0, leases[0]) == ""
    fed = asyncio.create_task(sending.deliver(1, leases[1]))
    while not (found := [event for event in told if isinstance(event, PieceWrong)]):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    found = [event for event in told if isinstance(event, PieceWrong)]
    assert found == [PieceWrong(peer="otter", told_by="fox", piece=2)]
    fed.cancel()
    await asyncio.gather(fed, *(lease.end() for lease in leases), return_exceptions=True)


async def test_a_file_that_changed_since_it_was_hashed_is_never_sent(start_peer: Any, bundle: Bundle) -> None:
    sending = Sending(bundle, SystemClock(), lambda event: None)
    daemon = Daemon()
    lease = await lease_from(await start_peer("otter", daemon), "otter")
    bundle.files[-1].source.write_bytes(b"other" * PIECE_BYTES)
    with pytest.raises(JobFileWrong, match="changed while it was sent"):
        await sending.deliver(0, lease)
    await lease.end()


async def test_a_peer_that_hangs_up_midway_is_said_so(start_peer: Any, bundle: Bundle) -> None:
    class HangingUp(Daemon):
        async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
            await super()._answer(session, message, payload)
            if self.pieces:
                await session.close()

    sending = Sending(bundle, SystemClock(), lambda event: None)
    lease = await lease_from(await start_peer("otter", HangingUp()), "otter")
    assert "was lost" in await sending.deliver(0, lease)
    await lease.end()


async def test_no_word_of_one_peer_about_the_bundle_ends_the_job(start_peer: Any, bundle: Bundle) -> None:
    """Every code of the family, also those that only this computer may speak of."""

    class Refusing(Daemon):
        def __init__(self, kind: type[AxonError]) -> None:
            super().__init__()
            self._kind = kind

        async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
            if isinstance(message, BlobManifest):
                await session.refuse(self._kind("this peer's disk has no room for 59.5 KB"))
            else:
                await super()._answer(session, message, payload)

    sending = Sending(bundle, SystemClock(), lambda event: None)
    good = await lease_from(await start_peer("otter", Daemon()), "otter")
    kinds = [kind for kind in error_classes().values() if kind is not AxonError]  # a mistake of its own tells nothing
    for rank, kind in enumerate(kinds, 1):
        name = f"fox-{rank}"
        lease = await lease_from(await start_peer(name, Refusing(kind)), name)
        assert await sending.deliver(rank, lease) == f"peer {name}: this peer's disk has no room for 59.5 KB"
        await lease.end()
    assert await sending.deliver(0, good) == ""
    await good.end()
