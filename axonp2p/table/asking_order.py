"""Which source is asked when (pure): trackers one after another, the DHT after a moment, all when too little is known.

One tracker is asked first. The next one is asked when it fails, when it is slow, and when what it shows is not enough:
it may have lost its table or be cut off from half of the swarm. The DHT joins in after a moment.
"""

from __future__ import annotations

from collections.abc import Sequence

from axonp2p.table.sightings import DHT

NEXT_AFTER_S = 0.5
"""A tracker that has not answered by then is slow: the next one is asked as well."""
DHT_AFTER_S = 0.3
"""The DHT is asked when the trackers have not shown enough by then; at once when there is no tracker to ask."""
TRACKER_PATIENCE_S = 1.5
"""Once one source has answered, other trackers have so long to add to it."""
PATIENCE_S = 4.0
"""The same for the DHT, where a node has to join first."""
LONGEST_S = 10.0
"""Nobody is waited for any longer."""


class AskingOrder:
    """One question. Times are monotonic seconds, passed in; `now` in the constructor is when it begins."""

    def __init__(self, trackers: Sequence[str], *, dht: bool, at_once: bool, now: float) -> None:
        """`trackers` in the order to ask them; `at_once` asks everyone now, and waits for all."""
        self._waiting = list(trackers)
        self._dht_waits = dht
        self._running: set[str] = set()
        self._next_at = now
        self._dht_at = now + DHT_AFTER_S
        self._until = now + LONGEST_S
        self._trackers_until = self._until
        self._hurry = self._survey = at_once
        self._enough = False

    def start(self, now: float) -> list[str]:
        """The sources to ask now; each is given once."""
        due: list[str] = []
        if self._waiting and (self._hurry or now >= self._next_at or not self._running):
            count = len(self._waiting) if self._hurry else 1
            due, self._waiting = self._waiting[:count], self._waiting[count:]
            self._next_at = now + NEXT_AFTER_S
        nobody_else = not self._waiting and not self._running and not due
        if self._dht_waits and (self._hurry or now >= self._dht_at or nobody_else):
            self._dht_waits = False
            due.append(DHT)
        self._running.update(due)
        return due

    def answered(self, source: str, now: float, *, enough: bool) -> None:
        """It answered; `enough` says whether all that was heard so far is."""
        self._running.discard(source)
        self._enough = enough
        self._hurry = True  # what one source shows too little of, every other one may know
        # A survey waits for the DHT to the end; neither waits long for a tracker that says nothing.
        self._trackers_until = min(self._trackers_until, now + TRACKER_PATIENCE_S)
        if not self._survey:
            self._until = min(self._until, now + PATIENCE_S)

    def failed(self, source: str, now: float) -> None:
        """It said nothing: the next one is due."""
        self._running.discard(source)
        self._next_at = now

    @property
    def complete(self) -> bool:
        """Whether every source has answered or failed."""
        return not self._running and not self._waiting and not self._dht_waits

    def over(self, now: float) -> bool:
        """Whether nothing more is to be waited for."""
        return self._enough or self.complete or now >= self._last_moment

    @property
    def _last_moment(self) -> float:
        dht = self._dht_waits or DHT in self._running
        return self._until if dht else min(self._until, self._trackers_until)

    def wait(self, now: float) -> float:
        """Seconds until `start` or `over` may say something new by themselves."""
        moments = [self._last_moment]
        if self._waiting:
            moments.append(self._next_at)
        if self._dht_waits:
            moments.append(self._dht_at)
        return max(0.0, min(moments) - now)
