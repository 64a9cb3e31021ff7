"""Trackers first, the DHT after a moment, and what is made of their answers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from axonp2p.errors import Refused, TrackerUnreachable, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import public_key_of
from axonp2p.table import asking_order, dht_source, shared_table, table_question
from axonp2p.table.dht.records.compact import ISSUES_TOKENS, OFFERS_WORK, CompactRow, pack_addresses
from axonp2p.table.dht.records.index_keys import RowQuery
from axonp2p.table.dht.routing.node_state import SavedContact
from axonp2p.table.dht_source import DhtSource
from axonp2p.table.records import Row
from axonp2p.table.shared_table import SharedTable, dht_contacts_of
from axonp2p.table.sightings import DHT
from axonp2p.table.tracker_client import RowsFound, TrackersTold
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from tests.fakes import NEARBY, NOW, key_of, make_row

ADA, BEN, CAT = key_of("ada"), key_of("ben"), key_of("cat")
CONTACT = "192.0.2.7:7071"


class Clock:
    """Unix time of the tests, and seconds that pass."""

    def now(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return time.monotonic()


def compact_of(key: PrivateKey, row: Row) -> CompactRow:
    return CompactRow(
        public_key=public_key_of(key.peer_id),
        packed_addresses=pack_addresses(row.addresses),
        dht=0,
        certificate=row.certificate,
        sequence=row.sequence,
        expires=row.expires,
        cores=4,
        memory_mb=8192,
        gpu_memory_mb=0,
        tags=(),
        flags=OFFERS_WORK | ISSUES_TOKENS,
        packed_relays=(),
    )


class Node:
    """Stands for a DHT node that joins through `CONTACT`."""

    def __init__(self, found: Sequence[CompactRow]) -> None:
        self.found = list(found)
        self.wanted: list[RowQuery] = []
        self.joined = False
        self.stopped = False

    async def listen(self, host: str, port: int) -> int:
        return 1

    async def bootstrap(self, contacts: Iterable[str]) -> int:
        self.joined = CONTACT in list(contacts)
        return int(self.joined)

    async def find(self, wanted: RowQuery, count: int) -> list[CompactRow]:
        self.wanted.append(wanted)
        return self.found

    def contacts(self, count: int) -> list[str]:
        return [CONTACT] if self.joined else []

    async def stop(self) -> None:
        self.stopped = True


Answer = list[Row] | Exception


class Lab:
    """A table whose trackers and peers answer as the test says."""

    def __init__(self, trackers: dict[str, Answer], node: Node | None = None, known: Sequence[str] = ()) -> None:
        self.trackers = trackers
        self.own_rows: dict[str, Row] = {}
        self.asked: list[str] = []
        clock = Clock()
        health = TrackerHealth([f"https://{name}:7070" for name in trackers])
        lines = TrackerLines(health, clock, InOrder(1))
        saved = [SavedContact(address, NOW) for address in known]
        self.dht = DhtSource(lambda: node, clock, NEARBY, saved) if node else None  # type: ignore[arg-type, return-value]
        self.table = SharedTable(lines, self.dht, NEARBY, clock)

    async def query(self, line: HttpCaller, need: dict[str, Any], count: int, **_: Any) -> RowsFound:
        name = line.address.host
        self.asked.append(name)
        answer = self.trackers[name]
        if isinstance(answer, Exception):
            raise answer
        return RowsFound(answer, len(answer), len(answer), 0)

    async def fetch_rows(
        self, peers: Sequence[CompactRow], dials: DialPolicy, *, now: float
    ) -> dict[str, Row | Unreachable]:
        assert dials is NEARBY
        return {peer.peer: self.own_rows.get(peer.peer) or Unreachable("no answer") for peer in peers}


class InOrder(random.Random):
    def shuffle(self, x: object) -> None:
        pass


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Lab]:
    def make(trackers: dict[str, Answer], **more: Any) -> Lab:
        made = Lab(trackers, **more)
        monkeypatch.setattr(table_question, "query", made.query)
        monkeypatch.setattr(dht_source, "fetch_rows", made.fetch_rows)
        return made

    async def nothing(line: HttpCaller, **_: Any) -> list[Any]:
        return []

    async def nobody(line: HttpCaller, **_: Any) -> TrackersTold:
        return TrackersTold("", [], None)

    monkeypatch.setattr(shared_table, "known_trackers", nobody)
    monkeypatch.setattr(shared_table, "dht_contacts", nothing)
    return make


async def test_enough_from_the_first_tracker_is_enough(lab: Callable[..., Lab]) -> None:
    node = Node([])
    made = lab({"one": [make_row(ADA)], "two": [make_row(BEN)]}, node=node, known=[CONTACT])
    sight = await made.table.find({}, 5, enough=1)
    assert [seen.row.peer for seen in sight.rows] == [ADA.peer_id]
    assert (made.asked, node.wanted, sight.complete) == (["one"], [], False)
    await made.table.close()


async def test_what_an_emptied_tracker_lacks_the_others_and_the_dht_show(lab: Callable[..., Lab]) -> None:
    third = make_row(CAT)
    made = lab({"empty": [], "two": [make_row(BEN)]}, node=Node([compact_of(CAT, third)]), known=[CONTACT])
    assert made.dht
    made.own_rows[CAT.peer_id] = third
    sight = await made.table.find({"cores": 2, "memory_mb": 512}, 5, enough=3)
    assert {seen.row.peer: seen.sources for seen in sight.rows} == {
        BEN.peer_id: ("tracker two:7070",),
        CAT.peer_id: (DHT,),
    }
    assert sight.complete
    await made.table.close()


async def test_with_every_tracker_dead_the_dht_is_the_table(lab: Callable[..., Lab]) -> None:
    row = make_row(ADA)
    node = Node([compact_of(ADA, row), compact_of(BEN, make_row(BEN))])
    made = lab({"one": Unreachable("away"), "two": Unreachable("away")}, node=node, known=[CONTACT])
    made.own_rows[ADA.peer_id] = row
    sight = await made.table.find({"cores": 2, "memory_mb": 512, "gpu_memory_mb": 0}, 5, enough=5)
    assert [seen.row for seen in sight.rows] == [row]
    assert sight.silent == {BEN.peer_id: "no answer"}
    assert node.wanted == [RowQuery(2, 512, 0)]
    assert [answer.source for answer in sight.answers if answer.trouble] == ["tracker one:7070", "tracker two:7070"]
    await made.table.close()
    assert node.stopped


async def test_when_nobody_answers_each_is_named(lab: Callable[..., Lab]) -> None:
    made = lab({"one": Unreachable("one is away"), "two": Unreachable("two is away")}, node=Node([]))
    with pytest.raises(TrackerUnreachable) as caught:
        await made.table.find({}, 5, enough=1)
    for reason in ("one is away", "two is away", "no node is known"):
        assert reason in caught.value.cause
    with pytest.raises(TrackerUnreachable):
        await made.table.survey({}, 5)


async def test_a_refusal_of_the_question_is_told(lab: Callable[..., Lab]) -> None:
    made = lab({"one": Refused("an unknown need")})
    with pytest.raises(Refused, match="an unknown need"):
        await made.table.find({}, 5, enough=1)


async def test_trackers_that_all_say_nothing_are_named(
    lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_order, "LONGEST_S", 0.05)
    made = lab({"one": [], "two": []})

    async def query(*args: Any, **more: Any) -> RowsFound:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(table_question, "query", query)
    with pytest.raises(TrackerUnreachable, match="no tracker answers") as caught:
        await made.table.survey({}, 5)
    for name in ("one:7070", "two:7070"):
        assert f"{name}: no answer within" in caught.value.cause


async def test_a_withdrawn_row_from_the_peer_itself_is_no_offer(lab: Callable[..., Lab]) -> None:
    made = lab({"one": []}, node=Node([compact_of(ADA, make_row(ADA))]), known=[CONTACT])
    made.own_rows[ADA.peer_id] = make_row(ADA, sequence=9, capability=None)
    assert (await made.table.find({}, 5, enough=1)).rows == []
    await made.table.close()


async def test_a_survey_asks_all_and_tells_who_had_what(lab: Callable[..., Lab]) -> None:
    old, new = make_row(ADA, sequence=1), make_row(ADA, sequence=2)
    made = lab({"one": [new], "two": [old]}, node=Node([compact_of(ADA, new)]), known=[CONTACT])
    sight = await made.table.survey({}, 5)
    (seen,) = sight.rows
    assert (seen.row, seen.stale) == (new, ("tracker two:7070",))
    assert set(made.asked) == {"one", "two"}
    assert {answer.source for answer in sight.answers} == {"tracker one:7070", "tracker two:7070", DHT}
    await made.table.close()


async def test_who_is_silent_is_not_waited_for_once_another_has_answered(
    lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_order, "TRACKER_PATIENCE_S", 0.05)
    made = lab({"one": [make_row(ADA)], "silent": []})

    async def query(line: HttpCaller, *args: Any, **more: Any) -> RowsFound:
        if line.address.host == "silent":
            await asyncio.Event().wait()
        return await made.query(line, *args, **more)

    monkeypatch.setattr(table_question, "query", query)
    sight = await made.table.find({}, 5, enough=2)
    assert len(sight.rows) == 1
    assert [answer.source for answer in sight.answers if answer.trouble.startswith("no answer within")] == [
        "tracker silent:7070"
    ]
    await made.table.close()


async def test_rows_teach_trackers_and_dht_nodes(lab: Callable[..., Lab]) -> None:
    row = make_row(ADA, dht=7071, addresses=["192.0.2.7:9000", "[2001:db8::7]:9000"], trackers=["https://three:7070"])
    made = lab({"one": [row]}, node=Node([]))
    assert made.dht
    await made.table.find({}, 5, enough=1)
    assert "https://three:7070" in made.table.trackers.health.addresses
    assert {contact.address for contact in made.dht.known} == {CONTACT, "[2001:db8::7]:7071"}
    assert dht_contacts_of(make_row(ADA), NEARBY) == []
    elsewhere = make_row(ADA, dht=7071, addresses=["127.0.0.1:1", "10.0.0.1:1", "192.0.2.7:99999", "router.lan:1"])
    assert dht_contacts_of(elsewhere, NEARBY) == []
    await made.table.close()


async def test_of_the_nodes_that_a_tracker_names_those_are_kept_that_may_be_dialled(
    lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, told = lab({"one": [make_row(ADA)]}, node=Node([])), asyncio.Event()

    async def names(line: HttpCaller, **_: Any) -> list[str]:
        told.set()
        return ["127.0.0.1:22", "10.0.0.1:22", "192.0.2.8:7071"]

    monkeypatch.setattr(shared_table, "dht_contacts", names)
    await made.table.find({}, 5, enough=1)
    await told.wait()
    assert made.table._learning
    assert made.dht
    await made.table._learning
    assert [contact.address for contact in made.dht.known if contact.address != CONTACT] == ["192.0.2.8:7071"]
    await made.table.close()


async def test_the_local_network_is_looked_at_when_no_node_answers() -> None:
    looked: list[str] = []

    async def look_around() -> list[str]:
        looked.append("once")
        return [CONTACT]

    node = Node([])
    source = DhtSource(lambda: node, Clock(), NEARBY, [SavedContact("192.0.2.99:1", NOW)], look_around)
    found = await source.ask({}, 5, dict)
    assert not found.answer.trouble
    assert looked == ["once"]
    await source.ask({}, 5, dict)
    assert looked == ["once"]
    await source.close()


async def test_no_more_nodes_are_remembered_than_fit() -> None:
    source = DhtSource(
        lambda: Node([]), Clock(), NEARBY, [SavedContact(f"192.0.2.1:{n}", NOW - 10) for n in range(1, 200)]
    )
    source.know(f"192.0.2.2:{n}" for n in range(1, 102))
    known = [contact.address for contact in source.known]
    assert len(known) == 200
    assert sum(address.startswith("192.0.2.2") for address in known) == 101


async def test_a_survey_asks_the_dht_also_when_only_the_trackers_rows_name_its_nodes(lab: Callable[..., Lab]) -> None:
    host, _, port = CONTACT.partition(":")
    row = make_row(ADA, addresses=[f"{host}:7070"], dht=int(port))
    node = Node([compact_of(ADA, row)])
    made = lab({"one": [row]}, node=node)
    made.own_rows[ADA.peer_id] = row
    sight = await made.table.survey({}, 5)
    assert [set(seen.sources) for seen in sight.rows] == [{"tracker one:7070", DHT}]
    assert made.asked == ["one"], "the trackers have said what they know"
    await made.table.close()
