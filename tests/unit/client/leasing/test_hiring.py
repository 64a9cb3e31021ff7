"""Hiring: a table and a tracker of the test, peers on real sockets."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.client.events.events import Event, PeerHired, PeerRefused, PeersFound, Reserved, RttMeasured
from axonp2p.client.leasing import hiring as hiring_module
from axonp2p.client.leasing import token_source
from axonp2p.client.leasing.hiring import Hiring, Means, PeerRequest
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.storage.trust_book import TRUST_FILE, TrustBook
from axonp2p.errors import AxonError, Busy, ClockWrong, NobodyFits, Refused, TokenRefused, TrackerUnreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.messages import EndLease, LeaseEnded, TakeLease
from axonp2p.peers.capability import Need
from axonp2p.peers.coordinates import Coordinate, Position, write_coordinate
from axonp2p.peers.selection import how_many_to_ask
from axonp2p.reservation.token import LONGEST_S, Token
from axonp2p.table import health as health_module
from axonp2p.table import reporting
from axonp2p.table.health import Health
from axonp2p.table.records import ReportHeard, Row
from axonp2p.table.sightings import SeenRow, Sight, SourceAnswer
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import decode
from axonp2p.wire.envelope import Signed, sign
from axonp2p.wire.schema import SCHEMAS
from tests.fakes import HERE, NOW, ManualClock, key_of, make_offer, make_row
from tests.unit.client.conftest import Daemon, taken

CLIENT, TRACKER = key_of("client"), key_of("tracker")
NO_NAMES: Mapping[str, str] = {}


class Table:
    """Stands for the shared table and the trackers behind it: shows its rows, signs every token."""

    called = "tracker test"
    address = "https://tracker:7070"
    dials = HERE

    def __init__(self, rows: Sequence[Row], alive: int = 0) -> None:
        self.rows = list(rows)
        self.alive = alive or len(rows)
        self.asked: list[tuple[int, int]] = []
        self.reserved: list[list[str]] = []
        self.reported: list[str] = []
        self.away: AxonError | None = None
        self.unknown: set[str] = set()
        self.trackers: Any = self

    async def find(self, need: dict[str, Any], count: int, *, enough: int, near: bytes = b"") -> Sight:
        self.asked.append((count, enough))
        shown = self.rows[: None if near else count]
        rows = [SeenRow(row, (self.called,)) for row in shown]
        answer = SourceAnswer(self.called, 0.0, tuple(shown), len(self.rows), self.alive)
        return Sight(rows, [answer], {}, complete=len(rows) < enough)

    def in_order(self) -> list[Any]:
        return [self]

    trusted = in_order

    async def first(self, ask: Callable[[Any], Awaitable[Any]], **_: Any) -> tuple[Any, Any]:
        return self, await self.ask(self, ask)

    async def ask(self, line: Any, ask: Callable[[Any], Awaitable[Any]]) -> Any:
        if self.away:
            raise self.away
        return await ask(self)


def token_of(signer: PrivateKey, key: Any, peers: list[str], wish: dict[str, Any]) -> Signed[Token]:
    token = Token(
        uuid=wish["uuid"], issuer=signer.peer_id, client=key.peer_id, client_address="127.0.0.1", peers=peers,
        kinds=wish["kinds"], not_before=int(NOW), expires=int(NOW) + wish["seconds"],
    )  # fmt: skip
    return sign(signer, token)


OWN = {key_of(name).peer_id: key_of(name) for name in ("otter", "heron", "lynx")}


async def reserve(line: Any, key: Any, peers: list[str], **wish: Any) -> Signed[Token]:
    """Ours: at the table of the test, or at a peer for itself."""
    if wish["issuer"]:
        return token_of(OWN[wish["issuer"]], key, peers, wish)
    if line.unknown & set(peers):
        raise Refused("cannot reserve 1 of them: is not announced here")
    line.reserved.append(peers)
    return token_of(TRACKER, key, peers, wish)


async def report(line: Any, key: Any, peer: str, *, now: float) -> ReportHeard:
    line.reported.append(peer)
    return ReportHeard(checking=True)


async def no_wrong_clock(lines: Any, clock: Any) -> None:
    """All clocks are right."""


@pytest.fixture(autouse=True)
def tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_source, "reserve", reserve)
    monkeypatch.setattr(reporting, "report", report)
    monkeypatch.setattr(hiring_module, "PAUSE_S", 0.0)
    monkeypatch.setattr(hiring_module, "wrong_clock_among", no_wrong_clock)


class Search:
    """One job's hiring, and what was seen of it."""

    def __init__(
        self,
        table: Table,
        wanted: int,
        at_least: int = 1,
        max_rtt_s: float = 5.0,
        here: bytes = b"",
        trust: Path = Path(":memory:"),
        reserve_s: int = LONGEST_S,
        names: Mapping[str, str] = NO_NAMES,
        **need: Any,
    ) -> None:
        self.seen: list[Event] = []
        wish = PeerRequest("digits-1", Need(**need), wanted, at_least, max_rtt_s, reserve_s, names=names)
        shared: Any = table
        means = Means(CLIENT, shared, Position(random.Random(1), here), ManualClock(), TrustBook(trust))
        self.hiring = Hiring(means, wish, self.seen.append)

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
    assert table.reported == [key_of("dead").peer_id]


async def test_who_is_too_far_is_not_acquired(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    table = Table([peer.row()])
    search = Search(table, wanted=1, max_rtt_s=0.0)
    with pytest.raises(NobodyFits) as caught:
        await search.names()
    assert "too far (max-rtt 0 ms) (1)" in caught.value.cause
    assert table.reserved == []
    assert search.all_of(RttMeasured)[0].too_far == ["otter"]


async def test_who_was_convicted_of_false_work_is_passed_over(start_peer: Any, tmp_path: Path) -> None:
    peer = await start_peer("otter", Daemon())
    book = TrustBook(tmp_path / TRUST_FILE)
    book.convict(peer.key.peer_id, "digits-0", "its steps", 1000.0)
    table = Table([peer.row()])
    with pytest.raises(NobodyFits) as caught:
        await Search(table, wanted=1, trust=tmp_path / TRUST_FILE).names()
    assert "convicted of false work, in an earlier job of yours (1)" in caught.value.cause
    assert table.reserved == []
    book.pardon(peer.key.peer_id)
    assert await Search(table, wanted=1, trust=tmp_path / TRUST_FILE).names() == ["otter"]


async def test_a_second_look_finds_those_that_were_not_shown(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    dead = [make_row(key_of(f"dead-{n}"), name=f"dead-{n}", addresses=["127.0.0.1:1"]) for n in range(9)]
    table = Table([*dead, peer.row()])
    search = Search(table, wanted=1)
    assert await search.names() == ["otter"]
    assert table.asked == [(7, 1), (7, 200), (200, 200)]


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
    assert "lends 1 of the 2 cores needed (1)" in caught.value.cause
    assert "busy or taking no work now (1)" in caught.value.cause
    assert daemon.ended


async def test_peers_of_another_version_are_not_hired_and_counted(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    older = make_row(key_of("older"), name="older", schema="")
    with pytest.raises(NobodyFits) as caught:
        await Search(Table([peer.row(), older, older]), wanted=2, at_least=2).names()
    assert "runs another version of Axon (its messages are older than their own hash" in caught.value.cause
    assert f"ours {SCHEMAS['train']})" in caught.value.cause
    only_older = Search(Table([older]), wanted=1)
    with pytest.raises(NobodyFits) as caught:
        await only_older.names()
    assert caught.value.fix.startswith("install the version of Axon that the peers run (AX-405)")


async def test_a_peer_of_another_version_is_not_asked_though_it_answers(start_peer: Any) -> None:
    daemons = {name: Daemon() for name in ("otter", "older")}
    otter, older = [(await start_peer(name, daemon)).row() for name, daemon in daemons.items()]
    search = Search(Table([msgspec.structs.replace(older, schema="0" * 16), otter]), wanted=2, at_least=1)
    assert await search.names() == ["otter"]
    assert not daemons["older"].heard


async def test_peers_of_one_job_are_reached_through_different_relays(
    start_peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When one relay dies it shall not take all of them with it."""
    turns: list[int] = []
    take = Means.take

    async def noted(self: Means, *args: Any, spread: int = 0, **more: Any) -> Lease:
        turns.append(spread)
        return await take(self, *args, spread=spread, **more)

    monkeypatch.setattr(Means, "take", noted)
    rows = [(await start_peer(name, Daemon())).row() for name in ("otter", "heron", "lynx")]
    await Search(Table(rows), wanted=3).names()
    assert turns == [0, 1, 2]


async def test_a_wrong_clock_is_named_when_too_few_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def health(line: Any, clock: Any) -> Health:
        return Health(time=NOW - 600, version="1", alive=2, rtt_s=0.01, clock_off_s=-600.0)

    monkeypatch.setattr(health_module, "ask_health", health)
    monkeypatch.setattr(hiring_module, "wrong_clock_among", health_module.wrong_clock_among)
    with pytest.raises(ClockWrong, match="this computer's and tracker test's differ by 600 s"):
        await Search(Table([], alive=2), wanted=1).names()


async def test_two_peers_of_one_name_can_be_told_apart(start_peer: Any) -> None:
    first, second = await start_peer("otter", Daemon()), await start_peer("heron", Daemon())
    twin = make_row(second.key, name="otter", addresses=second.row().addresses, certificate=second.row().certificate)
    names = await Search(Table([first.row(), twin]), wanted=2).names()
    assert sorted(names) == ["otter", f"otter-{second.key.peer_id[:8]}"]


async def test_a_name_that_a_peer_of_the_job_has_is_nobody_elses(start_peer: Any) -> None:
    peer, key = await start_peer("otter", Daemon()), key_of("otter").peer_id
    short, whole = f"otter-{key[:8]}", f"otter-{key}"
    had = {key_of("first").peer_id: "Otter"}  # one file where a disk does not tell letters' cases apart
    assert await Search(Table([peer.row()]), wanted=1, names=had).names() == [short]
    had[key_of("second").peer_id] = short  # as its row may call itself
    assert await Search(Table([peer.row()]), wanted=1, names=had).names() == [whole]


async def test_a_peer_keeps_the_name_that_it_had_in_the_job(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    assert await Search(Table([peer.row()]), wanted=1, names={peer.key.peer_id: "heron"}).names() == ["heron"]


# --- when trackers do not help


def willing(peer: Any, **changes: Any) -> Row:
    """The row of a peer that signs tokens for itself."""
    row: Row = msgspec.structs.replace(peer.row(), issues_tokens=True, **changes)
    return row


async def test_with_no_tracker_each_peer_gives_its_own_token(start_peer: Any) -> None:
    daemons = {name: Daemon() for name in ("otter", "heron")}
    peers = [await start_peer(name, daemon) for name, daemon in daemons.items()]
    table = Table([willing(peer) for peer in peers])
    table.away = TrackerUnreachable("no tracker answers")
    search = Search(table, wanted=2, at_least=2)
    assert sorted(await search.names()) == ["heron", "otter"]
    issuers = {event.issuer: event.peers for event in search.all_of(Reserved)}
    assert issuers == {"peer otter": ["otter"], "peer heron": ["heron"]}
    assert {lease.promise.tracker for lease in search.hiring.hired} == {""}
    for name, daemon in daemons.items():
        signed: Signed[Token] = decode(daemon.heard[0].token, Signed[Token], 8192)
        assert signed.signer == key_of(name).peer_id


async def test_who_issues_no_token_cannot_be_had_without_a_tracker(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())
    table = Table([peer.row()])
    table.away = TrackerUnreachable("no tracker answers")
    with pytest.raises(NobodyFits) as caught:
        await Search(table, wanted=1).names()
    assert token_source.NOT_WILLING in caught.value.cause


async def test_why_a_tracker_refuses_is_told_and_the_time_that_was_wished_is_asked_for(
    start_peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishes: list[dict[str, Any]] = []

    async def refuses(line: Any, key: Any, peers: list[str], **wish: Any) -> Signed[Token]:
        wishes.append(wish)
        raise Refused("this reservation may cost up to 12 credits")

    monkeypatch.setattr(token_source, "reserve", refuses)
    peer = await start_peer("otter", Daemon())
    with pytest.raises(NobodyFits) as caught:
        await Search(Table([peer.row()]), wanted=1, reserve_s=7200).names()
    assert f"{token_source.NOT_WILLING}: this reservation may cost up to 12 credits" in caught.value.cause
    assert {wish["seconds"] for wish in wishes} == {7200}


async def test_one_that_a_tracker_does_not_know_gives_its_own_token_the_others_have_the_trackers(
    start_peer: Any,
) -> None:
    peers = [await start_peer(name, Daemon()) for name in ("otter", "heron")]
    table = Table([willing(peer) for peer in peers])
    table.unknown = {key_of("otter").peer_id}
    search = Search(table, wanted=2, at_least=2)
    assert sorted(await search.names()) == ["heron", "otter"]
    issuers = {lease.name: lease.promise.issued_by for lease in search.hiring.hired}
    assert issuers == {"otter": "peer otter", "heron": "tracker test"}


async def test_a_peer_that_does_not_know_the_tracker_is_asked_for_its_own_token(start_peer: Any) -> None:
    class Picky(Daemon):
        async def __call__(self, session: Session) -> None:
            first, _ = await session.receive(TakeLease)
            signed: Signed[Token] = decode(first.token, Signed[Token], 8192)
            if signed.signer == TRACKER.peer_id:
                await session.refuse(TokenRefused("which is none of this peer's trackers"))
                return
            await session.send(taken())
            await session.receive(EndLease)
            await session.send(LeaseEnded())

    peer = await start_peer("otter", Picky())
    search = Search(Table([willing(peer)]), wanted=1)
    assert await search.names() == ["otter"]
    assert [event.issuer for event in search.all_of(Reserved)] == ["tracker test", "peer otter"]


async def test_a_table_that_is_lost_in_the_middle_keeps_who_is_hired(start_peer: Any) -> None:
    peer = await start_peer("otter", Daemon())

    class Lost(Table):
        async def find(self, need: dict[str, Any], count: int, *, enough: int, near: bytes = b"") -> Sight:
            if self.asked:
                raise TrackerUnreachable("no tracker answers")
            return await super().find(need, count, enough=enough, near=near)

    assert await Search(Lost([peer.row()]), wanted=2).names() == ["otter"]


async def test_when_nobody_answers_nobody_is_reported() -> None:
    table = Table([make_row(key_of(f"dead-{n}"), name=f"dead-{n}", addresses=["127.0.0.1:1"]) for n in range(3)])
    with pytest.raises(NobodyFits):
        await Search(table, wanted=1).names()
    assert table.reported == []


async def test_of_many_the_nearest_by_their_coordinates_are_measured_first(start_peer: Any) -> None:
    near = await start_peer("otter", Daemon())

    def at(milliseconds: float) -> bytes:
        return write_coordinate(Coordinate((milliseconds, 0.0, 0.0, 0.0), 0.1, 0.1))

    far = [
        make_row(key_of(f"far-{n}"), name=f"far-{n}", addresses=["127.0.0.1:1"], coordinate=at(200 + n))
        for n in range(20)
    ]
    table = Table([*far, willing(near, coordinate=at(1))])
    search = Search(table, wanted=1, here=at(0))
    assert await search.names() == ["otter"]
    (measured,) = search.all_of(RttMeasured)
    assert len(measured.seconds) + len(measured.unreachable) == how_many_to_ask(1)
    assert measured.estimated["otter"] < min(seconds for name, seconds in measured.estimated.items() if name != "otter")
