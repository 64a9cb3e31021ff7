"""A driver brings blobs to peers whose conversation the test plays."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from axonp2p.blobs.manifest import Blob, as_bits, read_manifest
from axonp2p.blobs.messages import (
    BlobDropped,
    BlobGot,
    BlobHave,
    BlobManifest,
    BlobPiece,
    BlobReceived,
    BlobRefused,
    DropBlob,
)
from axonp2p.blobs.pieces import PIECE_BYTES
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.run.blob_office import AT_ONCE, BlobOffice
from axonp2p.clock import SystemClock
from axonp2p.errors import JobFileWrong, Refused, Unreachable
from axonp2p.jobs.bundle import Bundle, alone
from axonp2p.jobs.messages import WorkerEnded
from axonp2p.transport.sessions.session import Session
from tests.unit.client.conftest import Daemon
from tests.unit.client.run.test_crew import crew_of, rosters
from tests.unit.client.run.test_sending import lease_from


class Holding(Daemon):
    """A daemon that holds many blobs, and passes all on to those of its group, as if over links.

    `slow`: it has not heard `DropBlob` until the test says so. `full`: it takes none. `still`: it confirms nothing.
    """

    def __init__(self, group: list[Holding], *, slow: bool = False, full: bool = False, still: bool = False) -> None:
        super().__init__()
        self.group, self.full, self.still = group, full, still
        self.blobs: dict[bytes, Blob] = {}
        self.held: defaultdict[bytes, dict[int, bytes]] = defaultdict(dict)
        self.from_client = 0
        self.most_at_once = 0
        self.may_drop = asyncio.Event()
        if not slow:
            self.may_drop.set()
        group.append(self)

    async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
        match message:
            case BlobManifest(blob=name) if self.full:
                await session.send(BlobRefused(blob=name, reason="this peer's disk has no room for 1 GB"))
            case BlobManifest(blob=name):
                blob = self.blobs[name] = read_manifest(payload, name)
                self.most_at_once = max(self.most_at_once, len(self.blobs) - self._whole())
                await session.send(BlobHave(blob=name, pieces=as_bits(self.held[name], blob.count)))
                for other in self.group:
                    await self.pass_from(name, other)
                if not self.missing(name):
                    await session.send(BlobReceived(blob=name))
            case BlobPiece() if self.still:
                pass
            case BlobPiece(blob=name, number=number):
                self.from_client += len(payload)
                await self._take(name, {number: payload})
                for other in self.group:
                    await other.pass_from(name, self)
            case DropBlob(blob=name):
                for number in self.held[name] if not self.may_drop.is_set() else ():
                    await session.send(BlobGot(blob=name, numbers=[number]))
                await self.may_drop.wait()
                self.blobs.pop(name, None)
                self.held.pop(name, None)
                await session.send(BlobDropped(blob=name))
            case _:
                await super()._answer(session, message, payload)

    def missing(self, name: bytes) -> int:
        return self.blobs[name].count - len(self.held[name])

    def _whole(self) -> int:
        return sum(not self.missing(name) for name in self.blobs)

    async def pass_from(self, name: bytes, other: Holding) -> None:
        if name in self.blobs and other is not self and not self.still:
            await self._take(name, other.held[name])

    async def _take(self, name: bytes, pieces: dict[int, bytes]) -> None:
        new = {number: piece for number, piece in pieces.items() if number not in self.held[name]}
        if new and self.session:
            self.held[name] |= new
            await self.session.send(BlobGot(blob=name, numbers=list(new)))
            if not self.missing(name):
                await self.session.send(BlobReceived(blob=name))


@pytest.fixture
def office() -> BlobOffice:
    return BlobOffice(SystemClock(), lambda event: None)


def array(folder: Path, sign: str, pieces: int = 3) -> Bundle:
    path = folder / f"array-{sign}"
    path.write_bytes(sign.encode() * (pieces * PIECE_BYTES - 5))
    return alone(path)


async def group_of(start_peer: Any, count: int, **settings: Any) -> tuple[list[Holding], list[Lease]]:
    group: list[Holding] = []
    names = [f"peer-{number}" for number in range(count)]
    leases = [await lease_from(await start_peer(name, Holding(group, **settings)), name) for name in names]
    return group, leases


async def end(office: BlobOffice, leases: list[Lease]) -> None:
    await office.close()
    await asyncio.gather(*(lease.end() for lease in leases))


async def test_each_piece_of_each_blob_leaves_about_once_and_late_ones_cost_nothing(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    group, leases = await group_of(start_peer, 3)
    contents = [array(tmp_path, sign) for sign in "abcdef"]
    first = [(rank, content) for content in contents for rank in (0, 1)]
    await asyncio.gather(*(office.bring(rank, leases[rank], content) for rank, content in first))
    size = sum(content.size for content in contents)
    assert office.sent_bytes == size
    for content in contents:
        await office.bring(7, leases[2], content)
    assert office.sent_bytes == size == sum(daemon.from_client for daemon in group)
    assert max(daemon.most_at_once for daemon in group) <= AT_ONCE
    for daemon in group:
        for content in contents:
            whole = b"".join(piece for _, piece in sorted(daemon.held[content.blob.name].items()))
            assert whole == content.files[0].source.read_bytes()
    await end(office, leases)


async def test_what_is_there_is_not_brought_again_and_two_that_ask_wait_for_one(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    (daemon,), leases = await group_of(start_peer, 1)
    content = array(tmp_path, "a")
    await asyncio.gather(*(office.bring(0, leases[0], content) for _ in range(3)))
    await office.bring(0, leases[0], content)
    assert [type(word) for word in daemon.heard].count(BlobManifest) == 1
    await end(office, leases)


async def test_after_a_drop_it_is_brought_anew_and_what_was_said_before_counts_for_nothing(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    (daemon,), leases = await group_of(start_peer, 1, slow=True)
    content = array(tmp_path, "a")
    await office.bring(0, leases[0], content)
    office.drop(content.blob.name)
    office.drop(content.blob.name)
    again = asyncio.create_task(office.bring(0, leases[0], content))
    while not any(isinstance(word, DropBlob) for word in daemon.heard):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert not again.done()
    daemon.may_drop.set()
    await again
    assert office.sent_bytes == 2 * content.size
    assert [type(word) for word in daemon.heard if isinstance(word, BlobManifest | DropBlob)] == [
        *(BlobManifest, DropBlob, BlobManifest)
    ]
    await end(office, leases)


async def test_somebody_who_waits_for_a_blob_that_is_dropped_is_told(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    (daemon,), leases = await group_of(start_peer, 1, still=True)
    content = array(tmp_path, "a")
    waiting = asyncio.create_task(office.bring(0, leases[0], content))
    while not daemon.blobs:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    office.drop(content.blob.name)
    with pytest.raises(Refused, match="was dropped"):
        await waiting
    await end(office, leases)


async def test_somebody_who_is_cancelled_leaves_it_on_its_way(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    (daemon,), leases = await group_of(start_peer, 1)
    content = array(tmp_path, "a")
    waiting = asyncio.create_task(office.bring(0, leases[0], content))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await office.bring(0, leases[0], content)
    assert [type(word) for word in daemon.heard].count(BlobManifest) == 1
    await end(office, leases)


async def test_a_peer_that_has_no_room_is_said_so_keeps_its_lease_and_is_asked_again(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    (daemon,), leases = await group_of(start_peer, 1, full=True)
    content = array(tmp_path, "a")
    with pytest.raises(Refused, match="peer peer-0 does not take a blob: this peer's disk has no room for 1 GB"):
        await office.bring(0, leases[0], content)
    assert leases[0].gone == ""
    daemon.full = False
    await office.bring(0, leases[0], content)
    await end(office, leases)


async def test_a_peer_that_goes_ends_its_own_part_and_others_get_all(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    group, leases = await group_of(start_peer, 2)
    group[0].still = True
    content = array(tmp_path, "a")
    lost = asyncio.create_task(office.bring(0, leases[0], content))
    while not group[0].blobs:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert group[0].session is not None
    await group[0].session.close()
    with pytest.raises(Unreachable):
        await lost
    office.gone(0)
    await office.bring(1, leases[1], content)
    with pytest.raises(Unreachable):
        await office.bring(0, leases[0], content)
    await end(office, leases)


async def test_a_peer_that_is_back_is_asked_and_sent_what_it_lacks_alone(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    group: list[Holding] = []
    daemon = Holding(group)
    peer = await start_peer("otter", daemon)
    before = await lease_from(peer, "otter")
    content = array(tmp_path, "a")
    await office.bring(0, before, content)
    await before._session.close()
    await before._reading
    del daemon.held[content.blob.name][1]
    again = await lease_from(peer, "otter")
    await office.bring(0, again, content)
    assert office.sent_bytes == content.size + len(content.piece(1))
    await end(office, [before, again])


async def test_a_file_that_changed_is_never_sent(start_peer: Any, tmp_path: Path, office: BlobOffice) -> None:
    _, leases = await group_of(start_peer, 1)
    content = array(tmp_path, "a")
    content.files[0].source.write_bytes(b"x" * content.size)
    with pytest.raises(JobFileWrong, match="changed while it was sent"):
        await office.bring(0, leases[0], content)
    assert leases[0].gone == ""
    await end(office, leases)


async def test_a_file_that_is_too_large_is_refused_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axonp2p.jobs.bundle.MOST_PIECES", 2)
    array(tmp_path, "a", pieces=2)
    with pytest.raises(JobFileWrong, match="has 3 pieces; at most 524 KB travel as one blob"):
        array(tmp_path, "a")


async def test_a_peer_on_no_roster_is_put_on_it_since_members_pass_on(start_peer: Any, tmp_path: Path) -> None:
    group, leases = await group_of(start_peer, 2)
    crew = crew_of(*leases, folder=tmp_path)
    content = array(tmp_path, "a")
    for rank in (0, 1, 1):
        await crew.bring(rank, content)
    while len(rosters(group[0])) < 2 or not rosters(group[1]):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert (rosters(group[0]), rosters(group[1])) == ([(1, 0, [0]), (2, 0, [0, 1])], [(2, 1, [0, 1])])
    crew.drop(content.blob.name)
    await end(crew.blobs, leases)


async def test_a_worker_that_ends_meanwhile_ends_the_bringing(
    start_peer: Any, tmp_path: Path, office: BlobOffice
) -> None:
    (daemon,), leases = await group_of(start_peer, 1, still=True)
    bringing = asyncio.create_task(office.bring(0, leases[0], array(tmp_path, "a")))
    while not daemon.blobs:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert daemon.session is not None
    await daemon.session.send(WorkerEnded(reason="used 300 MiB of memory", limit="memory"))
    while not leases[0].gone:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    office.gone(0)
    with pytest.raises(Unreachable, match="its worker ended: used 300 MiB"):
        await bringing
    await end(office, leases)
