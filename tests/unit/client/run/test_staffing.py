"""Peers for a job that is gone on with: those that waited first, then others, for as long as may be waited."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.client.events.events import Event, JobGoesOn, PeersAwaited, PeersFound
from axonp2p.client.leasing import hiring as hiring_module
from axonp2p.client.leasing import token_source
from axonp2p.client.leasing.hiring import GRACE_S, Means, PeerRequest
from axonp2p.client.leasing.kept_leases import keep_leases, kept_leases
from axonp2p.client.run import staffing as manning_module
from axonp2p.client.run.staffing import Staffing
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.client.storage.trust_book import TrustBook
from axonp2p.errors import Busy, NobodyFits
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import EndLease
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.peers.capability import Need
from axonp2p.peers.coordinates import Position
from axonp2p.table import reporting
from axonp2p.transport.sessions.session import Session
from tests.fakes import AtOnce, ManualClock
from tests.unit.client import conftest
from tests.unit.client.conftest import Daemon
from tests.unit.client.leasing.test_hiring import CLIENT, Table, no_wrong_clock, report, reserve


@pytest.fixture(autouse=True)
def tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_source, "reserve", reserve)
    monkeypatch.setattr(reporting, "report", report)
    monkeypatch.setattr(hiring_module, "PAUSE_S", 0.0)
    monkeypatch.setattr(manning_module, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(hiring_module, "wrong_clock_among", no_wrong_clock)


class Life:
    """One life of a job that wants three peers and needs two."""

    def __init__(self, home: Path, table: Table, job: str = "digits-1") -> None:
        store = JobStore(home)
        if not store.has(job):
            record = TrainRecord(
                id=job, name="digits", folder="/", spec={}, state=JobState.FINDING, created=0.0, updated=0.0,
                peers_wanted=3, rounds=9,
            )  # fmt: skip
            store.create(record)
        self.folder: JobFolder = store.find(job)
        self.seen: list[Event] = []
        self.journal = JobJournal(self.folder, self.folder.read(), ManualClock(), self._hear, AtOnce())
        self.clock = ManualClock()
        shared: Any = table
        means = Means(CLIENT, shared, Position(random.Random(1), b""), self.clock, TrustBook(Path(":memory:")))
        wish = PeerRequest(job, Need(), 3, 2, 5.0)
        self.staffing = Staffing(means, wish, self.journal, self.seen.append)

    def _hear(self, event: Event) -> None:
        """What happened, whenever it did."""
        self.seen.append(msgspec.structs.replace(event, at=0.0))

    @property
    def names(self) -> dict[int, str]:
        return {rank: lease.name for rank, lease in sorted(self.staffing.leases.items())}

    async def vanish(self) -> None:
        """What is on the disk stays; the sessions end as those of a dead program."""
        keep_leases(self.folder.leases, self.staffing.leases)
        for lease in self.staffing.leases.values():
            await lease._session.close()
            await lease.end()

    async def end(self) -> None:
        for lease in self.staffing.leases.values():
            await lease.end()


class Waiting(Daemon):
    """A peer whose worker waits for its client."""

    async def __call__(self, session: Session) -> None:
        again = any(getattr(said, "token", None) for said in self.heard)
        conftest.WAITED = again
        try:
            await super().__call__(session)
        finally:
            conftest.WAITED = False


async def test_who_waited_is_taken_back_with_its_rank(tmp_path: Path, start_peer: Any) -> None:
    daemons = {name: Waiting() for name in ("otter", "heron", "lynx")}
    peers = [await start_peer(name, daemon) for name, daemon in daemons.items()]
    table = Table([peer.row() for peer in peers])
    first = Life(tmp_path, table)
    await first.staffing.fill(0)
    before = first.names
    assert sorted(before.values()) == ["heron", "lynx", "otter"]
    await first.vanish()
    table.rows.clear()  # nobody has to be looked for

    second = Life(tmp_path, table)
    await second.staffing.take_back()
    await second.staffing.fill(0)
    assert second.names == before
    assert all(lease.taken.waited for lease in second.staffing.leases.values())
    (asked, again) = (said for said in daemons["otter"].heard if getattr(said, "token", None))
    assert again == asked
    assert asked.grace == GRACE_S
    records = second.staffing.records(before)
    assert {record.rank: record.name for record in records} == before
    await second.end()


async def test_who_was_cut_off_is_taken_again_with_its_rank(tmp_path: Path, start_peer: Any) -> None:
    """A relay's death takes the sessions through it; the workers behind it wait."""
    daemons = {name: Waiting() for name in ("otter", "heron", "lynx")}
    peers = [await start_peer(name, daemon) for name, daemon in daemons.items()]
    table = Table([peer.row() for peer in peers])
    life = Life(tmp_path, table)
    await life.staffing.fill(0)
    before = dict(life.staffing.leases)
    (stays,) = (rank for rank, lease in before.items() if lease.name == "lynx")
    cut_off = {rank: lease for rank, lease in before.items() if rank != stays}
    for lease in cut_off.values():
        await lease._session.close()
        await lease._reading
        assert lease.cut_off
        assert lease.gone
    table.rows.clear()
    life.staffing.leases = {stays: before[stays]}
    await life.staffing.take_again(cut_off)
    await life.staffing.fill(0)
    assert life.names == {rank: lease.name for rank, lease in before.items()}
    assert all(life.staffing.leases[rank].taken.waited for rank in cut_off)
    assert {lease.promise.uuid for lease in life.staffing.leases.values()} == {
        lease.promise.uuid for lease in before.values()
    }
    await life.end()
    assert not before[stays].cut_off  # it was ended, not cut off


async def test_a_name_is_one_peers_in_all_lives_of_a_job(tmp_path: Path, start_peer: Any) -> None:
    peers = {name: await start_peer(name, Waiting()) for name in ("otter", "heron")}
    row = {name: peer.row() for name, peer in peers.items()}
    first = Life(tmp_path, Table(list(row.values())))
    await first.staffing.fill(0)
    first.journal.joined(first.staffing.records(first.names), [], "")
    names = {lease.row.peer: lease.name for lease in first.staffing.leases.values()}
    await first.end()

    swapped = [msgspec.structs.replace(row["otter"], name="heron"), msgspec.structs.replace(row["heron"], name="otter")]
    stranger = msgspec.structs.replace((await start_peer("lynx", Waiting())).row(), name="heron")
    second = Life(tmp_path, Table([stranger, *swapped]))
    await second.staffing.fill(0)
    found = {lease.row.peer: lease.name for lease in second.staffing.leases.values()}
    assert found == names | {stranger.peer: f"heron-{stranger.peer[:8]}"}
    await second.end()


async def test_a_peer_that_is_hired_while_others_wait_has_none_of_their_names(tmp_path: Path, start_peer: Any) -> None:
    otter = (await start_peer("otter", Waiting())).row()
    table = Table([otter])
    life = Life(tmp_path, table)
    with pytest.raises(NobodyFits):
        await life.staffing.fill(0)
    assert list(life.names.values()) == ["otter"]
    twin = msgspec.structs.replace((await start_peer("heron", Waiting())).row(), name="otter")
    table.rows.append(twin)
    await life.staffing.fill(0)
    assert list(life.names.values()) == ["otter", f"otter-{twin.peer[:8]}"]
    await life.end()


async def test_who_listens_elsewhere_now_is_found_in_the_table(tmp_path: Path, start_peer: Any) -> None:
    peers = [await start_peer(name, Daemon()) for name in ("otter", "heron")]
    first = Life(tmp_path, Table([peer.row() for peer in peers]))
    await first.staffing.fill(0)
    before = first.names
    await first.vanish()
    await peers[0].stop()
    again = await start_peer("otter", Daemon())
    second = Life(tmp_path, Table([again.row(), peers[1].row()]))
    await second.staffing.take_back()
    assert second.names == before
    assert not any(lease.taken.waited for lease in second.staffing.leases.values())
    await second.end()


async def test_who_is_gone_or_has_given_its_slot_away_is_replaced(tmp_path: Path, start_peer: Any) -> None:
    stays, goes, gave = Waiting(), Waiting(), Waiting()
    peers = [await start_peer(name, one) for name, one in (("otter", stays), ("heron", goes), ("lynx", gave))]
    first = Life(tmp_path, Table([peer.row() for peer in peers]))
    await first.staffing.fill(0)
    (rank,) = (rank for rank, name in first.names.items() if name == "otter")
    await first.vanish()
    await peers[1].stop()
    gave._refuse = Busy("every slot is taken")

    new = await start_peer("wren", Daemon())
    second = Life(tmp_path, Table([new.row()]))
    await second.staffing.take_back()
    assert second.names == {rank: "otter"}
    await second.staffing.fill(0)
    assert second.names == {rank: "otter", rank + 1: "wren"}
    await second.end()


async def test_a_peer_whose_session_was_lost_need_not_wait_for_us(tmp_path: Path, start_peer: Any) -> None:
    daemons = {name: Waiting() for name in ("otter", "heron")}
    peers = [await start_peer(name, daemon) for name, daemon in daemons.items()]
    life = Life(tmp_path, Table([peer.row() for peer in peers]))
    await life.staffing.fill(0)
    lease = next(lease for lease in life.staffing.leases.values() if lease.name == "otter")
    await lease._session.close()
    await life.staffing.let_go(lease)
    assert isinstance(daemons["otter"].heard[-1], EndLease)
    assert not daemons["heron"].ended
    await peers[1].stop()
    await life.staffing.let_go(next(lease for lease in life.staffing.leases.values() if lease.name == "heron"))
    await life.end()


async def test_too_few_are_waited_for_and_told_and_those_that_came_are_kept(tmp_path: Path, start_peer: Any) -> None:
    otter, heron = [await start_peer(name, Daemon()) for name in ("otter", "heron")]
    table = Table([otter.row()])
    life = Life(tmp_path, table)

    def see(event: Event) -> None:
        life.seen.append(event)
        if isinstance(event, PeersAwaited):
            assert life.folder.read().waits_for == ["1 more peer"]
            table.rows.append(heron.row())

    life.staffing._see = see
    await life.staffing.fill(60)
    assert sorted(life.names.values()) == ["heron", "otter"]
    (awaited,) = (event for event in life.seen if isinstance(event, PeersAwaited))
    assert (awaited.there, awaited.needed) == (1, 2)
    assert JobGoesOn() in life.seen
    assert life.folder.read().waits_for == []
    await life.end()


async def test_a_job_in_the_queue_holds_no_slot_and_tells_once_what_it_waits_for(
    tmp_path: Path, start_peer: Any
) -> None:
    daemons = {name: Daemon() for name in ("otter", "heron")}
    otter, heron = [await start_peer(name, daemon) for name, daemon in daemons.items()]
    table = Table([otter.row()])
    life = Life(tmp_path, table)
    looks = 0

    async def look(*arguments: Any, found: Any = table.find, **more: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 9:
            assert daemons["otter"].heard == []
            table.rows.append(heron.row())
        return await found(*arguments, **more)

    table.find = look  # type: ignore[method-assign]
    await life.staffing.fill(60, holds=False)
    assert sorted(life.names.values()) == ["heron", "otter"]
    (awaited,) = (event for event in life.seen if isinstance(event, PeersAwaited))
    assert awaited.reason.startswith("this job needs 2 peers and can have 1")
    assert len([event for event in life.seen if isinstance(event, PeersFound)]) == 2
    await life.end()


async def test_a_job_in_the_queue_gives_back_what_is_not_enough(tmp_path: Path, start_peer: Any) -> None:
    daemons = {"otter": Daemon(), "heron": Daemon(refuse=Busy("every slot is taken"))}
    peers = [await start_peer(name, daemon) for name, daemon in daemons.items()]
    life = Life(tmp_path, Table([peer.row() for peer in peers]))
    with pytest.raises(NobodyFits, match=r"can have 1"):
        await life.staffing.fill(0, holds=False)
    assert life.names == {}
    assert isinstance(daemons["otter"].heard[-1], EndLease)


async def test_an_own_dead_job_that_holds_the_slots_is_named(tmp_path: Path, start_peer: Any) -> None:
    peers = [await start_peer(name, Daemon()) for name in ("otter", "heron")]
    dead = Life(tmp_path, Table([peer.row() for peer in peers]))
    await dead.staffing.fill(0)
    await dead.vanish()
    taken = [await start_peer(name, Daemon(refuse=Busy("every slot is taken"))) for name in ("otter", "heron")]
    other = Life(tmp_path, Table([peer.row() for peer in taken]), job="line-2")
    other.clock.time = time.time()
    with pytest.raises(NobodyFits) as caught:
        await other.staffing.fill(0)
    assert "2 by your own job digits-1, whose program is dead" in caught.value.cause
    assert caught.value.fix.startswith("axon resume digits-1 continues it, axon cancel digits-1 gives")
    other.clock.time += GRACE_S + 60  # by now its peers wait no more
    with pytest.raises(NobodyFits) as caught:
        await other.staffing.fill(0)
    assert "digits-1" not in caught.value.cause


async def test_nobody_is_waited_for_for_ever(tmp_path: Path) -> None:
    life = Life(tmp_path, Table([]))

    def see(event: Event) -> None:
        if isinstance(event, PeersAwaited):
            life.clock.time += 61

    life.staffing._see = see
    with pytest.raises(NobodyFits):
        await life.staffing.fill(60)
    with pytest.raises(NobodyFits):
        await Life(tmp_path, Table([])).staffing.fill(0)


@pytest.mark.parametrize("content", [b"", b"[{", b"[1]"])
def test_a_damaged_file_of_leases_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "leases.json").write_bytes(content)
    assert kept_leases(tmp_path / "leases.json") == []
    assert kept_leases(tmp_path / "nothing") == []
