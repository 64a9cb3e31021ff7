from __future__ import annotations

import time
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from axonp2p.errors import AxonError, Busy, Refused, TooOften
from axonp2p.identity.certificate import make_certificate
from axonp2p.reservation.reserving import RESERVE_PATH, new_uuid, reserve
from axonp2p.reservation.token import Token, TokenGiven
from axonp2p.table.peer_client import fetch_row
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.sessions.listener import Listener
from axonp2p.wire.envelope import open_signed, sign
from peer_daemon.lending.leases import Leases
from peer_daemon.lending.lending import Lending
from peer_daemon.lending.own_tokens import OwnTokens
from peer_daemon.lending.questions import ASKED_AT_ONCE, RESERVE_COST, PeerQuestions
from tests.fakes import ManualClock, key_of, make_offer, make_row

PEER, CLIENT = key_of("peer"), key_of("client")


class Asked:
    """A peer that answers questions on a free port."""

    def __init__(self, folder, *, tokens: bool = True, slots: int = 1):
        self.clock = ManualClock(time.time())
        self.row = None
        offer = make_offer(slots=slots, free=slots)
        self.leases = Leases(PEER.peer_id, Lending(offer), check_address=True)
        self.questions = PeerQuestions(
            lambda: self.row, OwnTokens(PEER, Lending(offer)) if tokens else None, self.leases, self.clock
        )
        self.certificate = make_certificate(PEER, folder / "certificate.pem")

    @asynccontextmanager
    async def line(self):
        app = web.Application()
        self.questions.add_to(app)
        listener = Listener(PEER, self.certificate, app)
        port = await listener.start("127.0.0.1", 0)
        try:
            async with HttpCaller(
                PinnedAddress("127.0.0.1", port, self.certificate.fingerprint), called="the peer"
            ) as line:
                yield line
        finally:
            await listener.stop()

    async def reserve(self, line):
        return await reserve(
            line, CLIENT, [PEER.peer_id], uuid=new_uuid(), kinds=["train"], seconds=60, now=self.clock.now()
        )


async def test_it_gives_its_newest_row(tmp_path):
    asked = Asked(tmp_path)
    async with asked.line() as line:
        with pytest.raises(Refused, match="no row yet"):
            await fetch_row(line, PEER.peer_id, now=asked.clock.now())
        row = make_row(PEER, now=asked.clock.now())
        asked.row = sign(PEER, row)
        assert await fetch_row(line, PEER.peer_id, now=asked.clock.now()) == row


async def test_it_gives_a_token_to_the_address_that_asks(tmp_path):
    asked = Asked(tmp_path)
    async with asked.line() as line:
        token = open_signed(await asked.reserve(line), Token)
    assert (token.issuer, token.client, token.client_address) == (PEER.peer_id, CLIENT.peer_id, "127.0.0.1")


async def test_it_gives_none_when_its_owner_says_so_or_no_slot_is_free(tmp_path):
    asked = Asked(tmp_path, tokens=False)
    async with asked.line() as line:
        with pytest.raises(Refused, match="gives no tokens"):
            await asked.reserve(line)
    asked = Asked(tmp_path, slots=0)
    async with asked.line() as line:
        with pytest.raises(Busy, match="every slot"):
            await asked.reserve(line)


async def test_rubbish_is_refused_and_harms_nothing(tmp_path):
    asked = Asked(tmp_path)
    async with asked.line() as line:
        for rubbish in (sign(PEER, make_row(PEER)), make_row(PEER), None):
            with pytest.raises(AxonError):
                await line.call(RESERVE_PATH, rubbish, TokenGiven, 20_000)
        assert await asked.reserve(line)


async def test_questions_of_one_household_are_bounded_and_asking_for_a_token_counts_as_many(tmp_path):
    asked = Asked(tmp_path)
    now = asked.clock.monotonic()
    asked.questions._limit.take("127.0.0.1", now, ASKED_AT_ONCE - RESERVE_COST)
    async with asked.line() as line:
        with pytest.raises(TooOften):
            await asked.reserve(line)
        asked.questions._limit.take("127.0.0.1", now, RESERVE_COST - 1)
        with pytest.raises(TooOften):
            await fetch_row(line, PEER.peer_id, now=now)
