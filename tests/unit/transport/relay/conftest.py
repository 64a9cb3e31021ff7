"""A relay on a real socket, and peers that are registered with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from axonp2p.clock import SystemClock
from axonp2p.transport.relay.door import RelayDoor
from axonp2p.transport.relay.registration import Registration
from axonp2p.transport.relay.server import RelayServer
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tunnel.messages import RelayLimits, RelayTerms
from axonp2p.transport.ways import BareWhereabouts


@dataclass
class Relay:
    """One relay and what it takes to use it."""

    host: object
    server: RelayServer
    running: asyncio.Task[None]

    @property
    def address(self):
        return self.host.address

    async def stop(self) -> None:
        self.running.cancel()
        await self.server.stop()
        await self.host.listener.stop()


@dataclass
class Hidden:
    """A peer that is only reached through relays."""

    host: object
    terms: list[RelayTerms] = field(default_factory=list)
    holding: list[asyncio.Task[None]] = field(default_factory=list)

    def at(self, *relays: Relay, dialable: bool | None = False) -> BareWhereabouts:
        names = [str(relay.address) for relay in relays]
        certificate = self.host.certificate.fingerprint
        return BareWhereabouts(self.host.key.peer_id, ["127.0.0.1:1"], certificate, names, dialable)

    async def register(self, relay: Relay) -> Registration:
        host, registered = self.host, asyncio.Event()
        registration = Registration(host.key, relay.address, relay.host.key.peer_id, host.listener, called="relay lab")

        def heard(terms: RelayTerms) -> None:
            self.terms.append(terms)
            registered.set()

        holding = asyncio.create_task(registration.hold(heard))
        self.holding.append(holding)
        waiting = asyncio.create_task(registered.wait())
        await asyncio.wait([holding, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if holding.done():
            holding.result()
        return registration


class Relays:
    """Makes relays and hidden peers, and stops them after the test."""

    def __init__(self, hosts) -> None:
        self._hosts = hosts
        self._relays: list[Relay] = []
        self._hidden: list[Hidden] = []

    async def relay(self, **limits: float) -> Relay:
        server = RelayServer(RelayLimits(**limits), SystemClock())
        door = RelayDoor(server, "relay lab")
        host = self._hosts.make()
        host.listener.serve_sessions(host.app, door.serve)
        door.add_to(host.app)
        await host.listener.start("127.0.0.1", 0)
        relay = Relay(host, server, asyncio.create_task(server.run()))
        self._relays.append(relay)
        return relay

    async def hidden(self, serve: Callable[[Session], Awaitable[None]] | None = None, *at: Relay) -> Hidden:
        hidden = Hidden(await self._hosts.start(serve))
        self._hidden.append(hidden)
        for relay in at:
            await hidden.register(relay)
        return hidden

    async def stop(self) -> None:
        for hidden in self._hidden:
            for holding in hidden.holding:
                holding.cancel()
            await asyncio.gather(*hidden.holding, return_exceptions=True)
        for relay in self._relays:
            await relay.stop()


@pytest.fixture
async def relays(hosts) -> AsyncIterator[Relays]:
    made = Relays(hosts)
    yield made
    await made.stop()
