"""Peers call each other back at their wish: nobody else, not too often, and only by the certificate."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from aiohttp import web

from axonp2p.clock import SystemClock
from axonp2p.errors import Refused, TooOften
from axonp2p.identity.certificate import make_certificate
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.messages import DialBack, DialedBack
from axonp2p.transport.sessions.listener import Listener
from peer_daemon.reachability import dial_back
from peer_daemon.reachability.dial_back import DIAL_BACK_PATH, DialBackAsker, DialBackDoor
from tests.fakes import HERE, key_of


class Peer:
    """A daemon's listener, as far as it matters here."""

    def __init__(self, name, folder):
        self.key = key_of(name)
        self.certificate = make_certificate(self.key, folder / f"{name}.pem")
        app = web.Application()
        add_ping(app)
        DialBackDoor(SystemClock()).add_to(app)
        self.listener = Listener(self.key, self.certificate, app)

    @property
    def address(self):
        return PinnedAddress("127.0.0.1", self.listener.port, self.certificate.fingerprint)

    def row(self, **changes):
        """A compact row, as far as it is looked at."""
        usual = {"peer": self.key.peer_id, "addresses": [self.address.host_port], "dht": 1, "dialable": None}
        return SimpleNamespace(certificate=self.certificate.fingerprint, relays=[], **(usual | changes))


@pytest.fixture
async def peers(tmp_path):
    made = [Peer(name, tmp_path) for name in ("ada", "ben")]
    for peer in made:
        await peer.listener.start("127.0.0.1", 0)
    yield made
    for peer in made:
        await peer.listener.stop()


async def test_the_asker_is_called_where_the_question_came_from(peers):
    ada, ben = peers
    async with HttpCaller(ben.address, called="ben") as line:

        async def is_reached(port, certificate):
            question = DialBack(port=port, certificate=certificate)
            return (await line.call(DIAL_BACK_PATH, question, DialedBack, 100)).reached

        assert await is_reached(ada.listener.port, ada.certificate.fingerprint)
        assert not await is_reached(ada.listener.port, bytes(32))
        assert not await is_reached(1, ada.certificate.fingerprint)
        with pytest.raises(TooOften):
            await is_reached(ada.listener.port, ada.certificate.fingerprint)


async def test_who_asks_hears_of_each_and_not_from_those_nobody_can_dial(peers, monkeypatch):
    ada, ben = peers
    asked = []

    async def find(wanted, count):
        asked.append(count)
        hidden = ben.row(peer=key_of("cleo").peer_id, dialable=False)
        return [ada.row(), ben.row(), hidden]

    asker = DialBackAsker(
        (ada.key.peer_id, ada.certificate.fingerprint), SystemClock(), random.Random(1), HERE, find, lambda said: None
    )
    asker.port = ada.listener.port
    assert await asker._ask_some() == {ben.key.peer_id: True}
    asker.port = 1
    assert await asker._ask_some() == {ben.key.peer_id: False}


async def test_who_may_not_be_dialled_is_not_asked(peers):
    ada, ben = peers

    async def find(wanted, count):
        return [ben.row()]

    public = DialPolicy(lambda: ["8.8.8.8"])
    asker = DialBackAsker(
        (ada.key.peer_id, ada.certificate.fingerprint), SystemClock(), random.Random(1), public, find, lambda said: None
    )
    asker.port = ada.listener.port
    assert await asker._ask_some() == {}


async def test_who_comes_through_a_relay_is_not_called(peers, monkeypatch):
    ada, ben = peers
    monkeypatch.setattr(dial_back, "RelayedTransport", object)  # as if every transport were one
    async with HttpCaller(ben.address, called="ben") as line:
        question = DialBack(port=ada.listener.port, certificate=ada.certificate.fingerprint)
        with pytest.raises(Refused, match="is not called back"):
            await line.call(DIAL_BACK_PATH, question, DialedBack, 100)
