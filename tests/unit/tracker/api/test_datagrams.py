"""Announces by datagram, with a whole tracker: heard this, said that. And datagrams that mean harm."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from axonp2p.errors import Busy, PortTaken, Refused
from axonp2p.peers.capability import Need, as_map
from axonp2p.table.announce_datagrams import (
    DATAGRAM_TICKET_LIMIT,
    DATAGRAMS_PATH,
    NO_TOKEN,
    AnnounceQuestion,
    Answer,
    DatagramTicket,
    No,
    TokenTold,
    Yes,
    read_answer,
    write_question,
)
from axonp2p.table.dht.rpc.rpc import LARGEST_DATAGRAM
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import query
from axonp2p.transport.flow.address_tokens import TOKEN_LIFE_S
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, key_of, make_row
from tests.unit.tracker.conftest import Running, Start
from tracker.api import datagram_door
from tracker.api.datagram_desk import DatagramOutcome
from tracker.api.datagram_door import READ_TOGETHER

ADA, BEN = key_of("ada"), key_of("ben")
PATIENCE_S = 20.0


@dataclass
class Asker:
    """A socket, and the ticket that its owner has."""

    lab: Running
    ticket: DatagramTicket
    line: socket.socket
    token: bytes = NO_TOKEN
    heard: list[bytes] = field(default_factory=list)

    async def ask(self, signed: Signed[Row], token: bytes | None = None) -> Answer | None:
        nonce = os.urandom(16)
        shown = self.token if token is None else token
        await self.send(write_question(AnnounceQuestion(nonce, self.ticket.ticket, shown, encode(signed))))
        return read_answer(await self.hear(), nonce, self.ticket.key)

    async def announce(self, signed: Signed[Row]) -> Answer | None:
        """With a token first."""
        told = await self.ask(signed)
        if not isinstance(told, TokenTold):
            return told
        self.token = told.token
        return await self.ask(signed)

    async def send(self, datagram: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.line, datagram)

    async def hear(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            self.heard.append(await asyncio.get_running_loop().sock_recv(self.line, 4096))
        return self.heard[-1]

    def said(self) -> dict[str, int]:
        desk = self.lab.tracker._datagrams._desk  # type: ignore[union-attr]
        return dict(desk.said)

    async def everything_read(self) -> None:
        """Whatever was sent before this was read."""
        before = self.said().get(DatagramOutcome.AGAIN, 0)
        await self.ask(sign(BEN, make_row(BEN)), token=NO_TOKEN)
        assert self.said()[DatagramOutcome.AGAIN] == before + 1


@pytest.fixture
def lines() -> Iterator[list[socket.socket]]:
    found: list[socket.socket] = []
    yield found
    for line in found:
        line.close()


@pytest.fixture
async def asker(lab: Running, lines: list[socket.socket]) -> Asker:
    ticket = await lab.caller.call(DATAGRAMS_PATH, None, DatagramTicket, DATAGRAM_TICKET_LIMIT)
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    lines.append(line)
    line.setblocking(False)
    line.connect((lab.address.host, lab.address.port))
    return Asker(lab, ticket, line)


async def names(lab: Running) -> set[str]:
    return {row.peer for row in (await query(lab.caller, as_map(Need()), 200, now=lab.clock.now())).rows}


# --- what peers do


async def test_who_announces_by_datagram_is_found_by_need(lab: Running, asker: Asker) -> None:
    answer = await asker.announce(sign(ADA, make_row(ADA)))
    assert isinstance(answer, Yes)
    assert (answer.announced.tracker, answer.announced.seen_from) == (lab.tracker.key.peer_id, "127.0.0.1")
    assert (answer.announced.again_in, answer.announced.time, answer.announced.ping_in) == (300, NOW, 4)
    assert await names(lab) == {ADA.peer_id}
    assert asker.said() == {DatagramOutcome.AGAIN: 1, DatagramOutcome.YES: 1}


async def test_a_row_is_durable_before_the_yes(start: Start, lab: Running, asker: Asker) -> None:
    row = make_row(ADA)
    assert isinstance(await asker.announce(sign(ADA, row)), Yes)
    await lab.stop()
    again = await start(clock=lab.clock)
    assert again.tracker.table.index.sequence_of(ADA.peer_id) == row.sequence


async def test_a_token_serves_again_until_it_is_old(lab: Running, asker: Asker) -> None:
    await asker.announce(sign(ADA, make_row(ADA, sequence=1)))
    lab.clock.time += TOKEN_LIFE_S
    assert isinstance(await asker.ask(sign(ADA, make_row(ADA, sequence=2))), Yes)
    lab.clock.time += TOKEN_LIFE_S
    assert isinstance(await asker.ask(sign(ADA, make_row(ADA, sequence=3))), TokenTold)
    assert isinstance(await asker.announce(sign(ADA, make_row(ADA, sequence=3))), Yes)


async def test_a_ticket_holds_over_a_restart_and_a_token_does_not(start: Start, lab: Running, asker: Asker) -> None:
    await asker.announce(sign(ADA, make_row(ADA, sequence=1)))
    await lab.stop()
    asker.lab = await start(clock=lab.clock, listen=lab.address.host_port)
    answer = await asker.ask(sign(ADA, make_row(ADA, sequence=2)))
    assert isinstance(answer, TokenTold)
    assert isinstance(await asker.announce(sign(ADA, make_row(ADA, sequence=2))), Yes)


async def test_a_withdrawal_is_heard(lab: Running, asker: Asker) -> None:
    await asker.announce(sign(ADA, make_row(ADA, sequence=1)))
    gone = Row(peer=ADA.peer_id, name="ada", sequence=2, addresses=[], certificate=b"c" * 32, expires=int(NOW) + 600,
               capability=None)  # fmt: skip
    assert isinstance(await asker.announce(sign(ADA, gone)), Yes)
    assert await names(lab) == set()


async def test_it_counts_as_an_announce_in_the_metrics(lab: Running, asker: Asker) -> None:
    await asker.announce(sign(ADA, make_row(ADA)))
    page = lab.tracker.metrics.page()[0].decode()
    assert 'axon_requests_total{path="/v1/announce",status="200"} 1.0' in page
    assert 'axon_datagrams_total{answer="yes"} 1.0' in page


# --- the rules are those of HTTPS: the same parts are asked


@pytest.mark.parametrize("why", ["expired", "forged", "another's", "rubbish", "stale"])
async def test_what_https_refuses_is_refused(lab: Running, asker: Asker, why: str) -> None:
    row = make_row(ADA, sequence=5)
    await lab.announce(ADA, sequence=6)
    forged = Signed[Row](signer=ADA.peer_id, payload=encode(row), signature=bytes(64))
    signed = {
        "expired": sign(ADA, make_row(ADA, expires=int(NOW) - 4000)),
        "forged": forged,
        "another's": sign(BEN, row),
        "rubbish": Signed[Row](signer=ADA.peer_id, payload=b"\xc1" * 300, signature=bytes(64)),
        "stale": sign(ADA, row),
    }[why]
    assert isinstance(await asker.announce(signed), No)
    assert lab.tracker.table.index.sequence_of(ADA.peer_id) == 6


async def test_a_row_that_cannot_be_stored_is_refused(
    lab: Running, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise Busy("the disk is full", fix="make room")

    with monkeypatch.context() as changed:
        changed.setattr(lab.tracker._database, "write", full)
        assert isinstance(await asker.announce(sign(ADA, make_row(ADA))), No)
    assert isinstance(await asker.ask(sign(ADA, make_row(ADA))), Yes)
    assert asker.said() == {DatagramOutcome.AGAIN: 1, DatagramOutcome.NO: 1, DatagramOutcome.YES: 1}


async def test_who_hangs_up_takes_nothing_from_who_announced_the_same(lab: Running, asker: Asker) -> None:
    announces = lab.tracker._datagrams._desk._announces  # type: ignore[union-attr]
    signed = sign(ADA, make_row(ADA))
    hangs_up, stays = (asyncio.create_task(announces.take(signed, address)) for address in ("127.0.0.1", "127.0.0.2"))
    await asyncio.sleep(0)  # both wait for the disk now
    hangs_up.cancel()
    assert (await stays).seen_from == "127.0.0.2"
    assert hangs_up.cancelled()
    assert isinstance(await asker.announce(signed), Yes)


async def test_both_doors_share_what_a_household_may_ask(lab: Running, asker: Asker) -> None:
    signed = sign(ADA, make_row(ADA))
    await asker.announce(signed)
    lab.tracker._limit.debit("127.0.0.1", lab.clock.monotonic(), 10_000)
    assert isinstance(await asker.ask(signed), No)
    with pytest.raises(Refused, match="too many requests"):
        await lab.announce(ADA)


async def test_both_doors_share_what_a_key_may_announce(lab: Running, asker: Asker) -> None:
    signed = sign(ADA, make_row(ADA))
    await asker.announce(signed)
    for _ in range(119):
        await lab.announce(ADA)
    assert isinstance(await asker.ask(signed), No)


async def test_a_new_peer_costs_its_household_more(lab: Running, asker: Asker) -> None:
    await asker.announce(sign(BEN, make_row(BEN)))
    before = lab.tracker._limit._buckets["127.0.0.1"].left
    await asker.ask(sign(ADA, make_row(ADA)))
    await asker.ask(sign(ADA, make_row(ADA)))
    assert before - lab.tracker._limit._buckets["127.0.0.1"].left == 3 + 1


async def test_a_tracker_that_may_not_says_so_and_opens_no_port(start: Start, lines: list[socket.socket]) -> None:
    lab = await start(datagrams=False)
    with pytest.raises(Refused):
        await lab.caller.call(DATAGRAMS_PATH, None, DatagramTicket, DATAGRAM_TICKET_LIMIT)
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    lines.append(line)
    line.bind(("127.0.0.1", lab.address.port))  # it is free


async def test_a_port_that_somebody_has_is_told(start: Start, lines: list[socket.socket]) -> None:
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    lines.append(line)
    line.bind(("127.0.0.1", 0))
    port = line.getsockname()[1]
    with pytest.raises(PortTaken, match=f"something else already listens at 127.0.0.1:{port} .UDP.") as caught:
        await start(listen=f"127.0.0.1:{port}")
    assert "datagrams = false" in caught.value.fix


# --- datagrams that mean harm


async def test_what_is_no_question_gets_no_answer(asker: Asker) -> None:
    question = write_question(AnnounceQuestion(os.urandom(16), asker.ticket.ticket, NO_TOKEN, bytes(500)))
    harmful = [b"", b"x", b"axA", os.urandom(700), question[:200], b"axA\2" + question[4:], question + bytes(1000)]
    for datagram in harmful:
        await asker.send(datagram)
    await asker.everything_read()
    assert asker.said() == {DatagramOutcome.DROPPED: len(harmful), DatagramOutcome.AGAIN: 1}
    assert len(asker.heard) == 1


async def test_without_a_token_nothing_is_looked_at_and_nobody_is_charged(lab: Running, asker: Asker) -> None:
    for number in range(50):
        told = await asker.ask(sign(ADA, make_row(ADA, sequence=number + 1)), token=os.urandom(8))
        assert isinstance(told, TokenTold)
    assert "127.0.0.1" not in lab.tracker._limit._buckets or lab.tracker._limit._buckets["127.0.0.1"].left > 990
    assert lab.tracker.table.index.sequence_of(ADA.peer_id) is None


async def test_no_answer_is_longer_than_its_question(asker: Asker) -> None:
    signed = sign(ADA, make_row(ADA))
    await asker.announce(signed)
    await asker.ask(Signed[Row](signer=ADA.peer_id, payload=b"x" * 200, signature=bytes(64)))
    assert len(asker.heard) == 3
    assert max(len(answer) for answer in asker.heard) < len(encode(signed))


async def test_another_address_cannot_use_a_token(lab: Running, asker: Asker, lines: list[socket.socket]) -> None:
    await asker.announce(sign(ADA, make_row(ADA)))
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    lines.append(other)
    other.setblocking(False)
    other.bind(("127.0.0.2", 0))
    other.connect((lab.address.host, lab.address.port))
    thief = Asker(lab, asker.ticket, other, asker.token)
    assert isinstance(await thief.ask(sign(BEN, make_row(BEN))), TokenTold)


async def test_a_trusted_proxy_that_passes_datagrams_on_is_not_taken_for_their_sender(start: Start) -> None:
    lab = await start(trusted_proxies=["127.0.0.1"])
    door = lab.tracker._datagrams
    assert door is not None
    door._heard(write_question(AnnounceQuestion(bytes(16), bytes(8), NO_TOKEN, bytes(500))), ("127.0.0.1", 4000))
    assert dict(door._desk.said) == {}


async def test_a_flood_of_rubbish_starves_nobody(asker: Asker) -> None:
    rubbish = os.urandom(700)
    for number in range(20):
        for _ in range(100):
            await asker.send(rubbish)
        assert isinstance(await asker.announce(sign(ADA, make_row(ADA, sequence=number + 1))), Yes)
    assert asker.said()[DatagramOutcome.DROPPED] == 2000


async def test_after_some_that_prove_nothing_the_door_rests(
    lab: Running, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have their turn meanwhile, as long as it takes; also where each turn found few of them."""
    monkeypatch.setattr(datagram_door, "REST_S", 3600.0)
    door = lab.tracker._datagrams
    assert door is not None
    door._unproven = RateLimit(a_second=1e-9, burst=20)
    for _ in range(6):
        for _ in range(5):
            asker.line.send(os.urandom(700))
        await lab.announce(ADA)  # by HTTPS
    assert asker.said() == {DatagramOutcome.DROPPED: 21}
    door._unproven = RateLimit(a_second=1e-9, burst=3)
    door._read_again()
    await lab.announce(BEN)
    assert asker.said() == {DatagramOutcome.DROPPED: 25}


async def test_those_with_a_token_are_read_without_a_rest(
    lab: Running, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asker.announce(sign(ADA, make_row(ADA, sequence=1)))
    monkeypatch.setattr(datagram_door, "REST_S", 3600.0)
    door = lab.tracker._datagrams
    assert door is not None
    door._unproven = RateLimit(a_second=1e-9, burst=0)
    for number in range(2 * READ_TOGETHER):
        assert isinstance(await asker.ask(sign(ADA, make_row(ADA, sequence=number + 2))), Yes)


def test_a_datagram_has_room_in_every_packet() -> None:
    assert LARGEST_DATAGRAM + 40 + 8 == 1280
