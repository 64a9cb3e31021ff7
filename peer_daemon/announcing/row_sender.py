"""Gives this peer's row to a tracker, by datagram where it takes them, else by HTTPS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Busy, Refused
from axonp2p.logs import get_logger
from axonp2p.table.announce_datagrams import (
    DATAGRAM_TICKET_LIMIT,
    DATAGRAMS_PATH,
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
from peer_daemon.announcing.datagram_line import address_of, converse
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
