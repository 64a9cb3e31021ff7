"""The short questions that this peer answers itself: what it says of itself, and whether it gives a token."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler

from axonp2p.clock import Clock
from axonp2p.errors import NotFound, Refused, Unreachable
from axonp2p.identity.peer_id import short
from axonp2p.logs import get_logger
from axonp2p.reservation.reserving import RESERVE_PATH
from axonp2p.reservation.token import ReserveRequest, TokenGiven
from axonp2p.table.peer_client import ROW_PATH
from axonp2p.table.records import Row
from axonp2p.transport.address import plain_address
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.http.http_replies import read_message, reply
from axonp2p.transport.tunnel.inner import source_at
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from peer_daemon.lending.leases import Leases
from peer_daemon.lending.own_tokens import OwnTokens

log = get_logger(__name__)

ASKED_A_SECOND, ASKED_AT_ONCE = 50.0, 500.0
"""Questions of one household, pings too."""
RESERVE_COST = 10.0
"""The cost of asking for a token, in questions: a signature is checked, and another one made."""
REQUEST_LIMIT = ReserveRequest.LIMIT + ENVELOPE_OVERHEAD


class PeerQuestions:
    """Answers for one peer. `row` gives its newest row; `tokens` is None when its owner lets it give none."""

    def __init__(
        self, row: Callable[[], Signed[Row] | None], tokens: OwnTokens | None, leases: Leases, clock: Clock
    ) -> None:
        self._row = row
        self._tokens = tokens
        self._leases = leases
        self._clock = clock
        self._limit = RateLimit(ASKED_A_SECOND, ASKED_AT_ONCE)

    def add_to(self, app: web.Application) -> None:
        """Serve them, and charge every question of the application; before it starts."""
        app.middlewares.append(self._charged)
        app.router.add_get(ROW_PATH, self._say_row)
        app.router.add_post(RESERVE_PATH, self._reserve)

    @web.middleware
    async def _charged(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._limit.charge(_source(request), self._clock.monotonic())
        return await handler(request)

    async def _say_row(self, request: web.Request) -> web.Response:
        row = self._row()
        if row is None:
            raise NotFound("this peer has only just begun, and has no row yet")
        return reply(row)

    async def _reserve(self, request: web.Request) -> web.Response:
        if self._tokens is None:
            raise Refused("this peer gives no tokens itself", fix="ask a tracker for one")
        if request.remote is None:
            raise Unreachable("the caller is gone")
        self._limit.charge(_source(request), self._clock.monotonic(), RESERVE_COST)
        wish: Signed[ReserveRequest] = await read_message(request, Signed[ReserveRequest], REQUEST_LIMIT)
        address = plain_address(request.remote)
        free, now = self._leases.free(self._clock.now()), self._clock.now()
        token = self._tokens.issue(wish, address, free, now, _source(request))
        log.info("token given", client=short(wish.signer))
        return reply(TokenGiven(token=token))


def _source(request: web.Request) -> str:
    return source_at(request.transport, request.remote or "")
