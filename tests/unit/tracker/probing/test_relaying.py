"""A tracker as a relay: it carries to peers that nobody can dial, tells how much, and may be told not to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from axonp2p.errors import Refused, SettingsError
from axonp2p.identity.certificate import make_certificate
from axonp2p.settings import TrackerSettings
from axonp2p.table.records import Report, ReportHeard
from axonp2p.table.tracker_client import REPORT_PATH, announce
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.relay.registration import Registration
from axonp2p.transport.sessions.listener import Listener
from axonp2p.wire.envelope import sign
from tests.fakes import ManualClock, key_of, make_row
from tests.unit.tracker.conftest import Running
from tracker.app import Tracker
from tracker.probing import prober

ADA, CLIENT = key_of("ada"), key_of("client")


@asynccontextmanager
async def hidden_peer(tracker: PinnedAddress, tracker_id: str, home: Path) -> AsyncIterator[bytes]:
    """Ada, who is registered at the tracker; the fingerprint of her certificate."""
    app = web.Application()
    add_ping(app)
    certificate = make_certificate(ADA, home / "ada.pem")
    listener = Listener(ADA, certificate, app)
    await listener.start("127.0.0.1", 0)
    registered = asyncio.Event()
    registration = Registration(ADA, tracker, tracker_id, listener, called="tracker lab")
    holding = asyncio.create_task(registration.hold(lambda terms: registered.set()))
    waiting = asyncio.create_task(registered.wait())
    try:
        await asyncio.wait([holding, waiting], return_when=asyncio.FIRST_COMPLETED)
        if holding.done():
            holding.result()
        yield certificate.fingerprint
    finally:
        waiting.cancel()
        holding.cancel()
        await asyncio.gather(holding, waiting, return_exceptions=True)
        await listener.stop()


async def test_it_carries_and_counts(lab: Running, tmp_path: Path):
    async with hidden_peer(lab.address, lab.tracker.key.peer_id, tmp_path) as certificate:
        where = PinnedAddress(ADA.peer_id, 443, certificate)
        async with HttpCaller(where, called="peer ada", relay=lab.address) as caller:
            assert await caller.round_trip() > 0
        metrics = lab.tracker.metrics.page()[0].decode()
    assert "axon_relay_peers 1.0" in metrics
    assert "axon_relay_streams 1.0" in metrics


async def test_a_report_on_a_relayed_peer_is_checked_through_its_relay(
    lab: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(prober, "AGAIN_AFTER_S", 0.01)
    async with hidden_peer(lab.address, lab.tracker.key.peer_id, tmp_path) as certificate:
        hidden = {"certificate": certificate, "addresses": [], "relays": [str(lab.address)], "dialable": False}
        await announce(lab.caller, sign(ADA, make_row(ADA, **hidden)))
        report = sign(CLIENT, Report(peer=ADA.peer_id, time=int(lab.clock.now())))
        heard = await lab.caller.call(REPORT_PATH, report, ReportHeard, 1000)
        assert heard.checking
        await asyncio.gather(*lab.tracker._prober._tasks)
        assert lab.tracker.table.index.alive(lab.clock.now()) == 1
        assert lab.tracker._relay.server is not None
        assert lab.tracker._relay.server.admission.totals.streams == 1


async def test_a_peer_of_its_table_keeps_its_place_from_made_up_keys(lab: Running):
    assert lab.tracker._relay.server is not None
    books, made_up = lab.tracker._relay.server.admission, key_of("made up").peer_id
    await announce(lab.caller, sign(ADA, make_row(ADA, addresses=[])))
    books.register(ADA.peer_id, "192.0.2.7", 0)
    for number in range(1, books.limits.peers_of_source):
        books.register(key_of(f"made up {number}").peer_id, "192.0.2.7", 0)
    assert books.register(made_up, "192.0.2.7", 3600) == [key_of("made up 1").peer_id]


async def test_its_operator_may_forbid_it(tmp_path: Path):
    settings = TrackerSettings(listen="127.0.0.1:0", relay=False)
    tracker = Tracker(tmp_path, settings, ManualClock(), random.Random(1))
    address = await tracker.start()
    try:
        with pytest.raises(Refused, match="this tracker carries connections for nobody"):
            async with hidden_peer(address, tracker.key.peer_id, tmp_path):
                pass
    finally:
        await tracker.stop()


def test_limits_that_cannot_be_meant_are_refused_at_start(tmp_path: Path):
    with pytest.raises(SettingsError, match="relay-mbit is -1"):
        Tracker(tmp_path, TrackerSettings(relay_mbit=-1), ManualClock(), random.Random(1))
