"""A listener with its operator's own certificate: an authority vouches for it, and the address has no fingerprint."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from axonp2p.errors import SettingsError, Unreachable
from axonp2p.identity.certificate import authority_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tls import presented_fingerprint
from axonp2p.transport.ways import BareWhereabouts
from tests.laboratory.authority import Authority


class Served:
    """A listener with that certificate."""

    def __init__(self, authority: Authority, *hosts: str, days: float = 10) -> None:
        signed = authority.sign(*hosts, days=days)
        self.certificate = authority_certificate(signed.certificate, signed.key)
        self.key = PrivateKey.generate()
        app = web.Application()
        add_ping(app)
        self.listener = Listener(self.key, self.certificate, app)
        self.listener.serve_sessions(app, self._serve)

    async def _serve(self, session: Session) -> None:
        await session.ended.wait()

    async def __aenter__(self) -> PinnedAddress:
        return PinnedAddress("127.0.0.1", await self.listener.start("127.0.0.1", 0), None)

    async def __aexit__(self, *_: object) -> None:
        await self.listener.stop()


async def test_questions_and_sessions_need_no_fingerprint(authority: Authority) -> None:
    served = Served(authority, "127.0.0.1")
    async with served as address:
        async with HttpCaller(address, called="it") as caller:
            await caller.round_trip()
        place = BareWhereabouts(served.key.peer_id, [address.host_port], None)
        session = await dial(PrivateKey.generate(), place, called="it")
        assert session.peer == served.key.peer_id
        await session.close()


@pytest.mark.parametrize(
    ("hosts", "days", "cause"),
    [
        (("localhost",), 10, "its certificate is for another host name"),
        (("127.0.0.1",), -1, "its certificate has expired"),
    ],
)
async def test_what_is_wrong_with_a_certificate_is_said(
    authority: Authority, hosts: tuple[str, ...], days: float, cause: str
) -> None:
    async with Served(authority, *hosts, days=days) as address, HttpCaller(address, called="it") as caller:
        with pytest.raises(Unreachable) as raised:
            await caller.round_trip()
    assert raised.value.cause == cause
    assert "FINGERPRINT" not in raised.value.fix


async def test_a_new_certificate_is_shown_to_new_callers_and_sessions_go_on(authority: Authority) -> None:
    served = Served(authority, "127.0.0.1")
    async with served as address:
        place = BareWhereabouts(served.key.peer_id, [address.host_port], None)
        session = await dial(PrivateKey.generate(), place, called="it")
        signed = authority.sign("127.0.0.1", "localhost")
        fresh = authority_certificate(signed.certificate, signed.key)
        served.listener.renew(fresh)
        assert await presented_fingerprint(address.host, address.port, 5) == fresh.fingerprint
        again = await dial(PrivateKey.generate(), place, called="it")
        assert not session.ended.is_set()
        await asyncio.gather(session.close(), again.close())


async def test_a_broken_one_does_not_replace_it(authority: Authority, tmp_path: Path) -> None:
    served = Served(authority, "127.0.0.1")
    async with served as address:
        signed, other = authority.sign("127.0.0.1"), authority.sign("127.0.0.1")
        with pytest.raises(SettingsError, match="cannot be used"):
            authority_certificate(signed.certificate, other.key)
        with pytest.raises(SettingsError, match="holds no certificate"):
            authority_certificate(signed.key, signed.key)
        with pytest.raises(SettingsError, match="holds no certificate"):
            authority_certificate(tmp_path / "gone.pem", signed.key)
        assert await presented_fingerprint(address.host, address.port, 5) == served.certificate.fingerprint
