"""Calls peers, to know better than those who speak of them: at reports, and at the first sight of a row.

Only a peer that holds the certificate of the row answers a call. The choice of calls and of believed accusers is made
in `reports.py` and `probe_policy.py`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence

from aiohttp import web

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, MalformedMessage, Refused
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.logs import get_logger
from axonp2p.supervision import alone, cancel_and_wait
from axonp2p.table.records import Report, ReportHeard, Row
from axonp2p.table.tracker_client import REPORT_PATH
from axonp2p.transport.address import plain_address, source_of
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import read_message, reply
from axonp2p.transport.ways import Way
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed, open_signed
from tracker.probing.probe_policy import FirstProbes, worth_asking, worth_calling
from tracker.probing.reports import Hearing, Reports, check_report_time
from tracker.table.table_index import TableIndex

log = get_logger(__name__)

TIMEOUT_S = 3.0
"""For one address."""
AGAIN_AFTER_S = 2.0
"""Between the two calls that make a verdict."""
MOST_CALLS = 32
"""At once."""
MOST_WAITING = 500
"""Calls that wait for their turn; over that, nobody is called ..."""
MOST_WAITING_OF_ONE = 40
"""... and of those that one household (`source_of`) asked for: its rows may name machines that never answer."""


class Prober:
    """Answers POST /v1/report, and the announcers' question whether they can be reached."""

    def __init__(self, index: TableIndex, dials: DialPolicy, clock: Clock) -> None:
        self._index = index
        self._dials = dials
        self._clock = clock
        self._reports = Reports()
        self._first_probes = FirstProbes()
        self._room = asyncio.Semaphore(MOST_CALLS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: Counter[str] = Counter()
        """By household."""

    def add_routes(self, app: web.Application) -> None:
        """POST /v1/report."""
        app.router.add_post(REPORT_PATH, self._report)

    async def stop(self) -> None:
        """Give up what is being called."""
        await cancel_and_wait(*self._tasks)

    def first_look(self, row: Row, source: str) -> bool | None:
        """Whether a peer that announced itself from this IP address can be called; None until it is known."""
        now = self._clock.monotonic()
        if row.capability is not None and self._first_probes.is_due(row, now) and self._has_room(source):
            ways = worth_calling(row, source, self._dials)
            if ways and self._first_probes.wanted(row, now):
                self._start(self._look(row, ways), source)
        return self._first_probes.reached(row)

    def hear(self, signed: Signed[Report], source: str) -> bool:
        """Somebody at this IP address says that a peer does not answer; whether it is called now.

        Raises `ClockWrong` when the report was not signed just now, and what `open_signed` raises.
        """
        report = open_signed(signed, Report)
        check_report_time(report, self._clock.now())
        row = self._living(report.peer)
        if row is None or not self._has_room(source):
            return False
        ways = worth_asking(row, source, self._dials)
        if not ways:
            return False
        hearing = self._reports.hear(report.peer, signed.signer, source_of(source), self._clock.monotonic())
        if hearing is Hearing.PROBE:
            self._start(self._judge(row, ways), source)
        return hearing is Hearing.PROBE

    async def _report(self, request: web.Request) -> web.Response:
        signed = await read_message(request, Signed[Report], Report.LIMIT + ENVELOPE_OVERHEAD)
        return reply(ReportHeard(checking=self.hear(signed, plain_address(request.remote or ""))))

    def _living(self, peer: PeerId) -> Row | None:
        if self._index.offer_of(peer, self._clock.now()) is None:
            return None
        signed = self._index.signed_of(peer)
        if signed is None:
            return None
        try:
            return decode_as(signed.payload, Row, Row.LIMIT)  # its signature was checked when it came
        except MalformedMessage:
            return None

    async def _look(self, row: Row, ways: Sequence[Way]) -> None:
        async with self._room:
            reached = await _answers(row, ways)
        self._first_probes.found(row, reached)
        log.debug("first look", peer=short(row.peer), reached=reached)

    async def _judge(self, row: Row, ways: Sequence[Way]) -> None:
        try:
            async with self._room:
                answers = await _answers(row, ways)
                if not answers:
                    await asyncio.sleep(AGAIN_AFTER_S)
                    answers = await _answers(row, ways)
        except asyncio.CancelledError:
            self._reports.drop(row.peer)
            raise
        self._reports.judge(row.peer, answers=answers, now=self._clock.monotonic())
        marked = not answers and self._index.mark_silent(row.peer, row.sequence)
        log.info("report checked", peer=short(row.peer), answers=answers, marked=marked)

    def _has_room(self, source: str) -> bool:
        return len(self._tasks) < MOST_WAITING and self._waiting[source_of(source)] < MOST_WAITING_OF_ONE

    def _start(self, work: Coroutine[None, None, None], source: str) -> None:
        task = asyncio.create_task(alone("a probe", work), name="probe")
        household = source_of(source)
        self._tasks.add(task)
        self._waiting[household] += 1

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._waiting[household] -= 1
            if not self._waiting[household]:
                del self._waiting[household]

        task.add_done_callback(done)


async def _answers(row: Row, ways: Sequence[Way]) -> bool:
    """Whether the holder of the row's certificate answers on one of these ways."""
    for way in ways:
        try:
            called = f"peer {short(row.peer)}"
            async with HttpCaller(way.address, called=called, relay=way.relay, timeout_s=TIMEOUT_S) as caller:
                await caller.round_trip()
        except Refused as error:
            log.debug("a peer that was called says no", peer=short(row.peer), reason=error.message)  # it is there
        except AxonError:
            continue
        return True
    return False
