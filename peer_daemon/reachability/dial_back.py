"""Whether this peer can be dialled, told by other peers where no tracker says it; and the same told to others.

A peer that is asked calls nobody but the asker, at the IP address that the question came from: so nobody can be made
to knock at somebody else's door. A question that came through a relay is not called back, as its address is only the
relay's word.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from aiohttp import web

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Refused
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.dht.records.compact import CompactRow
from axonp2p.table.dht.records.index_keys import RowQuery
from axonp2p.transport.address import PinnedAddress, plain_address, source_of
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.flow.rate_limit import RateLimit, charge_all
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import read_message, reply
from axonp2p.transport.messages import DialBack, DialedBack
from axonp2p.transport.tunnel.inner import RelayedTransport
from axonp2p.transport.ways import direct_ways

log = get_logger(__name__)

DIAL_BACK_PATH = "/v1/dialback"
QUESTION_LIMIT = 256
CALL_S = 3.0
OF_ONE, OF_ALL = 3, 30
"""Wishes of one IP address or IPv6 household that are followed at once, and of all together; as many come again within
a minute."""
ASKED_AT_ONCE = 3
"""Peers whose word is enough."""
SAMPLE = 30
SOON_S, LATER_S = 20.0, 900.0
"""How long until others are asked again: while nobody has said anything, and when somebody has."""


class DialBackDoor:
    """POST /v1/dialback."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of_one, self._of_all = RateLimit(OF_ONE / 60, OF_ONE), RateLimit(OF_ALL / 60, OF_ALL)

    def add_to(self, app: web.Application) -> None:
        """Serve it; before the application starts."""
        app.router.add_post(DIAL_BACK_PATH, self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        if isinstance(request.transport, RelayedTransport) or not request.remote:
            raise Refused("who comes through a relay is not called back")
        asked = await read_message(request, DialBack, QUESTION_LIMIT)
        caller = plain_address(request.remote)
        charges = [(self._of_one, source_of(caller), 1.0), (self._of_all, "all", 1.0)]
        charge_all(charges, self._clock.monotonic())
        there = PinnedAddress(caller, asked.port, asked.certificate)
        try:
            async with HttpCaller(there, called="a peer that asks", timeout_s=CALL_S) as line:
                await line.round_trip()
            reached = True
        except AxonError as error:
            log.debug("not reached", peer=there.host_port, reason=error.in_a_line)
            reached = False
        return reply(DialedBack(reached=reached))


class DialBackAsker:
    """One supervised task, `run`: asks while trackers say nothing."""

    def __init__(
        self,
        own: tuple[PeerId, bytes],
        clock: Clock,
        chance: random.Random,
        dials: DialPolicy,
        find: Callable[[RowQuery, int], Awaitable[list[CompactRow]]],
        heard: Callable[[dict[str, bool]], None],
    ) -> None:
        """`own` is this peer's id and the fingerprint of its certificate.

        `find` looks into the DHT; `heard` is told what peers said, by their ids.
        """
        self.port = 0
        """Where this peer listens, set before `run`."""
        self.trackers_tell = False
        """Whether some tracker has called this peer back: then nobody else has to."""
        self._peer, self._certificate = own
        self._clock = clock
        self._chance = chance
        self._dials = dials
        self._find = find
        self._heard = heard

    async def run(self) -> None:
        """Ask now and then, until cancelled."""
        while True:
            said = {} if self.trackers_tell else await self._ask_some()
            if said:
                self._heard(said)
            await asyncio.sleep(LATER_S if said else SOON_S)

    async def _ask_some(self) -> dict[str, bool]:
        try:
            rows = await self._find(RowQuery(), SAMPLE)
        except AxonError as error:
            log.debug("nobody to ask", reason=error.in_a_line)
            return {}
        public = [row for row in rows if row.peer != self._peer and row.dialable is not False and row.dht]
        self._chance.shuffle(public)
        answers = await asyncio.gather(*(self._ask(row) for row in public[:ASKED_AT_ONCE]))
        return {peer: reached for peer, reached in answers if reached is not None}

    async def _ask(self, row: CompactRow) -> tuple[PeerId, bool | None]:
        question = DialBack(port=self.port, certificate=self._certificate)
        for way in direct_ways(row, self._dials)[:1]:
            try:
                with one_look("a question to be dialled back"):
                    async with HttpCaller(way.address, called=f"peer {short(row.peer)}", timeout_s=2 * CALL_S) as line:
                        answer = await line.call(DIAL_BACK_PATH, question, DialedBack, QUESTION_LIMIT)
                    return row.peer, answer.reached
            except AxonError as error:
                log.debug("not told", peer=short(row.peer), reason=error.in_a_line)
        return row.peer, None
