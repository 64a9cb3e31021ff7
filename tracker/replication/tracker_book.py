"""Which other trackers there are, and how each of them is (pure). Times are Unix seconds.

Those of the settings stay for good, and those that their operators vouch for as long as they do. Others are learnt:
from trackers, which show what they know, and from peers' rows, which name trackers by address only. Hearsay is tried, a
few at a time, and told to nobody before it answered itself; `tracker_standing` says for how many there is room then.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from axonp2p.errors import AxonError, SettingsError
from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import MOST_TRACKERS, TrackerRow, Vouching
from axonp2p.table.tracker_standing import (
    MOST_LEARNT,
    MOST_OF_ONE_NETWORK,
    LearntTracker,
    TrackerStanding,
    network_of,
    place_for,
)
from axonp2p.table.vouching import Vouchings
from axonp2p.transport.address import PinnedAddress, source_of
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
MOST_NOT_OTHERS = 256
"""Addresses that turned out to be nobody new, or a liar, and are not tried again."""


@dataclass
class KnownTracker:
    """One other tracker."""

    address: str
    standing: TrackerStanding
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
    useful: bool = False
    """Whether it ever handed over a row that was new here."""

    @property
    def lives(self) -> bool:
        """Whether it answered the last question."""
        return self.answered > 0 and self.failures == 0


class TrackerBook:
    """All other trackers, by address. Its owner is not among them."""

    def __init__(self, own: PeerId, own_address: str, configured: Iterable[str], chance: random.Random) -> None:
        self._own = own
        self._chance = chance
        self._own_address = own_address
        self._not_others: dict[str, None] = {}
        self._vouchings = Vouchings()
        self._known = {
            address: KnownTracker(address, TrackerStanding.CONFIGURED)
            for address in configured
            if address != own_address
        }

    def __iter__(self) -> Iterator[KnownTracker]:
        return iter(list(self._known.values()))

    def remember(self, trackers: Mapping[str, PeerId], vouchings: Iterable[Signed[Vouching]], now: float) -> None:
        """Begin with what was known in an earlier run: ids by address, and lists of vouchers. Raises nothing."""
        for address, tracker in trackers.items():
            known = self._known.get(address)
            if known is not None:
                known.tracker = tracker
            elif self._is_other(address) and sum(map(_is_learnt, self)) < MOST_LEARNT:
                self._known[address] = KnownTracker(address, TrackerStanding.LEARNT, tracker, since=now)
        for signed in vouchings:
            with suppress(AxonError):
                if signed.signer in self._vouchers():
                    self._vouchings.hear(signed, signed.signer, now)
        self._settle(now)

    def to_remember(self) -> tuple[dict[str, PeerId], list[Signed[Vouching]]]:
        """The trackers and vouchings to begin with in the next run."""
        met = {known.address: known.tracker for known in self._known.values() if known.answered and known.tracker}
        return met, self._vouchings.signed

    # --- who is trusted

    def is_trusted(self, tracker: PeerId, now: float) -> bool:
        """Whether the tracker with that id is configured, or vouched for by the operator of one that is."""
        return tracker in self._vouchers() or tracker in self._vouchings.trackers(self._vouchers(), now)

    def ids_of(self, addresses: Iterable[str]) -> dict[PeerId, str]:
        """Of these addresses those whose tracker has said who it is, by its id."""
        met = (self._known.get(address) for address in addresses)
        return {known.tracker: known.address for known in met if known is not None and known.tracker}

    def trusted_at(self, tracker: PeerId) -> str:
        """The address of the tracker with that id, when it is configured or vouched for; else empty."""
        return next((one.address for one in self if one.tracker == tracker and one.standing.is_trusted), "")

    def hear_vouching(self, address: str, signed: Signed[Vouching], now: float) -> None:
        """The tracker at `address` showed whom its operator vouches for. Raises what `open_vouching` raises."""
        known = self._known.get(address)
        if known is not None and known.standing is TrackerStanding.CONFIGURED and known.tracker:
            self._vouchings.hear(signed, known.tracker, now)
        self._settle(now)

    # --- what there is

    def find(self, address: str) -> KnownTracker | None:
        """The tracker at an address."""
        return self._known.get(address)

    def is_known(self, tracker: PeerId) -> bool:
        """Whether the tracker with this id stands here."""
        return any(known.tracker == tracker for known in self)

    def living(self) -> list[KnownTracker]:
        """Those that answered the last question."""
        return [known for known in self._known.values() if known.lives]

    def trusted(self) -> list[str]:
        """The addresses of those that live and are not only learnt."""
        return [known.address for known in self.living() if known.standing.is_trusted]

    def is_trusted_source(self, source: str) -> bool:
        """Whether a living tracker that is not only learnt stands in this household (`transport.address.source_of`)."""
        return any(source_of(PinnedAddress.parse(address).host) == source for address in self.trusted())

    def living_one(self, tracker: PeerId) -> KnownTracker | None:
        """The tracker with that id, when it has said who it is and answered the last question."""
        return next((known for known in self.living() if known.tracker == tracker and known.row is not None), None)

    def hear_of(self, address: str, now: float) -> bool:
        """Somebody named the tracker at `address`; returns whether it is worth a try."""
        if address in self._known or not self._is_other(address):
            return False
        hearsay = [known for known in self._known.values() if _is_learnt(known) and not known.answered]
        network = network_of(address)
        near = [known for known in hearsay if network_of(known.address) == network]
        full = near if len(near) >= MOST_OF_ONE_NETWORK else hearsay if len(hearsay) >= MOST_HEARSAY else []
        # One that has failed to answer gives way: made-up addresses shall not keep everybody else from being tried.
        tried = next((known for known in full if known.failures), None)
        if full and tried is None:
            return False
        if tried is not None:
            del self._known[tried.address]
        self._known[address] = KnownTracker(address, TrackerStanding.LEARNT, since=now)
        return True

    def introduced(self, address: str, row: TrackerRow, signed: Signed[TrackerRow], now: float) -> bool:
        """The tracker at `address` said who it is; returns whether it is new or lost its database.

        False also when it turns out to be ourselves, or one that is known by another address.
        """
        known = self._known.get(address)
        if known is None:
            return False
        twin = next((one for one in self._known.values() if one.tracker == row.tracker and one is not known), None)
        if row.tracker == self._own or (twin is not None and twin.lives and known.standing is TrackerStanding.LEARNT):
            self._leave_out(address)
            return False
        if known.standing is TrackerStanding.VOUCHED and row.tracker != known.tracker:
            return False  # not the one that the list names
        if known.standing is TrackerStanding.LEARNT and known.row is None and not self._has_place(known, now):
            del self._known[address]
            return False
        if twin is not None and twin.standing is TrackerStanding.LEARNT:
            self._known.pop(twin.address, None)  # it has moved
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
        if known.standing is TrackerStanding.LEARNT:
            silent = now - (known.answered or known.since)
            if silent > FORGOTTEN_AFTER_S or (not known.answered and known.failures >= NEVER_ANSWERED_TRIES):
                del self._known[address]
                return
        long_away = known.standing is TrackerStanding.LEARNT and now - known.answered > LONG_AWAY_S
        longest = LEARNT_RETRY_S if long_away else LONGEST_RETRY_S
        wait = min(longest, 0.5 * 2 ** min(known.failures, 10))
        known.next_try = now + wait * self._chance.uniform(0.75, 1.0)

    def distrust(self, address: str, now: float) -> None:
        """It said what cannot be. A learnt one is gone for good, a trusted one is tried again as one that is away."""
        known = self._known.get(address)
        if known is not None and known.standing is TrackerStanding.LEARNT:
            self._leave_out(address)
        else:
            self.failed(address, now)

    def seen_alive(self, tracker: PeerId) -> None:
        """It called us, so it is worth a call at once."""
        for known in self._known.values():
            if known.tracker == tracker and not known.lives:
                known.next_try = 0.0

    def to_introduce(self, now: float) -> list[KnownTracker]:
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
        """The rows that others are told: those of trackers that live, each as it signed itself; without our own."""
        told = [
            known
            for known in self._known.values()
            if known.lives and known.signed is not None and known.row is not None and known.row.expires > now
        ]
        told.sort(key=lambda known: not known.standing.is_trusted)
        return [known.signed for known in told if known.signed is not None][: MOST_TRACKERS - 1]

    # --- who has room

    def _vouchers(self) -> list[PeerId]:
        configured = (known for known in self._known.values() if known.standing is TrackerStanding.CONFIGURED)
        return [known.tracker for known in configured if known.tracker]

    def _is_other(self, address: str) -> bool:
        """Whether that may be another tracker's address."""
        if address == self._own_address or address in self._not_others or "#" not in address:
            return False
        try:
            return bool(network_of(address))
        except SettingsError:
            return False

    def _has_place(self, newcomer: KnownTracker, now: float) -> bool:
        learnt = [
            LearntTracker(known.address, known.since, known.lives, known.useful)
            for known in self._known.values()
            if _is_learnt(known) and known.row is not None and known is not newcomer
        ]
        gives_way = place_for(newcomer.address, learnt, now, self._chance)
        if gives_way:
            del self._known[gives_way]
        return gives_way is not None

    def _leave_out(self, address: str) -> None:
        del self._known[address]
        self._not_others[address] = None
        if len(self._not_others) > MOST_NOT_OTHERS:
            del self._not_others[next(iter(self._not_others))]

    def _settle(self, now: float) -> None:
        """Bring the book in line with what is vouched for now."""
        vouched = self._vouchings.trackers(self._vouchers(), now)
        vouched.pop(self._own, None)
        for known in list(self._known.values()):
            is_named = vouched.get(known.tracker) == known.address
            if known.standing is TrackerStanding.VOUCHED and not is_named:
                del self._known[known.address]
            elif is_named and known.standing is TrackerStanding.LEARNT:
                known.standing = TrackerStanding.VOUCHED
        for tracker, address in list(vouched.items())[:MOST_TRACKERS]:
            if address not in self._known and tracker not in self._vouchers() and address != self._own_address:
                self._known[address] = KnownTracker(address, TrackerStanding.VOUCHED, tracker, since=now)


def _is_learnt(known: KnownTracker) -> bool:
    return known.standing is TrackerStanding.LEARNT
