"""The line to one other tracker: pushes what is new, fetches what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, BadSignature
from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import TRACKERS_LIMIT, KnownTrackers, TrackerRow
from axonp2p.table.sync_messages import (
    MOST_NEWS,
    PUSHED_LIMIT,
    TOLD_LIMIT,
    BucketsAsked,
    BucketsTold,
    DigestsAsked,
    DigestsTold,
    NamesAsked,
    NamesTold,
    Push,
    Pushed,
    RowsAsked,
    RowsTold,
    SyncAsked,
    SyncTold,
)
from axonp2p.table.tracker_client import line_to
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.envelope import Signed
from tracker.arrivals import Arrivals
from tracker.own_tracker_row import open_tracker_row
from tracker.pull import Pull
from tracker.renewals import mention, shorten
from tracker.replica import News, Replica

TRACKERS_PATH = "/v1/trackers"
PUSH_PATH = "/v1/push"
SYNC_PATH = "/v1/sync"
ANSWER_WITHIN_S = 3.0
"""To short questions, so that a dead line is found dead soon."""
MOST_WAITING = 20 * MOST_NEWS
"""News that wait for a slow tracker; over that it has to ask for what it missed."""

_ANSWERS: dict[type[SyncAsked], type[SyncTold]] = {
    DigestsAsked: DigestsTold,
    BucketsAsked: BucketsTold,
    NamesAsked: NamesTold,
    RowsAsked: RowsTold,
}


class SyncLine:
    """One other tracker. Every method raises what `HttpCaller.call` raises."""

    def __init__(self, address: str, own: PeerId, replica: Replica, arrivals: Arrivals, clock: Clock) -> None:
        """Raises `SettingsError` when that is no address."""
        self.address = PinnedAddress.parse(address)
        self.caller = line_to(self.address)
        self._own = own
        self._replica = replica
        self._arrivals = arrivals
        self._clock = clock
        self._waiting: dict[PeerId, News] = {}
        self.missed = False
        """Whether it was away while there was news."""
        self.lag: float | None = None
        """Seconds from storing a row here to its being stored there, the oldest of the last push."""
        self.equal_at: float | None = None
        """When nothing was found missing here, the last time; Unix seconds."""
        self.fetched = 0
        """Rows that were missing here and were fetched."""
        self.pushed = 0
        """Rows sent."""
        self.started: float | None = None
        """Since when the other runs, as it says."""

    def add(self, news: Sequence[News]) -> None:
        """These rows are to be pushed."""
        self._waiting.update((each.signed.signer, each) for each in news)
        if len(self._waiting) > MOST_WAITING:
            self.give_up()

    def give_up(self) -> None:
        """It does not get what waits: it is away."""
        self._waiting.clear()
        self.missed = True

    @property
    def has_news(self) -> bool:
        """Whether something waits for it."""
        return bool(self._waiting) or self.missed

    async def introduce(self, books: KnownTrackers) -> tuple[Signed[TrackerRow], TrackerRow, list[TrackerRow]]:
        """Tell each other of all trackers; gives its own row and those that it knows. Raises `BadSignature` too."""
        told = await self.caller.call(TRACKERS_PATH, books, KnownTrackers, TRACKERS_LIMIT, timeout_s=ANSWER_WITHIN_S)
        now = self._clock.now()
        if not told.trackers:
            raise BadSignature(f"{self.caller.called} does not say who it is")
        own = open_tracker_row(told.trackers[0], now)
        if PinnedAddress.parse(own.address).fingerprint != self.address.fingerprint and self.address.fingerprint:
            raise BadSignature(f"{self.caller.called} shows the row of a tracker with another certificate")
        others = []
        for signed in told.trackers[1:]:
            try:
                others.append(open_tracker_row(signed, now))
            except AxonError:
                continue  # it passed on what it had; the next one may be good
        return told.trackers[0], own, others

    async def push(self) -> None:
        """Send what waits."""
        while self.has_news:
            batch = list(islice(self._waiting.values(), MOST_NEWS))
            for each in batch:
                del self._waiting[each.signed.signer]
            await self._push(batch)

    async def _push(self, batch: list[News]) -> None:
        shortened = [(each, self._shortened(each)) for each in batch]
        renewals = [(each, short) for each, short in shortened if short is not None]
        oldest = min((each.since for each in batch), default=self._clock.now())
        message = Push(
            rows=[each.signed for each, short in shortened if short is None],
            renewals=[short for _, short in renewals],
            tracker=self._own,
            missed=self.missed,
            waited=max(self._clock.now() - oldest, 0.0),
        )
        answer = await self.caller.call(PUSH_PATH, message, Pushed, PUSHED_LIMIT)
        self.started = answer.started
        self.missed = False
        self.pushed += len(batch)
        again = [renewals[place][0] for place in answer.lacking if place < len(renewals)]
        if again:
            await self._push([News(each.signed, None, each.since) for each in again])
        elif batch:
            self.lag = max(self._clock.now() - oldest, 0.0)

    def _shortened(self, news: News) -> bytes | None:
        if str(self.address) in news.holders:
            return mention(news.signed)
        return shorten(news.signed, news.before)

    async def pull(self, tracker: PeerId, *, everything: bool) -> int:
        """Fetch all that it has and we lack; gives how many rows were new. Raises `MalformedMessage` too."""
        pull = Pull(self._replica, tracker, self._clock.now(), everything=everything)
        new = left = 0
        while (asked := pull.ask()) is not None:
            told = await self.caller.call(SYNC_PATH, asked, _ANSWERS[type(asked)], TOLD_LIMIT)
            rows = pull.heard(told)
            self.started = pull.started
            if rows:
                taken = await self._arrivals.take(rows)
                new, left = new + taken.new, left + taken.left
                if taken.left:
                    pull.incomplete()
        self.fetched += new
        if not left:
            self.equal_at = self._clock.now()
        return new

    async def close(self) -> None:
        """Close its connections."""
        await self.caller.close()
