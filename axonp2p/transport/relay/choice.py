"""With which relays a peer registers, and when it tries another (pure). Times are seconds that never go back."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.messages import MOST_RELAYS

FIRST_RETRY_S = 2.0
LONGEST_RETRY_S = 600.0
"""How long a relay is left alone after it failed once, and at the most."""
STEADY_S = 60.0
"""A registration that held for so long makes up for all failures before."""
LINGER_S = 900.0
"""How long relays are kept when they are needed no more: rows that name them are believed for as long."""
LONGEST_WAIT_S = 3600.0


@dataclass(frozen=True)
class RelayCandidate:
    """A tracker, or a peer, that may be a relay."""

    address: str
    """https://HOST:PORT#FINGERPRINT."""
    peer: PeerId
    """Its id."""
    called: str
    """For people, such as "tracker lab:7070"."""
    is_peer: bool = False
    """Somebody's own machine: asked when there are too few trackers."""


@dataclass
class _History:
    failures: int = 0
    not_before: float = 0.0
    since: float | None = None
    """When it said yes; None while it has not."""


class RelayChoice:
    """One peer's relays. The code that opens a registration tells how it goes, by the relay's address."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._candidates: dict[str, RelayCandidate] = {}
        self._histories: dict[str, _History] = {}
        self._open: dict[str, RelayCandidate] = {}
        self._needed = False
        self._unneeded_since = float("-inf")

    @property
    def held(self) -> list[str]:
        """Relays that hold a connection of ours, the oldest first."""
        held = [(since, address) for address in self._open if (since := self._histories[address].since) is not None]
        return [address for _, address in sorted(held)]

    @property
    def too_few(self) -> bool:
        """Whether more relays are wanted than are known that have not refused or failed."""
        histories = [self._history(address) for address in self._candidates.keys() | self._open.keys()]
        good = sum(history.failures == 0 or history.since is not None for history in histories)
        return self._needed and good < MOST_RELAYS

    def offer(self, candidates: Iterable[RelayCandidate]) -> None:
        """These may be asked from now on, and no others."""
        self._candidates = {candidate.address: candidate for candidate in candidates}
        known = self._candidates.keys() | self._open.keys()
        self._histories = {address: history for address, history in self._histories.items() if address in known}

    def need(self, needed: bool, now: float) -> None:
        """Whether others cannot reach us without."""
        if self._needed and not needed:
            self._unneeded_since = now
        self._needed = needed

    def to_open(self, now: float) -> list[RelayCandidate]:
        """Relays to register with now: they count as open from here on."""
        if not self._needed:
            return []
        free = [one for one in self._candidates.values() if self._may_be_asked(one.address, now)]
        self._chance.shuffle(free)
        free.sort(key=lambda one: (self._history(one.address).failures > 0, one.is_peer))
        chosen = free[: max(0, MOST_RELAYS - len(self._open))]
        for candidate in chosen:
            self._history(candidate.address).since = None
            self._open[candidate.address] = candidate
        return chosen

    def to_close(self, now: float) -> list[str]:
        """Relays that are not needed any more."""
        over = not self._needed and now - self._unneeded_since >= LINGER_S
        return list(self._open) if over else []

    def registered(self, address: str, now: float) -> None:
        """It said yes."""
        self._history(address).since = now

    def ended(self, address: str, now: float) -> None:
        """It said no, is gone, or was left: it may be asked again later."""
        self._open.pop(address, None)
        history = self._history(address)
        if history.since is not None and now - history.since >= STEADY_S:
            history.failures = 0
        history.since = None
        pause = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(history.failures, 16))
        history.failures += 1
        history.not_before = now + pause * (0.75 + self._chance.random() / 2)

    def wait(self, now: float) -> float:
        """Seconds until there may be something to do."""
        moments = [now + LONGEST_WAIT_S]
        if self._needed and len(self._open) < MOST_RELAYS:
            moments += [self._history(one).not_before for one in self._candidates if one not in self._open]
        if not self._needed and self._open:
            moments.append(self._unneeded_since + LINGER_S)
        return max(0.0, min(moments) - now)

    def _may_be_asked(self, address: str, now: float) -> bool:
        return address not in self._open and self._history(address).not_before <= now

    def _history(self, address: str) -> _History:
        return self._histories.setdefault(address, _History())
