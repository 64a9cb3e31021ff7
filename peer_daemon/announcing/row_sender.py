"""Gives this peer's row to a tracker, by datagram from a socket of its own where it takes them, else by HTTPS."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Busy, Refused
from axonp2p.logs import get_logger
from axonp2p.table.announce_datagrams import (
    DATAGRAM_TICKET_LIMIT,
    DATAGRAMS_PATH,
    LARGEST_ANSWER,
    NONCE_BYTES,
    DatagramTicket,
    No,
)
from axonp2p.table.records import Announced, Row
from axonp2p.table.tracker_client import announce
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed
from peer_daemon.announcing.announce_ways import AnnounceWays, DatagramWay
from peer_daemon.announcing.datagram_talk import DatagramTalk, TakenByDatagram

log = get_logger(__name__)


@dataclass(frozen=True)
class Given:
    """A tracker has the row."""

    answer: Announced
    news: bytes | None
    """`news_of` the trackers that it knows; None where the announce went by HTTPS, which is open then to ask."""


class RowSender:
    """Remembers of each tracker which way works. `randbytes` must be the operating system's outside of tests."""

    def __init__(
        self, ways: AnnounceWays, policy_of: Callable[[str], DialPolicy | None], clock: Clock,
        randbytes: Callable[[int], bytes],
    ) -> None:  # fmt: skip
        """`policy_of` says which addresses may be dialled for the tracker at an address; None: any."""
        self._ways = ways
        self._policy_of = policy_of
        self._clock = clock
        self._randbytes = randbytes

    async def give(self, line: HttpCaller, signed: Signed[Row]) -> Given:
        """Give the row to the tracker behind `line`, which holds it on disk then. Raises what `announce` raises."""
        address, body = str(line.address), encode(signed)
        way, outcome = self._ways.by_datagram(address, len(body)), None
        if way is not None:
            outcome = await self._by_datagram(line, way, body)
            if isinstance(outcome, TakenByDatagram):
                self._ways.answered(address, outcome.token)
                return Given(outcome.yes.announced, outcome.yes.news)
            if outcome is not None:
                self._ways.refused(address)
        answer = await announce(line, signed)
        was_silent = way is not None and outcome is None
        self._ways.taken_by_https(address, self._clock.now(), was_silent=was_silent)
        if was_silent:
            log.info("no datagrams get through", tracker=line.called)
        if self._ways.wants_ticket(address, self._clock.now()):
            await self._ask_for_ticket(line, answer.seen_from)
        return Given(answer, None)

    def keep_only(self, addresses: list[str]) -> None:
        """Forget all other trackers."""
        self._ways.keep_only(addresses)

    async def _by_datagram(self, line: HttpCaller, way: DatagramWay, body: bytes) -> TakenByDatagram | No | None:
        talk = DatagramTalk(way, self._randbytes(NONCE_BYTES), body)
        return await converse(talk, way.host, line.address.port)

    async def _ask_for_ticket(self, line: HttpCaller, seen_from: str) -> None:
        address = str(line.address)
        try:
            ticket = await line.call(DATAGRAMS_PATH, None, DatagramTicket, DATAGRAM_TICKET_LIMIT)
        except AxonError as error:
            if isinstance(error, Refused) and not isinstance(error, Busy):
                self._ways.not_offered(address, self._clock.now())
            return  # asked again after the next announce by HTTPS
        host = await address_of(line.address.host, line.address.port, seen_from, self._policy_of(address))
        if host:
            self._ways.offered(address, DatagramWay(host, ticket))
        else:
            self._ways.not_offered(address, self._clock.now())


async def converse(talk: DatagramTalk, host: str, port: int) -> TakenByDatagram | No | None:
    """Hold the conversation with that IP address and port to its end; None when nobody answers. Raises nothing.

    The socket is connected: the kernel drops what others send, and tells at once when nobody listens there.
    """
    loop = asyncio.get_running_loop()
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.connect((host, port))
            while (turn := talk.send()) is not None:
                datagram, wait_s = turn
                line.send(datagram)
                if await _heard(loop, line, talk, wait_s) and talk.outcome is not None:
                    break
    except OSError:
        return None
    return talk.outcome


async def _heard(loop: asyncio.AbstractEventLoop, line: socket.socket, talk: DatagramTalk, wait_s: float) -> bool:
    try:
        async with asyncio.timeout(wait_s):
            while not talk.hear(await loop.sock_recv(line, LARGEST_ANSWER + 1)):
                pass
    except TimeoutError:
        return False
    return True


async def address_of(host: str, port: int, seen_from: str, policy: DialPolicy | None) -> str:
    """An IP address of the tracker at `host`, of the family by which it saw this peer; empty when there is none.

    With a `policy` a stranger named the tracker.
    """
    six = ":" in seen_from
    family = socket.AF_INET6 if six else socket.AF_INET
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return ""
    hosts = [str(address[0]) for *_, address in found]
    return next((one for one in hosts if policy is None or policy.allows(one)), "")
