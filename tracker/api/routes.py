"""The tracker's addresses: each reads one bounded message, asks one part, and answers with one message.

errors_as_refusals   every error becomes a Refusal
counted              requests and times, for the metrics
limited              each source has so many requests a second
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

import axonp2p
from axonp2p.clock import Clock
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.ledger_client import VOIDINGS_PATH
from axonp2p.ledger.log_client import EVIDENCE_PATH
from axonp2p.ledger.receipt import RECEIPTS_LIMIT, BalancesAsked, Receipts
from axonp2p.ledger.voiding import VOIDING_LIMIT, EvidenceAsked, VoidingHandedIn
from axonp2p.peers.capability import read_need
from axonp2p.reservation.token import ReserveRequest, TokenGiven
from axonp2p.table.records import QUERY_LIMIT, Contacts, Query, Row, Rows
from axonp2p.table.tracker_client import ANNOUNCE_PATH, CONTACTS_PATH
from axonp2p.transport.address import plain_address, source_of
from axonp2p.transport.flow.rate_limit import BURST, RateLimit
from axonp2p.transport.http.http_replies import CODE, add_ping, errors_as_refusals, read_message, reply
from axonp2p.wire.codec import PROTOCOL_VERSION
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from tracker.api.announces import Announces
from tracker.api.metrics import Metrics
from tracker.ledger.issuer import Issuer
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.table.dht_bootstrap import ROWS_DRAWN, contacts_of
from tracker.table.table_store import TableStore

BALANCES_ASKED_LIMIT = 16 * 1024
EVIDENCE_ASKED_LIMIT = 256
BYTES_OF_A_REQUEST = 32 * 1024
"""A body costs one request more for each so many bytes: it is read before anything is known of it."""
LONGEST_BODY_COSTS = 12.0
"""The cost of a body that does not say how long it is."""
RESERVATION_COSTS = 10.0
"""A wish is checked, a token signed and stored: more than a question."""
ROWS_OF_A_QUERY = 50_000
"""A query looks at all rows, some thousands in a microsecond: it costs one request more for each so many."""
REQUIREMENT_COSTS = 0.25
"""A package's requirement in a need is parsed."""
COMPARISONS_OF_A_REQUEST = 64
"""So many comparisons of requirements with versions cost a query one request more."""
CONTACTS_COST = 4.0
EVIDENCE_COSTS = 5.0
"""Up to 200 kB are read, and the tokens that they stand on are looked up."""
SUMS_COST = 20.0
"""Balances of a job, and the largest earners: all receipts of the one, and all keys for the other, are gone through."""


class Routes:
    """Answers for one tracker."""

    def __init__(
        self,
        tracker: PeerId,
        table: TableStore,
        issuer: Issuer,
        ledger: LedgerKeeper,
        clock: Clock,
        announces: Announces,
    ) -> None:
        self._tracker = tracker
        self._table = table
        self._issuer = issuer
        self._ledger = ledger
        self._clock = clock
        self._announces = announces
        self._limit = RateLimit()
        self.trouble: Callable[[], str] = lambda: ""
        """The fault that hinders this tracker: a disk that takes nothing, a damaged log; empty when there is none."""

    def application(
        self, metrics: Metrics, limit: RateLimit, extra: Iterable[Callable[[web.Application], None]] = ()
    ) -> web.Application:
        """All of it as one aiohttp application. Each of `extra` adds the addresses of one more part."""
        self._limit = limit
        app = web.Application(middlewares=[_counted(metrics), errors_as_refusals, _limited(limit, self._clock)])
        app.router.add_post(ANNOUNCE_PATH, self.announce)
        app.router.add_post("/v1/query", self.query)
        app.router.add_post("/v1/reserve", self.reserve)
        app.router.add_post("/v1/receipts", self.receipts)
        app.router.add_post(VOIDINGS_PATH, self.voidings)
        app.router.add_post(EVIDENCE_PATH, self.evidence)
        app.router.add_post("/v1/balances", self.balances)
        app.router.add_get(CONTACTS_PATH, self.contacts)
        app.router.add_get("/v1/health", self.health)
        add_ping(app)
        for add_routes in extra:
            add_routes(app)
        return app

    async def announce(self, request: web.Request) -> web.Response:
        """A peer's row, or its withdrawal."""
        signed = await read_message(request, Signed[Row], Row.LIMIT + ENVELOPE_OVERHEAD)
        return reply(await self._announces.take(signed, _address(request)))

    async def query(self, request: web.Request) -> web.Response:
        """Peers that meet a need."""
        asked = await read_message(request, Query, QUERY_LIMIT)
        index, packages = self._table.index, asked.need.get("packages")
        requirements = len(packages) if isinstance(packages, list) else 0
        self._charge(request, len(index) / ROWS_OF_A_QUERY + requirements * REQUIREMENT_COSTS)
        need = read_need(asked.need)
        self._charge(request, index.comparisons(need) / COMPARISONS_OF_A_REQUEST)
        found = index.find(need, asked.count, self._clock.now(), asked.near)
        return reply(Rows(rows=found.rows, fitting=found.fitting, alive=found.alive))

    async def reserve(self, request: web.Request) -> web.Response:
        """A client's wish for a token."""
        signed = await read_message(request, Signed[ReserveRequest], ReserveRequest.LIMIT + ENVELOPE_OVERHEAD)
        self._charge(request, RESERVATION_COSTS - 1)
        return reply(TokenGiven(token=await self._issuer.issue(signed, _address(request), self._clock.now())))

    async def receipts(self, request: web.Request) -> web.Response:
        """Receipts that both signed."""
        handed_in = await read_message(request, Receipts, RECEIPTS_LIMIT)
        source = source_of(_address(request))
        kept = await self._ledger.keep(handed_in.receipts, handed_in.tokens, relayed=handed_in.relayed, source=source)
        return reply(kept)

    async def voidings(self, request: web.Request) -> web.Response:
        """A conviction, with its evidence."""
        handed_in = await read_message(request, VoidingHandedIn, VOIDING_LIMIT)
        return reply(await self._ledger.void(handed_in, source_of(_address(request))))

    async def evidence(self, request: web.Request) -> web.Response:
        """Why a conviction was believed."""
        asked = await read_message(request, EvidenceAsked, EVIDENCE_ASKED_LIMIT)
        self._charge(request, EVIDENCE_COSTS)
        return reply(await self._ledger.evidence(asked.sha256))

    async def balances(self, request: web.Request) -> web.Response:
        """Sums over receipts."""
        asked = await read_message(request, BalancesAsked, BALANCES_ASKED_LIMIT)
        if asked.job or not asked.keys:
            self._charge(request, SUMS_COST)
        return reply(await self._ledger.balances(asked))

    async def contacts(self, request: web.Request) -> web.Response:
        """Nodes of the DHT, to begin with."""
        self._charge(request, CONTACTS_COST + len(self._table.index) / ROWS_OF_A_QUERY)
        rows = self._table.index.dht_rows(ROWS_DRAWN, self._clock.now())
        return reply(Contacts(contacts=contacts_of(rows)))

    def _charge(self, request: web.Request, cost: float) -> None:
        """More than one request's worth; see `_limited`."""
        self._limit.take(request.remote or "", self._clock.monotonic(), min(cost, BURST))

    async def health(self, request: web.Request) -> web.Response:
        """For operators and for peers who wonder what their address is."""
        now = self._clock.now()
        return web.json_response(
            {
                "tracker": self._tracker,
                "version": axonp2p.__version__,
                "protocol": PROTOCOL_VERSION,
                "alive": self._table.index.alive(now),
                "receipts": self._ledger.receipts,
                "trouble": self.trouble(),
                "time": now,
                "you": _address(request),
            }
        )


def _address(request: web.Request) -> str:
    return plain_address(request.remote or "")


def _counted(metrics: Metrics) -> Middleware:
    @web.middleware
    async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
        # Only addresses that exist become labels: strangers choose the others.
        resource = request.match_info.route.resource
        path = resource.canonical if resource is not None else "other"
        began = perf_counter()
        response = await handler(request)
        metrics.answered(path, response.status, perf_counter() - began, response.get(CODE, ""))
        return response

    return counted


def _cost_of_body(request: web.Request) -> float:
    if request.content_length is not None:
        return min(request.content_length / BYTES_OF_A_REQUEST, LONGEST_BODY_COSTS)
    return LONGEST_BODY_COSTS if request.body_exists else 0.0


def _limited(limit: RateLimit, clock: Clock) -> Middleware:
    @web.middleware
    async def limited(request: web.Request, handler: Handler) -> web.StreamResponse:
        limit.take(request.remote or "", clock.monotonic(), 1 + _cost_of_body(request))
        return await handler(request)

    return limited
