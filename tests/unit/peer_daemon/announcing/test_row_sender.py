"""A row given to a tracker that is played here: by HTTPS first, by datagram then, and by HTTPS where those fail."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from axonp2p.errors import Busy, Refused, TrackerUnreachable
from axonp2p.table.announce_datagrams import (
    DATAGRAMS_PATH,
    AnnounceQuestion,
    DatagramTicket,
    Yes,
    read_question,
    ticket_key,
    write_no,
    write_token,
    write_yes,
)
from axonp2p.table.records import Announced, Row
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.wire.envelope import Signed, sign
from peer_daemon.announcing import datagram_talk
from peer_daemon.announcing.announce_ways import FIRST_REST_S, AnnounceWays
from peer_daemon.announcing.row_sender import Given, RowSender
from tests.fakes import NOW, ManualClock, key_of, make_row

ADA, LAB = key_of("ada"), key_of("lab")
ROW = sign(ADA, make_row(ADA))
TOKEN, TICKET = b"12345678", b"ticket.."
KEY = ticket_key(b"secret", TICKET)
TOLD = Announced(tracker=LAB.peer_id, again_in=300.0, seen_from="127.0.0.1", time=NOW)
Says = Callable[[AnnounceQuestion], bytes]


def yes(question: AnnounceQuestion) -> bytes:
    return write_yes(question.nonce, KEY, Yes(TOLD, b"news"))


def token_first(question: AnnounceQuestion) -> bytes:
    return yes(question) if question.token == TOKEN else write_token(question.nonce, TOKEN)


class PlayedTracker:
    """A UDP port on loopback, and the HTTPS line of the same tracker."""

    called = "tracker lab"

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(("127.0.0.1", 0))
        self.address = PinnedAddress("127.0.0.1", self.socket.getsockname()[1], None)
        self.says: Says | None = token_first
        self.offers: DatagramTicket | Exception = DatagramTicket(ticket=TICKET, key=KEY)
        self.away = False
        self.ways: list[str] = []

    async def call(self, path: str, message: Any, answer: Any, limit: int) -> Any:
        if path == DATAGRAMS_PATH:
            self.ways.append("ticket")
            if isinstance(self.offers, Exception):
                raise self.offers
            return self.offers
        self.ways.append("https")
        if self.away:
            raise TrackerUnreachable("away")
        return TOLD

    def listen(self) -> None:
        asyncio.get_running_loop().add_reader(self.socket, self._read)

    def _read(self) -> None:
        datagram, sender = self.socket.recvfrom(4096)
        question = read_question(datagram)
        assert question is not None
        self.ways.append("datagram")
        if self.says is not None:
            self.socket.sendto(self.says(question), sender)


@pytest.fixture
def tracker() -> Iterator[PlayedTracker]:
    played = PlayedTracker()
    yield played
    played.socket.close()


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagram_talk, "WAITS_S", (0.01, 0.01))


class Setting:
    def __init__(self, tracker: PlayedTracker, policy: DialPolicy | None = None) -> None:
        self.clock = ManualClock()
        self.sender = RowSender(AnnounceWays(), lambda address: policy, self.clock, os.urandom)
        self.tracker = tracker
        tracker.listen()

    async def give(self, signed: Signed[Row] = ROW) -> tuple[Given, list[str]]:
        self.tracker.ways.clear()
        given = await self.sender.give(self.tracker, signed)  # type: ignore[arg-type]
        return given, list(self.tracker.ways)


async def test_https_first_and_datagrams_from_then_on(tracker: PlayedTracker) -> None:
    setting = Setting(tracker)
    assert await setting.give() == (Given(TOLD, None), ["https", "ticket"])
    assert await setting.give() == (Given(TOLD, b"news"), ["datagram", "datagram"])
    assert await setting.give() == (Given(TOLD, b"news"), ["datagram"])  # the token serves again


async def test_silence_is_followed_by_https_and_remembered(tracker: PlayedTracker, brief: None) -> None:
    setting = Setting(tracker)
    await setting.give()
    tracker.says = None
    assert await setting.give() == (Given(TOLD, None), ["datagram", "datagram", "https"])
    tracker.says = token_first
    assert await setting.give() == (Given(TOLD, None), ["https"])
    setting.clock.time += FIRST_REST_S
    assert await setting.give() == (Given(TOLD, None), ["https", "ticket"])
    assert (await setting.give())[1] == ["datagram", "datagram"]


async def test_a_closed_port_is_noticed_at_once(tracker: PlayedTracker) -> None:
    setting = Setting(tracker)
    await setting.give()
    asyncio.get_running_loop().remove_reader(tracker.socket)
    tracker.socket.close()
    assert await setting.give() == (Given(TOLD, None), ["https"])


async def test_a_forged_yes_is_not_believed(tracker: PlayedTracker, brief: None) -> None:
    setting = Setting(tracker)
    await setting.give()
    tracker.says = lambda question: write_yes(question.nonce, bytes(32), Yes(TOLD, b"news"))
    assert (await setting.give())[1] == ["datagram", "datagram", "https"]


async def test_after_a_no_https_tells_why(tracker: PlayedTracker) -> None:
    setting = Setting(tracker)
    await setting.give()
    tracker.says, tracker.away = lambda question: write_no(question.nonce), True
    with pytest.raises(TrackerUnreachable):
        await setting.give()
    assert tracker.ways == ["datagram", "https"]
    tracker.away = False
    assert (await setting.give())[1] == ["https"]
    tracker.says = token_first
    assert (await setting.give())[1] == ["datagram", "datagram"]


async def test_a_tracker_that_is_away_is_no_reason_to_give_datagrams_up(tracker: PlayedTracker, brief: None) -> None:
    setting = Setting(tracker)
    await setting.give()
    tracker.says, tracker.away = None, True
    with pytest.raises(TrackerUnreachable):
        await setting.give()
    tracker.says = token_first
    assert (await setting.give())[1] == ["datagram", "datagram"]


@pytest.mark.parametrize(
    ("error", "asked_again"),
    [(Refused("nothing there"), False), (Busy("later"), True), (TrackerUnreachable("?"), True)],
)
async def test_one_without_datagrams_is_not_asked_each_time(
    tracker: PlayedTracker, error: Exception, asked_again: bool
) -> None:
    setting = Setting(tracker)
    tracker.offers = error
    assert (await setting.give())[1] == ["https", "ticket"]
    assert (await setting.give())[1] == ["https", "ticket"] if asked_again else ["https"]


async def test_a_strangers_address_gets_no_datagram(tracker: PlayedTracker) -> None:
    setting = Setting(tracker, DialPolicy(lambda: ["203.0.113.1"]))
    await setting.give()
    assert (await setting.give())[1] == ["https"]
