"""A peer that nobody can dial registers with relays, says so in its row, and goes to another when one dies."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest
from aiohttp import web

from axonp2p.clock import SystemClock
from axonp2p.identity.certificate import make_certificate
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.relay.choice import RelayCandidate, RelayChoice
from axonp2p.transport.relay.door import RelayDoor
from axonp2p.transport.relay.server import RelayServer
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.tunnel.messages import RelayLimits
from peer_daemon.announcing.own_row import OwnRow, lasting_row
from peer_daemon.lending.lending import Lending
from peer_daemon.reachability.relay_side import RelaySide
from tests.fakes import key_of, make_offer

PEER = key_of("peer")


class Relay:
    """One on a real socket."""

    def __init__(self, name, folder):
        self.key = key_of(name)
        app = web.Application()
        self.certificate = make_certificate(self.key, folder / f"{name}.pem")
        self.listener = Listener(self.key, self.certificate, app)
        self.door = RelayDoor(RelayServer(RelayLimits(), SystemClock()), name)
        self.door.add_to(app)
        self.listener.serve_sessions(app, self.door.serve)

    async def start(self):
        port = await self.listener.start("127.0.0.1", 0)
        self.address = PinnedAddress("127.0.0.1", port, self.certificate.fingerprint)
        return RelayCandidate(str(self.address), self.key.peer_id, f"relay {port}")

    async def stop(self):
        await self.door.stop()
        await self.listener.stop()


class Home:
    """The peer behind its router."""

    def __init__(self, folder):
        self.app = web.Application()
        add_ping(self.app)
        self.certificate = make_certificate(PEER, folder / "peer.pem")
        self.listener = Listener(PEER, self.certificate, self.app)
        lasting = lasting_row(PEER.peer_id, "otter", self.certificate.fingerprint, issues_tokens=True)
        self.own = OwnRow(lasting, Lending(make_offer()), "0.0.0.0")
        self.told: asyncio.Queue[list[str]] = asyncio.Queue()
        self.found: list[RelayCandidate] = []
        self.side = RelaySide(
            PEER,
            self.listener,
            self.own,
            RelayChoice(random.Random(1)),
            SystemClock(),
            changed=lambda: self.told.put_nowait(list(self.own.relays)),
            find_relays=self._find_relays,
        )

    async def _find_relays(self):
        return self.found

    async def names(self, *wanted):
        """Wait until the row names exactly these relays."""
        async with asyncio.timeout(10):
            while set(self.own.relays) != {str(relay.address) for relay in wanted}:
                await self.told.get()

    async def is_reached_through(self, relay):
        where = PinnedAddress(PEER.peer_id, 443, self.certificate.fingerprint)
        async with HttpCaller(where, called="peer otter", relay=relay.address) as caller:
            return await caller.round_trip() > 0


@pytest.fixture
async def relays(tmp_path):
    made = [Relay(name, tmp_path) for name in ("one", "two", "three")]
    yield made
    for relay in made:
        await relay.stop()


@pytest.fixture
async def home(tmp_path):
    home = Home(tmp_path)
    await home.listener.start("127.0.0.1", 0)
    running = asyncio.create_task(home.side.run())
    yield home
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await home.listener.stop()


async def test_two_relays_are_held_and_a_third_when_one_dies(home, relays):
    one, two, three = [await relay.start() for relay in relays]
    home.side.say([one, two], needed=True)
    await home.names(relays[0], relays[1])
    assert await home.is_reached_through(relays[0])
    assert await home.is_reached_through(relays[1])
    home.side.say([one, two, three], needed=True)
    await relays[0].stop()
    await home.names(relays[1], relays[2])
    assert await home.is_reached_through(relays[2])


async def test_with_too_few_trackers_volunteers_are_asked(home, relays):
    one, two, _ = [await relay.start() for relay in relays]
    home.found = [two]
    home.side.say([one], needed=True)
    await home.names(relays[0], relays[1])


async def test_nobody_is_asked_while_others_can_dial_the_peer(home, relays):
    one, two, three = [await relay.start() for relay in relays]
    home.side.say([one, two, three], needed=False)
    home.side.say([one], needed=True)
    await home.names(relays[0])
    home.side.say([one, two, three], needed=False)  # kept for a while, and no other is asked
    assert home.own.relays == [one.address]
