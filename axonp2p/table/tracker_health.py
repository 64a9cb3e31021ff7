"""Which trackers are known, and how each of them was of late (pure). Times are Unix seconds, so that it may be kept.

An address stands for a tracker. Those of the settings are kept for good; at most 16 more are learnt from trackers. One
that is away is asked again after a sixteenth of the time that it has been away: soon after a short outage, and seldom
when it is gone for good. Every wait is up to a quarter longer or shorter, so that not everybody comes back in the same
moment as the tracker.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from axonp2p.errors import SettingsError
from axonp2p.identity.peer_id import PeerIdOrNone
from axonp2p.table.records import MOST_TRACKERS, TrackerAddress
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.quantities import UnixMoment

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 300.0
FORGOTTEN_AFTER_S = 7 * 24 * 3600
"""A learnt tracker of which nothing was heard for so long is forgotten."""
_PART_OF_OUTAGE = 16
_SLOWLY = 0.3
"""How much a new round trip counts beside the ones before."""


class TrackerState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is remembered of one tracker."""

    address: TrackerAddress
    """https://HOST:PORT#FINGERPRINT"""
    tracker: PeerIdOrNone = ""
    """Its id, once it is known."""
    learnt: bool = False
    """Whether another tracker named it; the settings do otherwise."""
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
    rtt_s: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None
    """Seconds that an answer takes, smoothed."""


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    trackers: Annotated[list[TrackerState], msgspec.Meta(max_length=128)]


class TrackerHealth:
    """The trackers of one program. Addresses that it is asked about must be among `addresses`."""

    def __init__(self, configured: Iterable[str] = ()) -> None:
        """Raises `SettingsError` when one of `configured` is no address."""
        self._states: dict[str, TrackerState] = {}
        for text in configured:
            address = str(PinnedAddress.parse(text))
            self._states.setdefault(address, TrackerState(address=address))

    @property
    def addresses(self) -> list[str]:
        """All of them, those of the settings first."""
        return list(self._states)

    @property
    def identities(self) -> frozenset[str]:
        """The ids of all those whose id is known."""
        return frozenset(state.tracker for state in self._states.values() if state.tracker)

    def state(self, address: str) -> TrackerState:
        """What is remembered of one, to look at."""
        return self._states[address]

    def is_learnt(self, address: str) -> bool:
        """Whether another tracker named it."""
        return self._states[address].learnt

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
        """Whom to ask first: healthy ones, those that are away and due, those that asked for patience, then the others.

        Among those the ones of the settings first, then the learnt ones; equals stand in random order, so that no
        tracker gets everybody.
        """
        mixed = list(self._states)
        chance.shuffle(mixed)
        mixed.sort(key=lambda address: (self._rank(address, now), self._states[address].learnt))
        return mixed

    def learn(self, address: str, now: float, tracker: str = "") -> bool:
        """Another tracker says that there is one at `address`, whose id is `tracker`. True when that is new.

        What is no address, or stands for one that is known already, changes nothing. When there are 16 learnt ones, it
        takes the place of the one that has been away longest, if any is away.
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
        learnt = [state for state in self._states.values() if state.learnt]
        if len(learnt) >= MOST_TRACKERS:
            worst = min(learnt, key=lambda state: (state.failures == 0, state.away_since))
            if not worst.failures:
                return False
            del self._states[worst.address]
        text = str(pinned)
        self._states[text] = TrackerState(address=text, tracker=tracker, learnt=True, heard=now)
        return True

    def answered(self, address: str, now: float, rtt_s: float | None = None, tracker: str = "") -> bool:
        """It answered, after `rtt_s` seconds when they were measured. True when it was away before."""
        state = self._states[address]
        was_away = state.failures > 0
        state.failures, state.next_try = 0, 0.0
        state.answered = state.heard = now
        if rtt_s is not None:
            state.rtt_s = rtt_s if state.rtt_s is None else state.rtt_s + _SLOWLY * (rtt_s - state.rtt_s)
        if tracker:
            state.tracker = tracker
            # The same tracker under another of its addresses: it is announced to once, and counts once.
            for other in [one for one in self._states.values() if one.tracker == tracker and one.learnt]:
                if other is not state:
                    del self._states[other.address]
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
        plain: dict[str, Any] = msgspec.to_builtins(_Kept(list(self._states.values())))
        return plain

    def restore(self, plain: object, now: float) -> None:
        """What `as_plain` gave in an earlier run; the settings of this run stay what they are. Rubbish is ignored."""
        try:
            kept = msgspec.convert(plain, _Kept)
        except msgspec.ValidationError:
            return  # damaged, or of another version: then every tracker is unknown, which harms nobody
        for state in kept.trackers:
            if known := self._states.get(state.address):
                state.learnt = known.learnt
                self._states[state.address] = state
            elif state.learnt and self.learn(state.address, now, state.tracker):
                self._states[self.addresses[-1]].heard = state.heard
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
            if state.learnt and state.heard < now - FORGOTTEN_AFTER_S:
                del self._states[state.address]
