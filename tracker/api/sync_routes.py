"""The requests of other trackers: GET and POST /v1/trackers, POST /v1/push, POST /v1/sync; and GET /v1/status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Refused
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.table.records import TRACKERS_LIMIT, KnownTrackers
from axonp2p.table.sync_messages import ASKED_LIMIT, Push, Pushed, SyncAsked
from axonp2p.table.tracker_standing import network_of
from axonp2p.transport.address import PinnedAddress, plain_address, source_of
from axonp2p.transport.flow.rate_limit import BURST, RateLimit
from axonp2p.transport.http.http_replies import read_message, reply
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed, open_signed
from tracker.api.status import STATUS_PATH, OtherState, TrackerStatus
from tracker.replication.own_tracker_row import open_tracker_row
from tracker.replication.renewals import restore
from tracker.replication.replica import Replica
from tracker.replication.row_intake import RowIntake
from tracker.replication.sync import Synchronisation
from tracker.replication.tracker_book import KnownTracker
from tracker.table.row_sources import PassedOnBy

QUESTION_COSTS = 10.0
"""One question of somebody who is no tracker that we know counts as so many requests."""
WALKS_OF_A_REQUEST = 200
"""So many rows that are walked for such a question count as one more."""
WALKS_A_SECOND, WALKS_AT_ONCE = 200_000.0, 20_000_000.0
"""Rows that are walked for the trackers of one address: enough to fetch a million rows anew."""
LEARNT_WALK_COSTS = 10
"""A row that is walked for a tracker that is only learnt counts as so many."""
PUSHED_A_SECOND, PUSHED_AT_ONCE = 1000.0, 20_000.0
"""Rows that the learnt trackers of one network may push: more than a tracker takes announces."""


class SyncRoutes:
    """Answers. `sync` gives the synchronisation once the tracker listens."""

    def __init__(
        self, sync: Callable[[], Synchronisation], replica: Replica, arrivals: RowIntake, limit: RateLimit, clock: Clock
    ) -> None:
        self._sync = sync
        self._replica = replica
        self._arrivals = arrivals
        self._limit = limit
        self._walks = RateLimit(WALKS_A_SECOND, WALKS_AT_ONCE)
        self._pushes = RateLimit(PUSHED_A_SECOND, PUSHED_AT_ONCE)
        self._clock = clock
        self.says_of_log: Callable[[PeerId], str] = lambda tracker: ""
        """The text about another tracker's log."""

    def add_routes(self, app: web.Application) -> None:
        """All of them."""
        app.router.add_get("/v1/trackers", self._trackers)
        app.router.add_post("/v1/trackers", self._introduce)
        app.router.add_post("/v1/push", self._push)
        app.router.add_post("/v1/sync", self._answer)
        app.router.add_get(STATUS_PATH, self._status)

    async def _trackers(self, request: web.Request) -> web.Response:
        return reply(self._sync().books())

    async def _introduce(self, request: web.Request) -> web.Response:
        told = await read_message(request, KnownTrackers, TRACKERS_LIMIT)
        self._charge(request, len(told.trackers))
        now = self._clock.now()
        sync = self._sync()
        for place, signed in enumerate(told.trackers):
            try:
                row = open_tracker_row(signed, now)
            except AxonError as error:
                if place == 0:
                    raise Refused("say first who you are", cause=error.message) from error
                continue
            # Nobody is believed to be where it says before it answered there.
            sync.book.hear_of(row.address, now)
            if place == 0:
                sync.book.seen_alive(row.tracker)
        return reply(sync.books())

    async def _push(self, request: web.Request) -> web.Response:
        signed = await read_message(request, Signed[Push], Push.LIMIT + ENVELOPE_OVERHEAD)
        sync = self._sync()
        pusher = sync.book.living_one(signed.signer)
        if pusher is None:
            raise Refused(
                "rows are taken from trackers that are known here",
                cause=f"tracker {short(signed.signer)} is not, or did not answer",
                fix="introduce yourself: POST /v1/trackers",
            )
        push = open_signed(signed, Push)
        if push.to != sync.own.peer:
            raise Refused("this push is for another tracker")
        learnt = None
        if not pusher.standing.is_trusted:
            learnt = PassedOnBy(source_of(request.remote or ""), network_of(pusher.address))
            self._pushes.charge(learnt.network, self._clock.monotonic(), len(push.rows) + len(push.renewals))
        restored = [restore(renewal, self._replica.slots, self._replica.index) for renewal in push.renewals]
        rows = [*push.rows, *(row for row in restored if row is not None)]
        taken = await self._arrivals.take(rows, learnt)
        pusher.useful |= taken.new > 0
        for row in rows:
            self._replica.pushed(row)
        sync.called_by(signed.signer, missed=push.missed)
        lacking = [place for place, row in enumerate(restored) if row is None]
        return reply(Pushed(lacking=lacking, started=self._replica.started))

    async def _answer(self, request: web.Request) -> web.Response:
        kind: Any = SyncAsked
        asked: SyncAsked = await read_message(request, kind, ASKED_LIMIT)
        walks = self._replica.walks(asked)
        if (asker := self._tracker_at(request)) is not None:
            source, cost = source_of(request.remote or ""), 1 if asker.standing.is_trusted else LEARNT_WALK_COSTS
            self._walks.charge(source, self._clock.monotonic(), min(cost * walks, WALKS_AT_ONCE))
        else:
            self._charge(request, min(QUESTION_COSTS + walks / WALKS_OF_A_REQUEST, BURST))
        return reply(self._replica.answer(asked, self._clock.now()))

    def _tracker_at(self, request: web.Request) -> KnownTracker | None:
        """The tracker that we know to live at the address that a request comes from; a trusted one before others."""
        source = plain_address(request.remote or "")
        there = (
            known
            for known in self._sync().book.living()
            if plain_address(PinnedAddress.parse(known.address).host) == source
        )
        return max(there, key=lambda known: known.standing.is_trusted, default=None)

    def _charge(self, request: web.Request, cost: float) -> None:
        self._limit.take(request.remote or "", self._clock.monotonic(), cost)

    async def _status(self, request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(self.status()), content_type="application/json")

    def status(self) -> TrackerStatus:
        """Of this tracker and the others. Raises `Busy` while it starts."""
        sync, now = self._sync(), self._clock.now()
        return TrackerStatus(
            tracker=sync.own.peer,
            address=sync.own.address,
            alive=self._replica.index.alive(now),
            rows=len(self._replica.index),
            time=now,
            trackers=[_state(sync, known, now, self.says_of_log(known.tracker)) for known in sync.book],
        )


def _state(sync: Synchronisation, known: KnownTracker, now: float, log: str) -> OtherState:
    line = sync.lines.get(known.address)
    return OtherState(
        address=known.address,
        tracker=known.tracker,
        standing=known.standing,
        lives=known.lives,
        failures=known.failures,
        answered_s_ago=_ago(now, known.answered or None),
        lag_s=None if line is None or line.lag is None else round(line.lag, 3),
        equal_s_ago=_ago(now, None if line is None else line.equal_at),
        fetched=0 if line is None else line.fetched,
        pushed=0 if line is None else line.pushed,
        log=log,
        bytes_sent=0 if line is None else line.caller.sent,
        bytes_received=0 if line is None else line.caller.received,
    )


def _ago(now: float, then: float | None) -> float | None:
    return None if then is None else round(max(now - then, 0.0), 3)
