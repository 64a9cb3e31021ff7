"""One look-up: whom to ask next on the way to the nodes nearest to a key (pure).

No rounds: whoever answers makes room for the next question at once, a slow one frees its place and counts still when it
answers, and the end is reached when the nearest *responsive* nodes have answered. So a dead node costs nothing but its
soft limit, where the package's rounds wait 5 s for each.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable
from enum import Enum

from axonp2p.table.dht.routing.contact import Contact, read_host

ALPHA = 4
MOST_ALPHAS = 3
WIDTH = 8
MOST_OF_A_NETWORK = 2
MOST_FAILURES_OF_A_NETWORK = 4
MOST_REMEMBERED = 256
"""Contacts; over that, the farthest that was not asked yet is forgotten."""


class _State(Enum):
    FRESH = 0
    ASKED = 1
    SLOW = 2
    ANSWERED = 3
    FAILED = 4


class _Candidate:
    """A contact, how far it is from the target, and what became of it."""

    __slots__ = ("contact", "distance", "network", "state")

    def __init__(self, contact: Contact, target: int) -> None:
        host = read_host(contact.ip)
        self.contact = contact
        self.distance = contact.long_id ^ target
        self.network = None if host.local else host.network
        self.state = _State.FRESH

    def __lt__(self, other: _Candidate) -> bool:
        return self.distance < other.distance


class Lookup:
    """The state of one look-up. The caller sends, waits, and tells what happened."""

    def __init__(
        self, target: bytes, seeds: Iterable[Contact], *, own_id: bytes = b"", alpha: int = ALPHA, width: int = WIDTH
    ) -> None:
        self._target = int.from_bytes(target)
        self._own_id = own_id
        self._alpha = alpha
        self._width = width
        self._nearest_first: list[_Candidate] = []
        # By id and address: who names a true id at a false address shall not hide the true one.
        self._known: dict[tuple[bytes, str, int], _Candidate] = {}
        self._failures: Counter[bytes] = Counter()
        self._asked = 0
        self._slow = 0
        self._lost = 0
        self._heard = 0
        for contact in seeds:
            self._learn(contact)

    def next(self) -> list[Contact]:
        """The contacts to ask now: as many as there are free places. They count as asked.

        Where many are dead there are more places: one more for each that was lost, up to three times as many. And
        whoever would be next if as many of the rest are dead is asked at once, too, instead of one soft limit later.
        """
        free = min(self._alpha + self._lost, MOST_ALPHAS * self._alpha) - self._asked
        if free <= 0:
            return []
        chosen = [candidate for candidate in self._window(self._reach()) if candidate.state is _State.FRESH][:free]
        for candidate in chosen:
            candidate.state = _State.ASKED
        self._asked += len(chosen)
        return [candidate.contact for candidate in chosen]

    def answered(self, contact: Contact, contacts: Iterable[Contact]) -> None:
        """It answered and named these. One that was slow, or counted as failed, counts again."""
        candidate = self._leave(contact)
        if candidate is None:
            return
        candidate.state = _State.ANSWERED
        self._heard += 1
        for other in contacts:
            self._learn(other)

    def slow(self, contact: Contact) -> None:
        """Its soft limit is over: its place is free for another."""
        candidate = self._known.get((contact.id, contact.ip, contact.port))
        if candidate is not None and candidate.state is _State.ASKED:
            candidate.state = _State.SLOW
            self._asked -= 1
            self._slow += 1
            self._lost += 1

    def failed(self, contact: Contact) -> None:
        """It did not answer, or nonsense."""
        candidate = self._leave(contact)
        if candidate is None:
            return
        if candidate.network is not None and candidate.state is not _State.FAILED:
            self._failures[candidate.network] += 1
        candidate.state = _State.FAILED

    def widen(self, width: int) -> None:
        """Go on until so many of the nearest have answered."""
        self._width = width

    @property
    def done(self) -> bool:
        """Whether the nearest responsive nodes have answered, or nobody is left to be asked or waited for."""
        window = self._window()
        if any(candidate.state is not _State.ANSWERED for candidate in window):
            return False
        return len(window) >= self._width or not self._slow

    @property
    def nearest(self) -> list[Contact]:
        """Those that answered, nearest first, at most the width."""
        return [candidate.contact for candidate in self._window() if candidate.state is _State.ANSWERED]

    def _reach(self) -> int:
        """How many of the nearest to ask so that enough of them live, after the share that lived so far."""
        if not self._lost:
            return self._width
        return min(2 * self._width, self._width * (self._heard + self._lost) // max(1, self._heard))

    def _window(self, width: int = 0) -> list[_Candidate]:
        """The nearest that may still count, neither slow nor failed, and not more of a network than is fair."""
        width = width or self._width
        window: list[_Candidate] = []
        of_network: Counter[bytes] = Counter()
        for candidate in self._nearest_first:
            if candidate.state is _State.SLOW or candidate.state is _State.FAILED:
                continue
            network = candidate.network
            if network is not None:
                if of_network[network] >= MOST_OF_A_NETWORK:
                    continue
                # Names of nobody in one network, one after another, would cost a soft limit each.
                if candidate.state is _State.FRESH and self._failures[network] >= MOST_FAILURES_OF_A_NETWORK:
                    continue
                of_network[network] += 1
            window.append(candidate)
            if len(window) == width:
                break
        return window

    def _learn(self, contact: Contact) -> None:
        place = (contact.id, contact.ip, contact.port)
        if contact.id == self._own_id or place in self._known:
            return
        candidate = _Candidate(contact, self._target)
        self._known[place] = candidate
        insort(self._nearest_first, candidate)
        if len(self._nearest_first) > MOST_REMEMBERED and self._nearest_first[-1].state is _State.FRESH:
            lost = self._nearest_first.pop().contact
            del self._known[lost.id, lost.ip, lost.port]

    def _leave(self, contact: Contact) -> _Candidate | None:
        """The candidate, out of its place among the asked or slow."""
        candidate = self._known.get((contact.id, contact.ip, contact.port))
        if candidate is not None and candidate.state is _State.ASKED:
            self._asked -= 1
        elif candidate is not None and candidate.state is _State.SLOW:
            self._slow -= 1
        return candidate
