"""Which trackers are known, and how each of them was of late (pure). Times are Unix seconds, so that it may be kept.

An address stands for a tracker. Those of the settings are kept for good, those that their operators vouch for as long
as they do; at most eight more are learnt (`tracker_standing`). One that is away is asked again after a sixteenth of the
time that it has been away: soon after a short outage, and seldom when it is gone for good. Every wait is up to a
quarter longer or shorter, so that not everybody comes back in the same moment as the tracker.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from axonp2p.errors import AxonError, SettingsError
from axonp2p.identity.peer_id import PeerId, PeerIdOrNone
from axonp2p.table.records import TrackerAddress, Vouching
from axonp2p.table.tracker_standing import LearntTracker, TrackerStanding, place_for
from axonp2p.table.vouching import MOST_VOUCHERS, Vouchings
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.envelope import Signed
from axonp2p.wire.quantities import UnixMoment

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 300.0
FORGOTTEN_AFTER_S = 7 * 24 * 3600
"""A learnt tracker of which nothing was heard for so long is forgotten."""
MOST_VOUCHED_KNOWN = 32
"""Of several operators together."""
_PART_OF_OUTAGE = 16
_SLOWLY = 0.3
"""How much a new round trip counts beside the ones before."""


class TrackerState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The memory of one tracker."""

    address: TrackerAddress
    """https://HOST:PORT#FINGERPRINT"""
    tracker: PeerIdOrNone = ""
    """Its id, once it is known."""
    standing: TrackerStanding = TrackerStanding.CONFIGURED
    failures: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0
    """In a row; 0 when it is not known to be away."""
    away_since: UnixMoment = 0.0
    """When the first of them was."""
    next_try: UnixMoment = 0.0
    """Not to be asked before, unless nobody else is left."""
    answered: UnixMoment = 0.0
    """When it last answered; 0 for never."""
    heard: UnixMoment = 0.0
    """When it last answered or was named by another tracker."""
    since: UnixMoment = 0.0
    """When it became known."""
    rtt_s: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None
    """Seconds that an answer takes, smoothed."""


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    trackers: Annotated[list[TrackerState], msgspec.Meta(max_length=128)]
    vouchings: Annotated[list[Signed[Vouching]], msgspec.Meta(max_length=MOST_VOUCHERS)] = []


class TrackerHealth:
    """The trackers of one program. Addresses that it is asked about must be among `addresses`."""

    def __init__(self, configured: Iterable[str] = (), chance: random.Random | None = None) -> None:
        """`chance` draws the learnt tracker that gives way to a new one. Raises `SettingsError` when one of
        `configured` is no address."""
        self._chance = chance or random.Random(0)
        self._states: dict[str, TrackerState] = {}
        self._vouchings = Vouchings()
        for text in configured:
            address = str(PinnedAddress.parse(text))
            self._states.setdefault(address, TrackerState(address=address))

    @property
    def addresses(self) -> list[str]:
        """All of them, those of the settings first."""
        return list(self._states)

    def trusted(self, now: float) -> frozenset[PeerId]:
        """The ids of the trackers that are trusted: the configured ones and those that they vouch for."""
        return frozenset(self._vouchers()) | frozenset(self._vouchings.trackers(self._vouchers(), now))

    def is_trusted(self, tracker: PeerId, now: float) -> bool:
        """Whether the tracker with that id is configured or vouched for."""
        return tracker in self.trusted(now)

    def state(self, address: str) -> TrackerState:
        """The memory of one, to look at."""
        return self._states[address]

    def standing(self, address: str) -> TrackerStanding:
        """Why it is known; an address that is not known counts as learnt."""
        state = self._states.get(address)
        return state.standing if state else TrackerStanding.LEARNT

    def is_learnt(self, address: str) -> bool:
        """Whether neither the settings nor a configured tracker's operator name it."""
        return not self.standing(address).is_trusted

    def is_away(self, address: str) -> bool:
        """Whether it did not answer when it was last asked."""
        return self._states[address].failures > 0

    def may_be_asked(self, address: str, now: float) -> bool:
        """Whether it is not away, or has been left alone for long enough."""
        return self.next_try(address, now) <= now

    def next_try(self, address: str, now: float) -> float:
        """When it may be asked again; a moment that has passed when it may be now."""
        # A clock that was set back would otherwise keep a tracker out for as long.
        return min(self._states[address].next_try, now + 2 * LONGEST_RETRY_S)

    def order(self, now: float, chance: random.Random) -> list[str]:
        """The order to ask in: healthy ones, those away and due, those that asked for patience, then the others.

        Among those the ones of the settings first, then those vouched for, then the learnt ones; equals stand in
        random order, so that no tracker gets everybody.
        """
        mixed = list(self._states)
        chance.shuffle(mixed)
        mixed.sort(key=lambda address: (self._rank(address, now), _ORDER.index(self._states[address].standing)))
        return mixed

    def learn(self, address: str, now: float, tracker: str = "") -> bool:
        """Another tracker says that there is one at `address`, whose id is `tracker`. True when that is new.

        A word that is no address, or stands for a known one, changes nothing. Of the learnt ones
        `tracker_standing` says how many there may be, and which gives way.
        """
        try:
            pinned = PinnedAddress.parse(address)
        except SettingsError:
            return False
        for state in self._states.values():
            if (tracker and state.tracker == tracker) or PinnedAddress.parse(state.address) == pinned:
                state.heard = now
                return False
        self._forget_old(now)
        text = str(pinned)
        gives_way = place_for(text, [_as_learnt(one) for one in self._learnt()], now, self._chance)
        if gives_way is None:
            return False
        self._states.pop(gives_way, None)
        self._states[text] = TrackerState(
            address=text, tracker=tracker, standing=TrackerStanding.LEARNT, heard=now, since=now
        )
        return True

    def hear_vouching(self, address: str, tracker: PeerId, signed: Signed[Vouching] | None, now: float) -> bool:
        """The tracker at `address` said that its id is `tracker`, and showed its list, if it has one.

        True when others are trusted now than before. Only a configured tracker is listened to, and only to its own
        list, when that holds.
        """
        state = self._states.get(address)
        if state is None or state.standing is not TrackerStanding.CONFIGURED:
            return False
        before = self.trusted(now)
        state.tracker = tracker
        if signed is not None:
            with suppress(AxonError):
                self._vouchings.hear(signed, tracker, now)
        self._settle(now)
        return self.trusted(now) != before

    def answered(self, address: str, now: float, rtt_s: float | None = None, tracker: str = "") -> bool:
        """It answered, after `rtt_s` seconds when they were measured. True when it was away before."""
        state = self._states[address]
        was_away = state.failures > 0
        state.failures, state.next_try = 0, 0.0
        state.answered = state.heard = now
        if rtt_s is not None:
            state.rtt_s = rtt_s if state.rtt_s is None else state.rtt_s + _SLOWLY * (rtt_s - state.rtt_s)
        if tracker:
            self._is_the_same(state, tracker)
        return was_away

    def failed(self, address: str, now: float, chance: float) -> bool:
        """It did not answer, or not as a tracker should; `chance` is a random number from 0 to 1.

        True when it is the first time in a row: worth a line in the log.
        """
        state = self._states[address]
        if not state.failures:
            state.away_since = now
        state.failures += 1
        wait = min(LONGEST_RETRY_S, max(FIRST_RETRY_S, (now - state.away_since) / _PART_OF_OUTAGE))
        state.next_try = now + wait * (0.75 + chance / 2)
        return state.failures == 1

    def busy(self, address: str, wait_s: float, now: float, chance: float) -> None:
        """It answered that it has no room now: it is well, but is to be left alone for `wait_s` seconds.

        `chance` is a random number from 0 to 1.
        """
        state = self._states[address]
        state.failures = 0
        state.answered = state.heard = now
        state.next_try = now + min(LONGEST_RETRY_S, max(FIRST_RETRY_S, wait_s)) * (1 + chance / 2)

    def as_plain(self) -> dict[str, Any]:
        """All of it, to be written as JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(_Kept(list(self._states.values()), self._vouchings.signed))
        return plain

    def restore(self, plain: object, now: float) -> None:
        """Take up `as_plain` of an earlier run; the settings of this run stay what they are. Rubbish is ignored."""
        try:
            kept = msgspec.convert(plain, _Kept)
        except msgspec.ValidationError:
            return  # damaged, or of another version: then every tracker is unknown, which harms nobody
        for state in kept.trackers:
            if known := self._states.get(state.address):
                state.standing = known.standing
                self._states[state.address] = state
            elif state.standing is TrackerStanding.LEARNT and self.learn(state.address, now, state.tracker):
                restored = self._states[self.addresses[-1]]
                restored.heard, restored.since, restored.answered = state.heard, state.since, state.answered
        for signed in kept.vouchings:
            if signed.signer in self._vouchers():
                with suppress(AxonError):
                    self._vouchings.hear(signed, signed.signer, now)
        self._settle(now)
        # An outage that lasted while we were off says nothing about today.
        for state in self._states.values():
            state.failures, state.next_try, state.away_since = 0, 0.0, 0.0
        self._forget_old(now)

    def _rank(self, address: str, now: float) -> int:
        waits = self.next_try(address, now) > now
        if self.is_away(address):
            return 3 if waits else 1
        return 2 if waits else 0

    def _forget_old(self, now: float) -> None:
        for state in list(self._states.values()):
            if state.standing is TrackerStanding.LEARNT and state.heard < now - FORGOTTEN_AFTER_S:
                del self._states[state.address]

    def _learnt(self) -> list[TrackerState]:
        return [state for state in self._states.values() if state.standing is TrackerStanding.LEARNT]

    def _vouchers(self) -> list[PeerId]:
        configured = (state for state in self._states.values() if state.standing is TrackerStanding.CONFIGURED)
        return [state.tracker for state in configured if state.tracker]

    def _is_the_same(self, state: TrackerState, tracker: PeerId) -> None:
        """The tracker of `state` says what its id is: under several addresses it is announced to once, and counts once.

        A learnt one says what it likes: it takes neither the place of a trusted one nor that of one that answers.
        """
        others = [one for one in self._states.values() if one.tracker == tracker and one is not state]
        if state.standing is TrackerStanding.LEARNT and any(
            one.standing.is_trusted or (one.answered and not one.failures) for one in others
        ):
            return
        if state.standing is not TrackerStanding.VOUCHED:  # its id stands in the list
            state.tracker = tracker
        for other in others:
            if other.standing is TrackerStanding.LEARNT:
                del self._states[other.address]

    def _settle(self, now: float) -> None:
        """Bring the states in line with what is vouched for now."""
        self._vouchings.keep_only(self._vouchers())
        vouched = dict(list(self._vouchings.trackers(self._vouchers(), now).items())[:MOST_VOUCHED_KNOWN])
        for state in list(self._states.values()):
            gone = state.standing is TrackerStanding.VOUCHED and vouched.get(state.tracker) != state.address
            twin = state.standing is TrackerStanding.LEARNT and (
                state.tracker in vouched or state.address in vouched.values()
            )
            if gone or twin:
                del self._states[state.address]
        for tracker, address in vouched.items():
            if address not in self._states and all(state.tracker != tracker for state in self._states.values()):
                self._states[address] = TrackerState(
                    address=address, tracker=tracker, standing=TrackerStanding.VOUCHED, heard=now, since=now
                )


_ORDER = (TrackerStanding.CONFIGURED, TrackerStanding.VOUCHED, TrackerStanding.LEARNT)


def _as_learnt(state: TrackerState) -> LearntTracker:
    return LearntTracker(state.address, state.since, lives=not state.failures, useful=state.answered > 0)
