"""Hiring: a table and a tracker of the test, peers on real sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from axonp2p.client import hiring as hiring_module
from axonp2p.client.events import Event, PeerHired, PeerRefused, PeersFound, Reserved, RttMeasured
from axonp2p.client.hiring import Hiring, Wish
from axonp2p.errors import Busy, NobodyFits
from axonp2p.peers.capability import Need
from axonp2p.reservation.token import Token
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import Found
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, ManualClock, key_of, make_offer, make_row
from tests.unit.client.conftest import Daemon

CLIENT, TRACKER = key_of("client"), key_of("tracker")


class Table:
    """Stands for a tracker: shows its rows, signs every token."""

    called = "tracker test"

    def __init__(self, rows: Sequence[Row], alive: int = 0) -> None:
        self.rows = list(rows)
        self.alive = alive or len(rows)
        self.asked: list[int] = []
        self.reserved: list[list[str]] = []

    async def first(self, ask: Callable[[Any], Awaitable[Any]]) -> tuple[Any, Any]:
        return self, await ask(self)


async def query(table: Table, need: dict[str, Any], count: int, *, now: float) -> Found:
    table.asked.append(count)
    return Found(table.rows[:count], len(table.rows), table.alive, 0)


async def reserve(table: Table, key: Any, peers: list[str], **wish: Any) -> Signed[Token]:
    table.reserved.append(peers)
    token = Token(
        uuid=wish["uuid"], issuer=TRACKER.peer_id, client=key.peer_id, client_address="127.0.0.1", peers=peers,
        kinds=wish["kinds"], not_before=int(NOW), expires=int(NOW) + wish["seconds"],
    )  # fmt: skip
    return sign(TRACKER, token)


@pytest.fixture(autouse=True)
def tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hiring_module, "query", query)
    monkeypatch.setattr(hiring_module, "reserve", reserve)
    monkeypatch.setattr(hiring_module, "PAUSE_S", 0.0)


class Search:
    """One job's hiring, and what was seen of it."""

    def __init__(self, table: Table, wanted: int, at_least: int = 1, max_rtt_s: float = 5.0, **need: Any) -> None:
        self.seen: list[Event] = []
        wish = Wish("digits-1", Need(**need), wanted, at_least, max_rtt_s)
        trackers: Any = table
        self.hiring = Hiring(CLIENT, trackers, ManualClock(), wish, self.seen.append)

    async def names(self) -> list[str]:
        """Hire; the names of those who said yes. All leases are ended again."""
        try:
            await self.hiring.hire()
            return [lease.name for lease in self.hiring.hired]
        finally:
            for lease in self.hiring.hired:
                await lease.end()

    def all_of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kind)]


async def test_as_many_as_are_wanted_are_hired_under_one_reservation(start_peer: Any) -> None:
    peers = [await start_peer(name, Daemon()) for name in ("otter", "heron", "lynx")]
    table = Table([peer.row() for peer in peers])
    search = Search(table, wanted=2)
    names = await search.names()
    assert len(names) == 2
    assert len(table.reserved) == 1
    assert {lease.promise.uuid for lease in search.hiring.hired} == {search.all_of(Reserved)[0].reservation}
    assert [event.peer for event in search.all_of(PeerHired)] == names
    (measured,) = search.all_of(RttMeasured)
    assert set(measured.seconds) == {"otter", "heron", "lynx"}
    assert all(0 < seconds < 5 for seconds in measured.seconds.values())
    assert sorted(measured.seconds, key=lambda name: measured.seconds[name])[:2] == sorted(
        names, key=lambda name: measured.seconds[name]
    )


async def test_who_is_busy_is_replaced_under_a_second_reservation(start_peer: Any) -> None:
    busy = await start_peer("busy", Daemon(refuse=Busy("every slot is taken")))
    good = [await start_peer(name, Daemon()) for name in ("otter", "heron")]
    table = Table([busy.row(), *(peer.row() for peer in good)])
    search = Search(table, wanted=3, at_least=2)
    assert sorted(await search.names()) == ["heron", "otter"]
    assert [event.peer for event in search.all_of(PeerRefused)] == ["busy"]

    spare = await start_peer("spare", Daemon())
    table = Table([busy.row(), spare.row()])
    search = Search(table, wanted=2, at_least=1)
    assert await search.names() == ["spare"]

    table = Table([busy.row(), *(peer.row() for peer in good), spare.row()])
    search = Search(table, wanted=3)
    assert sorted(await search.names()) == ["heron", "otter", "spare"]
    uuids = {lease.promise.uuid for lease in search.hiring.hired}
    if search.all_of(PeerRefused):  # it was among the nearest three
        assert len(uuids) == len(table.reserved) == 2


async def test_dead_and_unfit_peers_are_never_reserved(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    dead = make_row(key_of("dead"), name="dead", addresses=["127.0.0.1:1"])
    small = make_row(key_of("small"), name="small", offer=make_offer(cores=1))
    broken = make_row(key_of("broken"), name="broken", capability={"cores": "many"})
    mine = make_row(CLIENT, name="mine")
    table = Table([dead, small, broken, mine, peer.row()])
    search = Search(table, wanted=2, cores=2)
    assert await search.names() == ["otter"]
    assert table.reserved == [[peer.key.peer_id]]
    (measured,) = search.all_of(RttMeasured)
    assert list(measured.unreachable) == ["dead"]


async def test_who_is_too_far_is_not_acquired(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    table = Table([peer.row()])
    search = Search(table, wanted=1, max_rtt_s=0.0)
    with pytest.raises(NobodyFits) as caught:
        await search.names()
    assert "1 too far (max-rtt 0 ms)" in caught.value.cause
    assert table.reserved == []
    assert search.all_of(RttMeasured)[0].too_far == ["otter"]


async def test_a_second_look_finds_those_that_were_not_shown(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    dead = [make_row(key_of(f"dead-{n}"), name=f"dead-{n}", addresses=["127.0.0.1:1"]) for n in range(8)]
    table = Table([*dead, peer.row()])
    search = Search(table, wanted=1)
    assert await search.names() == ["otter"]
    assert table.asked == [6, 200]


async def test_a_peer_that_becomes_free_in_a_moment_is_found(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    table = Table([], alive=1)
    search = Search(table, wanted=1)

    def see(event: Event) -> None:
        if isinstance(event, PeersFound):
            table.rows = [peer.row()]

    search.hiring._see = see
    assert await search.names() == ["otter"]


async def test_too_few_is_said_with_reasons_and_nobody_is_kept(start_peer: Any) -> None:
    daemon = Daemon()
    peer = await start_peer("otter", daemon)
    small = make_row(key_of("small"), name="small", offer=make_offer(cores=1))
    table = Table([peer.row(), small], alive=4)
    with pytest.raises(NobodyFits) as caught:
        await Search(table, wanted=3, at_least=2, cores=2).names()
    assert caught.value.message == "this job needs 2 peers and can have 1"
    assert caught.value.cause.startswith("seen 3 peers: ")
    assert "1 lends 1 of the 2 cores needed" in caught.value.cause
    assert "1 busy or taking no work now" in caught.value.cause
    assert daemon.ended


async def test_two_peers_of_one_name_can_be_told_apart(start_peer: Any) -> None:
    first, second = await start_peer("otter", Daemon()), await start_peer("heron", Daemon())
    twin = make_row(second.key, name="otter", addresses=second.row().addresses, certificate=second.row().certificate)
    names = await Search(Table([first.row(), twin]), wanted=2).names()
    assert sorted(names) == ["otter", f"otter-{second.key.peer_id[:8]}"]
