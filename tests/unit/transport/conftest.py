"""Real loopback sockets with real TLS, on ports that the system chooses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from axonp2p.identity.certificate import Certificate, make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.flow import rate_limit
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.sessions import connections
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tunnel import inner
from axonp2p.transport.ways import BareWhereabouts

Serve = Callable[[Session], Awaitable[None]]


@dataclass
class Host:
    """One listener and what it takes to reach it."""

    key: PrivateKey
    certificate: Certificate
    app: web.Application
    listener: Listener

    @property
    def host_port(self) -> str:
        return f"127.0.0.1:{self.listener.port}"

    @property
    def address(self) -> PinnedAddress:
        return PinnedAddress.of(self.host_port, self.certificate.fingerprint)

    async def dial(self, key: PrivateKey | None = None, **changes: object) -> Session:
        """A session with it, as everybody would open one unless something is changed."""
        where: dict[str, object] = {"peer": self.key.peer_id, "addresses": [self.host_port]}
        where |= {"certificate": self.certificate.fingerprint}
        where |= {
            field: changes.pop(field) for field in ("peer", "addresses", "relays", "dialable") if field in changes
        }
        place = BareWhereabouts(**where)  # type: ignore[arg-type]
        return await dial(key or PrivateKey.generate(), place, **({"called": "peer otter"} | changes))  # type: ignore[arg-type]


class Hosts:
    """Starts listeners and stops them after the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Host] = []

    async def start(
        self,
        serve: Serve | None = None,
        prepare: Callable[[web.Application], None] | None = None,
        key: PrivateKey | None = None,
    ) -> Host:
        """A host that serves sessions with `serve` (by default it waits for their end)."""
        host = self.make(key)
        host.listener.serve_sessions(host.app, serve or wait_for_end)
        if prepare is not None:
            prepare(host.app)
        await host.listener.start("127.0.0.1", 0)
        return host

    def make(self, key: PrivateKey | None = None) -> Host:
        """A host that does not listen yet."""
        key = key or PrivateKey.generate()
        certificate = make_certificate(key, self._folder / f"{len(self._started)}.pem")
        app = web.Application()
        add_ping(app)
        host = Host(key, certificate, app, Listener(key, certificate, app))
        self._started.append(host)
        return host

    async def stop(self) -> None:
        """Stop them all."""
        await asyncio.gather(*(host.listener.stop() for host in self._started))


async def wait_for_end(session: Session) -> None:
    """Keep a session open until the other side ends it."""
    await session.ended.wait()


@pytest.fixture
async def hosts(tmp_path: Path) -> AsyncIterator[Hosts]:
    """Where listeners are started."""
    hosts = Hosts(tmp_path)
    yield hosts
    await hosts.stop()


@pytest.fixture
def one_house(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address of this computer is of one household, as the addresses of an IPv6 /56 are."""
    for room in (connections, inner, rate_limit):
        monkeypatch.setattr(room, "source_of", lambda address: "the house")
