"""The line to one other tracker: pushes what is new, fetches what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, BadSignature, Refused
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.table.records import TRACKERS_LIMIT, KnownTrackers, TrackerRow, Vouching
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
from axonp2p.table.tracker_standing import network_of
from axonp2p.transport.address import PinnedAddress, source_of
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.wire.envelope import Signed
from tracker.replication.own_tracker_row import OwnTrackerRow, open_tracker_row
from tracker.replication.pull import Pull
from tracker.replication.renewals import mention, shorten
from tracker.replication.replica import News, Replica
from tracker.replication.row_intake import RowIntake
from tracker.table.row_sources import PassedOnBy

log = get_logger(__name__)

TRACKERS_PATH = "/v1/trackers"
PUSH_PATH = "/v1/push"
SYNC_PATH = "/v1/sync"
ANSWER_WITHIN_S = 3.0
"""To short questions, so that a dead line is found dead soon."""
FIRST_REFUSED_S, LONGEST_REFUSED_S = 1.0, 60.0
"""A tracker that takes no pushes of ours is pushed to again after so long, twice as long each time."""
REFUSALS_TOLD = 4
"""The log says so when it has refused so often: a tracker that was just started refuses once or twice."""
LONGEST_PUT_OFF_S = 300.0
ROOM_AGAIN_S = 60.0
"""One for whose rows there was no room is asked for them again after so long."""
MOST_WAITING = 20 * MOST_NEWS
"""News that wait for a slow tracker; over that it has to ask for what it missed."""

_ANSWERS: dict[type[SyncAsked], type[SyncTold]] = {
    DigestsAsked: DigestsTold,
    BucketsAsked: BucketsTold,
    NamesAsked: NamesTold,
    RowsAsked: RowsTold,
}


@dataclass(frozen=True)
class Introduction:
    """The rows of another tracker about itself and others."""

    signed: Signed[TrackerRow]
    row: TrackerRow
    """Its own."""
    others: list[TrackerRow]
    """Those that it knows."""
    vouching: Signed[Vouching] | None
    """The trackers that its operator vouches for; not opened yet."""


class SyncLine:
    """One other tracker. Every method raises what `HttpCaller.call` raises."""

    def __init__(
        self,
        address: str,
        own: OwnTrackerRow,
        replica: Replica,
        arrivals: RowIntake,
        clock: Clock,
        dials: DialPolicy | None = None,
    ) -> None:
        """`dials` where a stranger named it. Raises `SettingsError` when that is no address."""
        self.address = PinnedAddress.parse(address)
        self.caller = line_to(self.address, dials)
        self._own = own
        self._replica = replica
        self._arrivals = arrivals
        self._clock = clock
        self._waiting: dict[PeerId, News] = {}
        self._refusals = 0
        self._push_at = self._pull_at = float("-inf")
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
        """Whether something waits for it, and it may be pushed to now."""
        return (bool(self._waiting) or self.missed) and self._clock.monotonic() >= self._push_at

    @property
    def may_pull(self) -> bool:
        """Whether there was room for its rows the last time."""
        return self._clock.monotonic() >= self._pull_at

    def put_off(self, seconds: float) -> None:
        """It is asked for rows again after so long, at most some minutes."""
        self._pull_at = self._clock.monotonic() + min(seconds, LONGEST_PUT_OFF_S)

    async def introduce(self, books: KnownTrackers) -> Introduction:
        """Tell each other of all trackers. Raises `BadSignature` too."""
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
        return Introduction(told.trackers[0], own, others, told.vouching)

    async def push(self, to: PeerId) -> bool:
        """Send what waits to the tracker with this id; False when it takes none of us now, which is no failure."""
        while self.has_news:
            batch = list(islice(self._waiting.values(), MOST_NEWS))
            for each in batch:
                del self._waiting[each.signed.signer]
            try:
                await self._push(to, batch)
            except Refused as error:
                # It does not know us (any more), or has no room for us: it asks us itself for what it wants.
                self.give_up()
                wait = min(LONGEST_REFUSED_S, FIRST_REFUSED_S * 2 ** min(self._refusals, 10))
                self._refusals += 1
                self._push_at = self._clock.monotonic() + wait
                log.debug("push refused", tracker=self.caller.called, reason=error.in_a_line)
                if self._refusals == REFUSALS_TOLD:
                    fix = "its operator may name this tracker with --tracker or --vouch-for"
                    log.warning("a tracker takes no rows of this one", tracker=self.caller.called, fix=fix)
                return False
            self._refusals = 0
        return True

    async def _push(self, to: PeerId, batch: list[News]) -> None:
        shortened = [(each, self._shortened(each)) for each in batch]
        renewals = [(each, short) for each, short in shortened if short is not None]
        oldest = min((each.since for each in batch), default=self._clock.now())
        message = Push(
            rows=[each.signed for each, short in shortened if short is None],
            renewals=[short for _, short in renewals],
            to=to,
            missed=self.missed,
            waited=max(self._clock.now() - oldest, 0.0),
        )
        answer = await self.caller.call(PUSH_PATH, self._own.sign(message), Pushed, PUSHED_LIMIT)
        self.started = answer.started
        self.missed = False
        self.pushed += len(batch)
        again = [renewals[place][0] for place in answer.lacking if place < len(renewals)]
        if again:
            await self._push(to, [News(each.signed, None, each.since) for each in again])
        elif batch:
            self.lag = max(self._clock.now() - oldest, 0.0)

    def _shortened(self, news: News) -> bytes | None:
        if str(self.address) in news.holders:
            return mention(news.signed)
        return shorten(news.signed, news.before)

    async def pull(self, tracker: PeerId, *, everything: bool, trusted: bool) -> int:
        """Fetch all that it has and we lack; gives how many rows were new. Raises `PeerMisbehaved` too.

        There is only so much room for rows of trackers that are not `trusted`.
        """
        learnt = None if trusted else PassedOnBy(source_of(self.address.host), network_of(str(self.address)))
        pull = Pull(self._replica, tracker, self._clock.now(), everything=everything)
        new = left = 0
        while (asked := pull.ask()) is not None:
            told = await self.caller.call(SYNC_PATH, asked, _ANSWERS[type(asked)], TOLD_LIMIT)
            rows = pull.heard(told)
            self.started = pull.started
            if rows:
                taken = await self._arrivals.take(rows, learnt)
                new, left = new + taken.new, left + taken.left
                if taken.left:
                    pull.incomplete()
                if taken.no_room:
                    self.put_off(ROOM_AGAIN_S)
                    break
        self.fetched += new
        if not left:
            self.equal_at = self._clock.now()
        return new

    async def close(self) -> None:
        """Close its connections."""
        await self.caller.close()
