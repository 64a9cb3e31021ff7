"""The answers to questions about this tracker's log: GET /v1/heads, and POST with a question for everything else."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

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
from axonp2p.transport.http.http_replies import read_message, reply
from tracker.log.log_keeper import LogKeeper


class LogRoutes:
    """Answers. `watched` gives what this tracker saw of the others."""

    def __init__(self, log: LogKeeper, watched: Callable[[], WatchedLogs]) -> None:
        self._log = log
        self._watched = watched

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
        return reply(await self._log.consistency(await read_message(request, ProofAsked, LOG_ASKED_LIMIT)))

    async def _inclusion(self, request: web.Request) -> web.Response:
        asked = await read_message(request, InclusionAsked, LOG_ASKED_LIMIT)
        return reply(await self._log.inclusion(asked))

    async def _leaves(self, request: web.Request) -> web.Response:
        asked = await read_message(request, LeavesAsked, LOG_ASKED_LIMIT)
        return reply(await self._log.leaves(asked.first, asked.count))

    async def _entries(self, request: web.Request) -> web.Response:
        asked = await read_message(request, EntriesAsked, LOG_ASKED_LIMIT)
        return reply(await self._log.entries(asked.numbers))

    async def _history(self, request: web.Request) -> web.Response:
        return reply(await self._log.history(await read_message(request, HistoryAsked, LOG_ASKED_LIMIT)))
