"""The tracker calls real listeners before it believes anybody."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from axonp2p.errors import BadSignature, Refused
from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.peers.capability import Need, read_capability
from axonp2p.table.records import Report, ReportHeard, Row
from axonp2p.table.tracker_client import REPORT_PATH, announce
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import add_ping, errors_as_refusals
from axonp2p.transport.sessions.listener import Listener
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import HERE, ManualClock, key_of, make_row
from tests.unit.tracker.conftest import Start
from tracker.probing import prober
from tracker.probing.prober import Prober
from tracker.table.table_index import TableIndex

ADA, BEN, CLIENT, OTHER = (key_of(name) for name in ("ada", "ben", "client", "other"))
PATIENCE_S = 30.0


class Lab:
    """A table, and somebody who asks."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.index = TableIndex(random.Random(1))
        self.prober = Prober(self.index, HERE, self.clock)

    def put(self, key: PrivateKey, row: Row) -> None:
        assert row.capability is not None
        now = self.clock.now()
        self.index.put(sign(key, row), row, read_capability(row.capability), forget_at=now + 900, now=now)

    def accuse(self, peer: PrivateKey, by: PrivateKey = CLIENT, source: str = "127.0.0.1") -> bool:
        report = Report(peer=peer.peer_id, time=int(self.clock.now()))
        return self.prober.hear(sign(by, report), source)

    def found(self) -> int:
        return self.index.find(Need(), 10, self.clock.now()).fitting

    async def verdicts(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.prober._tasks:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.fixture
async def lab(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    monkeypatch.setattr(prober, "AGAIN_AFTER_S", 0.01)
    lab = Lab()
    yield lab
    await lab.prober.stop()


@asynccontextmanager
async def peer_at_work(key: PrivateKey, home: Path) -> AsyncIterator[Row]:
    """A listener as a peer has it, and its row."""
    app = web.Application()
    add_ping(app)
    certificate = make_certificate(key, home / "certificate.pem")
    listener = Listener(key, certificate, app)
    port = await listener.start("127.0.0.1", 0)
    try:
        yield make_row(key, addresses=[f"127.0.0.1:{port}"], certificate=certificate.fingerprint)
    finally:
        await listener.stop()


async def free_port() -> int:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_a_peer_that_answers_stays_and_its_accuser_loses_weight(lab: Lab, tmp_path: Path):
    async with peer_at_work(ADA, tmp_path) as row:
        lab.put(ADA, row)
        lab.put(BEN, make_row(BEN, addresses=row.addresses))
        assert lab.accuse(ADA)
        await lab.verdicts()
    assert lab.found() == 2
    assert not lab.accuse(BEN)  # a false accuser is not believed alone


async def test_a_dead_peer_is_found_no_more_until_it_announces_again(lab: Lab):
    row = make_row(ADA, addresses=[f"127.0.0.1:{await free_port()}"])
    lab.put(ADA, row)
    assert lab.accuse(ADA)
    assert not lab.accuse(ADA, OTHER)  # it is being called already
    await lab.verdicts()
    assert lab.found() == 0
    assert not lab.accuse(ADA, OTHER)  # known by now
    lab.put(ADA, make_row(ADA, sequence=2))
    assert lab.found() == 1


async def test_another_certificate_at_its_address_does_not_speak_for_it(lab: Lab, tmp_path: Path):
    async with peer_at_work(BEN, tmp_path) as row:
        lab.put(ADA, make_row(ADA, addresses=row.addresses))
        assert lab.accuse(ADA)
        await lab.verdicts()
    assert lab.found() == 0


async def test_an_address_that_it_would_not_call_gives_no_verdict(lab: Lab):
    lab.put(ADA, make_row(ADA, addresses=["127.0.0.1:7071"]))
    assert not lab.accuse(ADA, source="1.1.1.1")
    assert lab.found() == 1


async def test_nobody_is_accused_who_is_not_there(lab: Lab):
    assert not lab.accuse(ADA)


async def test_old_and_forged_reports_are_refused(lab: Lab):
    report = Report(peer=ADA.peer_id, time=int(lab.clock.now()) - 60)
    with pytest.raises(Refused, match="60 s ago"):
        lab.prober.hear(sign(CLIENT, report), "127.0.0.1")
    signed = sign(CLIENT, report)
    with pytest.raises(BadSignature):
        lab.prober.hear(Signed(signer=OTHER.peer_id, payload=signed.payload, signature=signed.signature), "127.0.0.1")


async def test_who_announces_learns_whether_it_can_be_called(lab: Lab, tmp_path: Path):
    dead = make_row(BEN, addresses=[f"127.0.0.1:{await free_port()}"])
    async with peer_at_work(ADA, tmp_path) as row:
        assert lab.prober.first_look(row, "127.0.0.1") is None
        assert lab.prober.first_look(dead, "127.0.0.1") is None
        await lab.verdicts()
        assert lab.prober.first_look(row, "127.0.0.1") is True
        assert lab.prober.first_look(dead, "127.0.0.1") is False
        assert not lab.prober._tasks


async def test_a_withdrawn_row_is_not_called(lab: Lab):
    assert lab.prober.first_look(make_row(ADA, capability=None), "127.0.0.1") is None
    assert not lab.prober._tasks


async def test_a_report_comes_over_the_line(lab: Lab, tmp_path: Path):
    lab.put(ADA, make_row(ADA, addresses=[f"127.0.0.1:{await free_port()}"]))
    app = web.Application(middlewares=[errors_as_refusals])
    lab.prober.add_routes(app)
    certificate = make_certificate(OTHER, tmp_path / "certificate.pem")
    listener = Listener(OTHER, certificate, app)
    port = await listener.start("127.0.0.1", 0)
    address = PinnedAddress("127.0.0.1", port, certificate.fingerprint)
    async with HttpCaller(address, called="tracker") as caller:
        report = sign(CLIENT, Report(peer=ADA.peer_id, time=int(lab.clock.now())))
        assert (await caller.call(REPORT_PATH, report, ReportHeard, 256)).checking
        await lab.verdicts()
    await listener.stop()
    assert lab.found() == 0


async def test_an_announce_tells_whether_the_peer_can_be_called(start: Start, tmp_path: Path):
    running = await start(clock=ManualClock(time.time()))
    home = tmp_path / "peer"
    home.mkdir()
    async with peer_at_work(ADA, home) as row, asyncio.timeout(PATIENCE_S):
        sequence, reached = 1, None
        while reached is None:
            said = msgspec.structs.replace(row, sequence=sequence, expires=int(running.clock.now()) + 600)
            reached = (await announce(running.caller, sign(ADA, said))).reached
            sequence += 1
            await asyncio.sleep(0.02)
    assert reached is True


async def test_rows_of_one_household_that_never_answer_keep_nobody_from_being_called(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    called: list[str] = []
    answered = asyncio.Event()

    async def answers(row: Row, ways: object) -> bool:
        called.append(row.peer)
        await answered.wait()
        return True

    monkeypatch.setattr(prober, "_answers", answers)
    monkeypatch.setattr(prober, "MOST_WAITING_OF_ONE", 3)
    for number in range(10):
        lab.prober.first_look(make_row(key_of(f"silent {number}"), now=lab.clock.now()), "127.0.0.7")
    lab.prober.first_look(make_row(ADA, now=lab.clock.now()), "127.0.0.1")
    await asyncio.sleep(0.01)
    assert len(called) == 4
    assert called[-1] == ADA.peer_id
    answered.set()
    await lab.verdicts()
    assert not lab.prober._waiting
    lab.prober.first_look(make_row(BEN, now=lab.clock.now()), "127.0.0.7")
    await lab.verdicts()
    assert called[-1] == BEN.peer_id
