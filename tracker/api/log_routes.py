"""The answers to questions about this tracker's log: GET /v1/heads, and POST with a question for everything else."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from axonp2p.clock import Clock
from axonp2p.ledger.log_client import (
    CONSISTENCY_PATH,
    ENTRIES_PATH,
    HEADS_PATH,
    HISTORY_PATH,
    INCLUSION_PATH,
    LEAVES_PATH,
)
from axonp2p.ledger.log_messages import (
    LOG_ASKED_LIMIT,
    MOST_EVIDENCE,
    EntriesAsked,
    HeadsTold,
    HistoryAsked,
    InclusionAsked,
    LeavesAsked,
    ProofAsked,
)
from axonp2p.ledger.watched_logs import WatchedLogs
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.http.http_replies import read_message, reply
from tracker.log.log_keeper import LogKeeper

PROOF_COSTS = 2.0
"""A proof that an entry is there, or that one head continues another, counts as so many requests more."""
LEAVES_COST = 3.0
ENTRIES_COST = 5.0
"""A tracker that follows another log asks 170 times in a look, in ten seconds, and has to stay within its share."""
HISTORY_COSTS = 3.0
PROVED_HISTORY_COSTS = 10.0
"""A hundred entries, each with its path."""


class LogRoutes:
    """Answers. `watched` gives what this tracker saw of the others."""

    def __init__(self, log: LogKeeper, watched: Callable[[], WatchedLogs], limit: RateLimit, clock: Clock) -> None:
        self._log = log
        self._watched = watched
        self._limit = limit
        self._clock = clock

    def add_routes(self, app: web.Application) -> None:
        """All of them."""
        app.router.add_get(HEADS_PATH, self._heads)
        app.router.add_post(CONSISTENCY_PATH, self._consistency)
        app.router.add_post(INCLUSION_PATH, self._inclusion)
        app.router.add_post(LEAVES_PATH, self._leaves)
        app.router.add_post(ENTRIES_PATH, self._entries)
        app.router.add_post(HISTORY_PATH, self._history)

    async def _heads(self, request: web.Request) -> web.Response:
        own, watched = await self._log.head(), self._watched()
        convicted = sorted(watched.convicted, key=lambda one: not watched.trusted(one.tracker))
        evidence = [one.evidence for one in convicted[:MOST_EVIDENCE]]
        return reply(HeadsTold(own=own, seen=watched.heads, evidence=evidence))

    async def _consistency(self, request: web.Request) -> web.Response:
        asked = await read_message(request, ProofAsked, LOG_ASKED_LIMIT)
        self._charge(request, PROOF_COSTS)
        return reply(await self._log.consistency(asked))

    async def _inclusion(self, request: web.Request) -> web.Response:
        asked = await read_message(request, InclusionAsked, LOG_ASKED_LIMIT)
        self._charge(request, PROOF_COSTS)
        return reply(await self._log.inclusion(asked))

    async def _leaves(self, request: web.Request) -> web.Response:
        asked = await read_message(request, LeavesAsked, LOG_ASKED_LIMIT)
        self._charge(request, LEAVES_COST)
        return reply(await self._log.leaves(asked.first, asked.count))

    async def _entries(self, request: web.Request) -> web.Response:
        asked = await read_message(request, EntriesAsked, LOG_ASKED_LIMIT)
        self._charge(request, ENTRIES_COST)
        return reply(await self._log.entries(asked.numbers))

    async def _history(self, request: web.Request) -> web.Response:
        asked = await read_message(request, HistoryAsked, LOG_ASKED_LIMIT)
        self._charge(request, PROVED_HISTORY_COSTS if asked.prove else HISTORY_COSTS)
        return reply(await self._log.history(asked))

    def _charge(self, request: web.Request, cost: float) -> None:
        self._limit.take(request.remote or "", self._clock.monotonic(), cost)
