"""Who is on which roster while peers come: those in the job, and those to which the bundle is still passed on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from axonp2p.client.leasing.lease import Lease
from axonp2p.client.ledger.receipts import ReceiptBook, ReceiptOffice
from axonp2p.client.run.blob_office import BlobOffice
from axonp2p.client.run.crew import LeasedCrew, WorkListener
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.clock import SystemClock
from axonp2p.jobs.messages import SetRoster
from tests.fakes import AtOnce
from tests.unit.client.conftest import Daemon
from tests.unit.client.ledger.test_receipts import done
from tests.unit.client.run.test_sending import CLIENT, lease_from


async def leases_from(start_peer: Any, daemons: dict[str, Daemon]) -> list[Lease]:
    return [await lease_from(await start_peer(name, daemon), name) for name, daemon in daemons.items()]


async def let_go(lease: Lease) -> None:
    """Nobody's session is lost here."""


def no_blobs() -> BlobOffice:
    return BlobOffice(SystemClock(), lambda event: None)


def crew_of(*leases: Lease, folder: Path) -> LeasedCrew:
    return LeasedCrew(
        dict(enumerate(leases)), JobFolder(folder), AtOnce(), cast(ReceiptOffice, None), let_go, no_blobs()
    )


def rosters(daemon: Daemon) -> list[tuple[int, int, list[int]]]:
    """Epoch, own rank and ranks of each roster that it was told."""
    found = [word for word in daemon.heard if isinstance(word, SetRoster)]
    return [(word.epoch, word.rank, [member.rank for member in word.members]) for word in found]


async def test_a_newcomer_is_on_every_roster_before_it_is_in_the_job(start_peer: Any, tmp_path: Path) -> None:
    daemons = {name: Daemon() for name in ("otter", "fox", "hare", "wren")}
    otter, fox, hare, wren = await leases_from(start_peer, daemons)
    crew = crew_of(otter, fox, folder=tmp_path)
    crew.introduce()
    await crew.set_members([0, 1])
    assert crew.expect(hare) == 2
    assert crew.present.keys() == {0, 1}
    await crew.set_members([0, 1])
    crew.turn_away(2)
    assert crew.expect(wren) == 3
    crew.add(3)
    await crew.set_members([0, 1, 3])
    assert crew.present.keys() == {0, 1, 3}
    assert rosters(daemons["fox"]) == [
        (1, 1, [0, 1]), (2, 1, [0, 1]), (3, 1, [0, 1, 2]), (4, 1, [0, 1, 2]), (5, 1, [0, 1, 3]), (6, 1, [0, 1, 3]),
    ]  # fmt: skip
    assert rosters(daemons["wren"]) == [(5, 3, [0, 1, 3]), (6, 3, [0, 1, 3])]
    await asyncio.gather(*(lease.end() for lease in (otter, fox, hare, wren)))


async def test_who_comes_back_under_another_rank_stands_on_no_roster_twice(start_peer: Any, tmp_path: Path) -> None:
    daemons = {name: Daemon() for name in ("otter", "fox")}
    otter, fox = await leases_from(start_peer, daemons)
    daemons["again"] = Daemon()
    peer = await start_peer("wren", daemons["again"])
    first, again = await lease_from(peer, "wren"), await lease_from(peer, "wren")
    crew = crew_of(otter, fox, first, folder=tmp_path)
    crew.introduce()
    await first.end()
    assert crew.expect(again) == 3
    await crew.set_members([0, 1, 2])
    assert [ranks for _, _, ranks in rosters(daemons["fox"])] == [[0, 1, 2], [0, 1, 3], [0, 1, 3]]
    await asyncio.gather(*(lease.end() for lease in (otter, fox, again)))


class Office:
    """As much of a `ReceiptOffice` as a crew needs, with a real book."""

    def __init__(self) -> None:
        self.book = ReceiptBook(CLIENT, "x")
        self.asked: list[str] = []
        self.refusals: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def given_up(self, lease: Lease) -> None:
        self.book.give_up(lease.promise.uuid, lease.row.peer)

    def regained(self, lease: Lease) -> None:
        self.book.wait_for(lease.promise.uuid, lease.row.peer)

    def refused(self, lease: Lease, reason: str) -> None:
        self.refusals.put_nowait((lease.name, reason))

    def ask_again(self, lease: Lease) -> None:
        self.asked.append(lease.name)


async def test_who_was_cut_off_keeps_its_slot_until_the_job_goes_on_without(start_peer: Any, tmp_path: Path) -> None:
    gone: list[str] = []

    async def give_back(lease: Lease) -> None:
        gone.append(lease.name)

    office: Any = Office()
    daemons = {name: Daemon() for name in ("otter", "fox", "hare")}
    otter, fox, hare = await leases_from(start_peer, daemons)
    crew = LeasedCrew(dict(enumerate([otter, fox, hare])), JobFolder(tmp_path), AtOnce(), office, give_back, no_blobs())
    for rank, lease in ((0, otter), (1, fox)):
        office.book.write(lease.promise.uuid, lease.row.peer, done(0), 1.0)
        await lease._session.close()
        await lease._reading
        crew.dismiss(rank, "the connection was lost")
    await asyncio.gather(*crew._tasks)
    assert (list(crew.cut_off), list(crew.present), gone, office.book.awaited) == ([0, 1], [2], [], 0)
    daemons["again"] = Daemon()
    again = await lease_from(await start_peer("otter", daemons["again"]), "otter")
    again.promise = otter.promise
    crew.regained(0, again)
    crew.ask_again([0])
    assert (list(crew.cut_off), list(crew.present), office.asked, office.book.awaited) == ([1], [0, 2], ["otter"], 1)
    await crew.give_back_cut_off()
    await crew.give_back_cut_off()
    assert (gone, crew.cut_off) == (["fox"], {})
    await asyncio.gather(again.end(), hare.end())


async def test_who_does_not_sign_is_told_to_the_office_which_asks_again(start_peer: Any, tmp_path: Path) -> None:
    office: Any = Office()
    daemons = {"otter": Daemon()}
    (otter,) = await leases_from(start_peer, daemons)
    crew = LeasedCrew({0: otter}, JobFolder(tmp_path), AtOnce(), office, let_go, no_blobs())
    crew.work_for(cast(WorkListener, None))
    otter.ask_signature(office.book.write(otter.promise.uuid, otter.row.peer, done(0), 1.0))
    async with asyncio.timeout(20):
        assert await office.refusals.get() == ("otter", "no room on the disk")
    assert crew.present
    await otter.end()
