"""Peers that nobody can dial, reached through a relay over real sockets: what passes, what is refused, what is cut."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

import pytest

from axonp2p.errors import AxonError, BadSignature, Refused, TooOften, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.relay import registration
from axonp2p.transport.relay import server as relay_server
from axonp2p.transport.relay.splice import End
from axonp2p.transport.sessions import connections, listener
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tls import client_context
from axonp2p.transport.tunnel.inner import relayed_source
from axonp2p.transport.tunnel.messages import FromRegistered, OpenStream, RegisterAtRelay, RelayTerms
from axonp2p.transport.tunnel.tunnel import ask_relay, connect_through
from axonp2p.transport.ways import BareWhereabouts
from axonp2p.wire.codec import Message
from tests.unit.transport.relay.conftest import Relay

ME, STRANGER = PrivateKey.generate(), PrivateKey.generate()


class Word(Message, tag=True, frozen=True):
    text: str


async def echo(session: Session) -> None:
    while True:
        message, payload = await session.receive(Word)
        await session.send(message, payload, bulk=len(payload) > 1000)


async def says(session: Session, text: str, payload: bytes = b"") -> bytes:
    """What comes back."""
    await session.send(Word(text=text), payload)
    answer, back = await session.receive(Word)
    assert answer == Word(text=text)
    return bytes(back)


async def test_a_session_runs_through_a_relay_as_if_it_were_direct(relays) -> None:
    seen: list[str] = []

    async def serve(session: Session) -> None:
        seen.append(session.address)
        await echo(session)

    relay = await relays.relay(streams_of_peer=7)
    hidden = await relays.hidden(serve, relay)
    assert hidden.terms[0].streams == 7
    session = await dial(ME, hidden.at(relay), called="peer otter")
    assert session.relay == f"relay {relay.address.host_port}"
    assert session.peer == hidden.host.key.peer_id
    big = os.urandom(1_000_000)
    assert await says(session, "big", big) == big
    assert await says(session, "small") == b""
    await session.close()
    assert seen == ["127.0.0.1"]  # the caller's, as the relay sees it
    books = relay.server.admission
    assert books.totals.bytes > 2 * len(big)


async def test_questions_and_pings_pass_too_over_one_stream(relays) -> None:
    relay = await relays.relay()
    hidden = await relays.hidden(None, relay)
    where = PinnedAddress(hidden.host.key.peer_id, 443, hidden.host.certificate.fingerprint)
    async with HttpCaller(where, called="peer otter", relay=relay.address) as caller:
        assert 0 < await caller.round_trip() < 1
        assert 0 < await caller.round_trip() < 1
    assert relay.server.admission.totals.streams == 1


async def test_the_relay_sees_nothing_but_tls_records(relays, monkeypatch) -> None:
    passed: list[bytes] = []
    original = End.data_received

    def recorded(end: End, data: bytes) -> None:
        passed.append(bytes(data))
        original(end, data)

    monkeypatch.setattr(End, "data_received", recorded)
    relay = await relays.relay()
    hidden = await relays.hidden(echo, relay)
    session = await dial(ME, hidden.at(relay), called="peer otter")
    secret = b"the weights of otter" * 200
    assert await says(session, "secret word", secret) == secret
    await session.close()
    whole = b"".join(passed)
    assert len(whole) > 2 * len(secret)
    assert b"secret word" not in whole
    assert b"weights" not in whole
    assert b"HTTP" not in whole
    assert passed[0][0] == 22  # the caller's ClientHello


async def test_a_relay_that_answers_itself_is_found_out(relays, hosts) -> None:
    """Who is reached is proved inside the stream: another peer's certificate does not do."""
    relay = await relays.relay()
    hidden, other = await relays.hidden(echo, relay), await relays.hidden(echo, relay)
    where = hidden.at(relay)
    false = BareWhereabouts(
        where.peer, where.addresses, other.host.certificate.fingerprint, where.relays, where.dialable
    )
    with pytest.raises(BadSignature, match="another certificate answers"):
        await dial(ME, false, called="peer otter")


async def test_a_relay_with_another_certificate_is_not_spoken_to(relays) -> None:
    relay = await relays.relay()
    hidden = await relays.hidden(echo, relay)
    wrong = PinnedAddress(relay.address.host, relay.address.port, bytes(32))
    place = hidden.at(relay)
    with pytest.raises(Unreachable) as caught:
        await dial(ME, BareWhereabouts(place.peer, [], place.certificate, [str(wrong)]), called="peer otter")
    assert "another certificate answers" in caught.value.cause


async def test_direct_is_tried_first_and_the_relay_when_it_fails(relays) -> None:
    relay = await relays.relay()
    hidden = await relays.hidden(echo, relay)
    session = await dial(ME, hidden.at(relay, dialable=None), called="peer otter")
    assert session.relay
    await session.close()
    certificate, direct = hidden.host.certificate.fingerprint, [hidden.host.host_port]
    place = BareWhereabouts(hidden.host.key.peer_id, direct, certificate, [str(relay.address)])
    session = await dial(ME, place, called="peer otter")
    assert session.relay == ""
    await session.close()


async def test_a_peer_that_is_not_there_is_named_with_the_reason(relays) -> None:
    relay, other = await relays.relay(), await relays.relay()
    hidden = await relays.hidden(echo, other)
    with pytest.raises(Unreachable) as caught:
        await dial(ME, hidden.at(relay), called="peer otter")
    assert "holds no connection to this relay" in caught.value.cause
    session = await dial(ME, hidden.at(relay, other), called="peer otter")  # the next relay has it
    assert session.relay.endswith(other.address.host_port)
    await session.close()


async def test_a_relay_that_dies_cuts_its_streams_and_another_takes_over(relays) -> None:
    relay, other = await relays.relay(), await relays.relay()
    hidden = await relays.hidden(echo, relay, other)
    session = await dial(ME, hidden.at(relay, other), called="peer otter")
    used, left = (relay, other) if session.relay.endswith(relay.address.host_port) else (other, relay)
    await used.stop()
    async with asyncio.timeout(5):
        await session.ended.wait()
    await session.close()
    again = await dial(ME, hidden.at(relay, other), called="peer otter")
    assert again.relay.endswith(left.address.host_port)
    assert await says(again, "back", b"x") == b"x"
    await again.close()


async def test_quotas_refuse_new_streams_and_end_old_ones(relays, monkeypatch) -> None:
    monkeypatch.setattr(relay_server, "LOOK_EVERY_S", 0.05)
    relay = await relays.relay(hourly_bytes=200_000)
    hidden = await relays.hidden(echo, relay)
    session = await dial(ME, hidden.at(relay), called="peer otter")
    with suppress(AxonError):
        await says(session, "much", bytes(300_000))
    async with asyncio.timeout(5):
        await session.ended.wait()
    await session.close()
    with pytest.raises(Unreachable) as caught:
        await dial(ME, hidden.at(relay), called="peer otter")
    assert "bytes within an hour were carried" in caught.value.cause


async def test_a_second_registration_takes_the_place_of_the_first(relays) -> None:
    relay = await relays.relay(peers=1)
    hidden = await relays.hidden(echo, relay)
    await hidden.register(relay)
    with pytest.raises(Unreachable):
        await hidden.holding[0]
    session = await dial(ME, hidden.at(relay), called="peer otter")
    await session.close()
    full = await relays.hidden(echo)
    with pytest.raises(Refused, match="as many peers as it may"):
        await full.register(relay)


async def test_a_household_registers_few_keys_whatever_they_are(relays) -> None:
    relay = await relays.relay(peers_of_source=1)
    await relays.hidden(echo, relay)
    another = await relays.hidden(echo)
    with pytest.raises(Refused, match=r"as many peers of 127\.0\.0\.1 as it may"):
        await another.register(relay)


async def test_the_session_of_a_registration_that_gives_way_ends(relays) -> None:
    relay = await relays.relay(peers=1, registered_s=0.0)
    nobodys = await relays.hidden(echo, relay)
    await relays.hidden(echo, relay)
    with pytest.raises(Unreachable):
        await asyncio.wait_for(nobodys.holding[0], 10)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("example.org:443", "leads to a peer id"),
        ("x" * 52 + ":443", "leads to a peer id"),
        ("127.0.0.1:22", "leads to"),
    ],
)
async def test_a_relay_leads_to_peers_and_nowhere_else(relays, target: str, why: str) -> None:
    relay = await relays.relay()
    with pytest.raises(AxonError, match=why):
        await ask_relay(relay.address, f"CONNECT {target} HTTP/1.1\r\nHost: {target}", granted=200)


async def test_a_ticket_that_was_not_given_opens_nothing(relays) -> None:
    relay = await relays.relay()
    request = f"GET /v1/relayed/{'0' * 32} HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\nUpgrade: tcp"
    with pytest.raises(AxonError, match="no stream waits"):
        await ask_relay(relay.address, request, granted=101)


async def test_a_caller_who_speaks_too_early_or_rubbish_harms_nobody_else(relays) -> None:
    relay = await relays.relay()
    hidden = await relays.hidden(echo, relay)
    stream = await connect_through(relay.address, hidden.host.key.peer_id)
    stream.write(b"this is no TLS" * 100)
    session = await dial(ME, hidden.at(relay), called="peer otter")
    assert await says(session, "still", b"here") == b"here"
    await session.close()
    stream.abort()


async def test_an_end_that_was_closed_twice_can_still_be_aborted(relays) -> None:
    relay = await relays.relay()
    _, writer = await asyncio.open_connection("127.0.0.1", relay.address.port, ssl=client_context(verified=False))
    tls = writer.transport
    end = End(tls, tls.get_protocol(), lambda count: 0.0)
    end.close()
    end.close()
    assert tls._ssl_protocol is not None  # there is something to abort
    tls.close()  # as aiohttp does, which had it before
    end.abort()  # an error in Python 3.11.2


async def test_a_peer_that_does_not_come_is_waited_for_only_so_long(relays, monkeypatch) -> None:
    monkeypatch.setattr(relay_server, "CALLBACK_S", 0.2)
    relay = await relays.relay()
    hidden = await relays.hidden(echo, relay)
    hidden.host.listener.take_in = None  # it will not get as far
    monkeypatch.setattr("axonp2p.transport.relay.registration.pick_up", _never)
    with pytest.raises(Unreachable) as caught:
        await dial(ME, hidden.at(relay), called="peer otter")
    assert "did not answer its relay in time" in caught.value.cause
    assert not relay.server.admission.streams


async def _never(*_: object) -> None:
    await asyncio.Event().wait()


class FromWherever:
    """A stranger's relay, which names as its callers whom it likes."""

    def __init__(self, hidden, relay: PeerId = STRANGER.peer_id) -> None:
        self.listener, self.relay = hidden.host.listener, relay
        self._lines: list[socket.socket] = []
        self._taking: list[asyncio.Task[None]] = []

    async def brings(self, caller: str) -> asyncio.Task[None]:
        """A caller that says nothing; the task ends when it is refused or cut off."""
        near, far = socket.socketpair()
        self._lines.append(far)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, near)

        async def ready() -> None:
            pass

        taking = asyncio.create_task(self.listener.take_in(transport, caller, self.relay, ready))
        self._taking.append(taking)
        await asyncio.sleep(0.01)
        return taking

    async def stop(self) -> None:
        for taking in self._taking:
            taking.cancel()
        await asyncio.gather(*self._taking, return_exceptions=True)
        for line in self._lines:
            line.close()


async def test_made_up_callers_count_by_the_relay_that_brought_them(relays, monkeypatch) -> None:
    monkeypatch.setattr(connections, "MOST_OF_ONE", 3)
    hidden = await relays.hidden()
    stranger = FromWherever(hidden)
    for number in range(3):
        assert not (await stranger.brings(f"192.0.2.{number}")).done()
    refused = await stranger.brings("192.0.2.9")
    with pytest.raises(TooOften):
        await refused
    assert not (await FromWherever(hidden, ME.peer_id).brings("192.0.2.9")).done(), (
        "another relay has places of its own"
    )
    await stranger.stop()


def test_a_relays_callers_of_one_ipv6_household_are_one() -> None:
    one = relayed_source("2001:db8::1", STRANGER.peer_id)
    assert one == relayed_source("2001:db8:0:ff::2", STRANGER.peer_id)
    assert one != relayed_source("2001:db8:0:100::2", STRANGER.peer_id)


async def test_a_relay_brings_so_many_callers_a_second_and_no_more_whatever_their_addresses(
    relays, monkeypatch
) -> None:
    monkeypatch.setattr(connections, "OPENED_AT_ONCE", 3.0)
    monkeypatch.setattr(connections, "OPENED_A_SECOND", 0.1)
    hidden = await relays.hidden()
    stranger = FromWherever(hidden)
    for number in range(3):
        assert not (await stranger.brings(f"192.0.2.{number}")).done()
    with pytest.raises(TooOften):
        await (await stranger.brings("192.0.2.9"))
    await stranger.stop()


async def test_what_a_relay_says_of_its_callers_costs_no_household_its_places(relays, monkeypatch) -> None:
    """It names as its callers a household that calls directly as well."""
    seen: list[Session] = []

    async def serve(session: Session) -> None:
        seen.append(session)
        session.admit()
        await session.ended.wait()

    relay = await relays.relay()
    monkeypatch.setattr(listener, "MOST_SESSIONS_OF_ONE", 2)
    hidden = await relays.hidden(serve, relay)
    through = [await dial(ME, hidden.at(relay), called="peer otter") for _ in range(2)]
    with pytest.raises(AxonError):
        await dial(ME, hidden.at(relay), called="peer otter")
    direct = await hidden.host.dial()
    assert [session.address for session in seen] == ["127.0.0.1"] * 3
    assert len({session.source for session in seen}) == 2
    for session in (*through, direct):
        await session.close()


async def test_a_relay_that_announces_streams_without_end_has_few_of_them_dialled(relays, hosts, monkeypatch) -> None:
    """For each of them this side opens a connection to the relay, which may be a stranger's own machine."""
    monkeypatch.setattr(registration, "ORDERS_AT_ONCE", 3.0)
    monkeypatch.setattr(registration, "ORDERS_A_SECOND", 0.1)
    refused: list[FromRegistered] = []

    async def serve(session: Session) -> None:
        await session.receive(RegisterAtRelay)
        await session.send(RelayTerms(streams=9, hourly_bytes=0, stream_s=60))
        for number in range(20):
            await session.send(OpenStream(ticket=f"{number:032x}", caller="192.0.2.1"))
        while True:
            refused.append((await session.receive(FromRegistered))[0])

    relay = Relay(await hosts.start(serve), None, None)
    hidden = await relays.hidden()
    await hidden.register(relay)
    await asyncio.sleep(0.5)
    assert len(refused) == 3
