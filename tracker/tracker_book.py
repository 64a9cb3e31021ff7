"""Which other trackers there are, and how each of them is (pure). Times are Unix seconds.

Those of the settings stay for good. Others are learnt: from trackers, which show what they know, and from peers' rows,
which name trackers by address only. Hearsay is tried, a few at a time, and told to nobody before it answered itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import MOST_TRACKERS, TrackerRow
from axonp2p.wire.envelope import Signed

LONGEST_RETRY_S = 4.0
"""A tracker that is away is tried this often: after an outage both shall be equal within ten seconds."""
LEARNT_RETRY_S = 60.0
"""The same for a learnt one that has been away for long."""
LONG_AWAY_S = 600.0
FORGOTTEN_AFTER_S = 3600.0
"""A learnt tracker that did not answer for so long is forgotten."""
NEVER_ANSWERED_TRIES = 3
"""Hearsay that did not answer so many times is forgotten."""
MOST_HEARSAY = 4
"""How many that never answered are tried at a time."""
INTRODUCED_EVERY_S = 300.0


@dataclass
class Known:
    """One other tracker."""

    address: str
    configured: bool
    tracker: PeerId = ""
    """Its id, once it has introduced itself."""
    row: TrackerRow | None = None
    signed: Signed[TrackerRow] | None = None
    failures: int = 0
    """In a row."""
    next_try: float = 0.0
    answered: float = 0.0
    """When it last answered; 0 for never."""
    since: float = 0.0
    """When it became known."""
    started: float = 0.0
    """When it began to run, by its own clock."""
    introduced: float = 0.0
    """When we last told each other of the trackers that we know."""

    @property
    def lives(self) -> bool:
        """Whether it answered the last question."""
        return self.answered > 0 and self.failures == 0


class TrackerBook:
    """All other trackers, by address. Its owner is not among them."""

    def __init__(self, own: PeerId, own_address: str, configured: Iterable[str], chance: random.Random) -> None:
        self._own = own
        self._chance = chance
        self._not_others = {own_address}
        self._known = {address: Known(address, configured=True) for address in configured if address != own_address}

    def __iter__(self) -> Iterator[Known]:
        return iter(list(self._known.values()))

    def remember(self, addresses: Iterable[str], now: float) -> None:
        """Begin with those that were learnt in an earlier run."""
        for address in addresses:
            if address not in self._known and address not in self._not_others and len(self._known) < MOST_TRACKERS:
                self._known[address] = Known(address, configured=False, since=now)

    def learnt(self) -> list[str]:
        """What to begin with in the next run."""
        return [known.address for known in self._known.values() if known.answered and not known.configured]

    def find(self, address: str) -> Known | None:
        """The tracker at an address."""
        return self._known.get(address)

    def is_configured(self, tracker: PeerId) -> bool:
        """Whether the settings name the tracker with this id, as far as it ever said who it is."""
        return any(known.configured and known.tracker == tracker for known in self)

    def is_known(self, tracker: PeerId) -> bool:
        """Whether the tracker with this id stands here."""
        return any(known.tracker == tracker for known in self)

    def living(self) -> list[Known]:
        """Those that answered the last question."""
        return [known for known in self._known.values() if known.lives]

    def hear_of(self, address: str, now: float) -> bool:
        """Somebody named the tracker at `address`; returns whether it is worth a try."""
        if address in self._known or address in self._not_others or "#" not in address:
            return False
        hearsay = sum(not known.answered and not known.configured for known in self._known.values())
        if hearsay >= MOST_HEARSAY or len(self._known) >= MOST_TRACKERS:
            return False
        self._known[address] = Known(address, configured=False, since=now)
        return True

    def introduced(self, address: str, row: TrackerRow, signed: Signed[TrackerRow], now: float) -> bool:
        """The tracker at `address` said who it is; returns whether it is new or lost its database.

        False also when it turns out to be ourselves, or one that is known by another address.
        """
        known = self._known.get(address)
        if known is None:
            return False
        twin = next((one for one in self._known.values() if one.tracker == row.tracker and one is not known), None)
        if row.tracker == self._own or (twin is not None and twin.lives and not known.configured):
            self._not_others.add(address)
            del self._known[address]
            return False
        if twin is not None and not twin.configured:
            del self._known[twin.address]  # it has moved
        changed = known.row is None or known.row.database != row.database
        if known.row is None or row.sequence > known.row.sequence:
            known.tracker, known.row, known.signed = row.tracker, row, signed
        known.introduced = now
        return changed

    def answered(self, address: str, now: float) -> bool:
        """It answered; returns whether it had been away, or had never answered."""
        known = self._known.get(address)
        if known is None:
            return False
        came_back = not known.lives
        known.failures, known.next_try, known.answered = 0, 0.0, now
        return came_back

    def failed(self, address: str, now: float) -> None:
        """It did not answer."""
        known = self._known.get(address)
        if known is None:
            return
        known.failures += 1
        if not known.configured:
            silent = now - (known.answered or known.since)
            if silent > FORGOTTEN_AFTER_S or (not known.answered and known.failures >= NEVER_ANSWERED_TRIES):
                del self._known[address]
                return
        long_away = not known.configured and now - known.answered > LONG_AWAY_S
        longest = LEARNT_RETRY_S if long_away else LONGEST_RETRY_S
        wait = min(longest, 0.5 * 2 ** min(known.failures, 10))
        known.next_try = now + wait * self._chance.uniform(0.75, 1.0)

    def seen_alive(self, tracker: PeerId) -> None:
        """It called us, so it is worth a call at once."""
        for known in self._known.values():
            if known.tracker == tracker and not known.lives:
                known.next_try = 0.0

    def to_introduce(self, now: float) -> list[Known]:
        """Those to exchange books with now."""
        return [
            known
            for known in self._known.values()
            if known.next_try <= now and (not known.lives or now - known.introduced >= INTRODUCED_EVERY_S)
        ]

    def runs_since(self, address: str, started: float) -> None:
        """It says since when it runs. One that was started anew may know nobody: introduce ourselves."""
        known = self._known.get(address)
        if known is not None and known.started != started:
            known.started = started
            known.introduced = 0.0

    def tell_all(self) -> None:
        """There is something new to tell: introduce ourselves to everybody again."""
        for known in self._known.values():
            known.introduced = 0.0

    def rows(self, now: float) -> list[Signed[TrackerRow]]:
        """What others are told: those that live, each as it signed itself; without our own."""
        return [
            known.signed
            for known in self._known.values()
            if known.lives and known.signed is not None and known.row is not None and known.row.expires > now
        ][: MOST_TRACKERS - 1]
