"""All that strangers hold here at once: bounded in all, for one household and for one key (pure).

A place is anything that costs while it is merely held: a connection, a handshake, a registration, a reservation, a
lease, a hosted job. When a bound is reached, a holder that only waits gives way to a newcomer, once it has had its
least age: the longest idle first, and for the bound in all, one of the source that holds most. A holder that works
keeps its place. A caller that takes places for nothing
so crowds out its own places first, and those of others never while they work.

Compare libp2p's resource manager (scopes for peer, subnet and system) and Bitcoin Core's eviction of inbound peers.
Times are seconds of one clock that never goes back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from axonp2p.errors import Busy, TooOften

H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True)
class Bounds:
    """How many places there are, and for how long an idle one is safe."""

    in_all: int
    of_source: int
    """Of one household: an IPv4 address, or an IPv6 /56 (`transport.address.source_of`)."""
    of_key: int
    least_age_s: float
    """Seconds for which a holder keeps its place without working: what an honest one needs to begin."""
    try_again_s: float = 10.0
    """The seconds that a refused caller is told to wait."""


@dataclass(slots=True)
class _Place:
    source: str
    key: str
    idle_since: float
    works: bool = False


class Holdings(Generic[H]):
    """The holders of one kind of place. Each has a name that its user chooses, such as a connection or a lease's id."""

    def __init__(self, what: str, bounds: Bounds) -> None:
        """`what` is the plural of what is held, for people: "registrations"."""
        self._what = what
        self.bounds = bounds
        """May be changed; nobody loses a place by that alone."""
        self._places: dict[H, _Place] = {}
        self._of_source: dict[str, dict[H, None]] = {}
        self._of_key: dict[str, dict[H, None]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, holder: object) -> bool:
        return holder in self._places

    def take(self, holder: H, source: str, key: str, now: float) -> list[H]:
        """Give `holder` a place; the holders that must let go of theirs for it, which have none from now on.

        An empty `key` or `source` is one that is not known, and is bounded in all only. Raises `TooOften` when one
        source or key holds as many as it may, and `Busy` when all places are held; then nothing has changed.
        """
        if holder in self._places:
            return []
        going: list[H] = []
        for of_one in (self._of_key, self._of_source):
            going += self._make_room_of_one(of_one, key if of_one is self._of_key else source, now, going)
        if len(self._places) - len(going) >= self.bounds.in_all:
            longest = self._longest_idle(self._places, now, going)
            if longest is None:
                wait_s = self.bounds.try_again_s
                raise Busy(f"there is no room for more {self._what}", fix="try later, or elsewhere", wait_s=wait_s)
            going.append(longest)
        for one in going:
            self.release(one)
        self._places[holder] = _Place(source, key, now)
        self._of_source.setdefault(source, {})[holder] = None
        self._of_key.setdefault(key, {})[holder] = None
        return going

    def works(self, holder: H) -> None:
        """The holder does what its place is for: it keeps it until it waits again."""
        if place := self._places.get(holder):
            place.works = True

    def waits(self, holder: H, now: float) -> None:
        """The holder is idle from now on."""
        if place := self._places.get(holder):
            place.works, place.idle_since = False, now

    def release(self, holder: H) -> None:
        """Its place is free. Harmless when it has none."""
        if place := self._places.pop(holder, None):
            for name, of_one in ((place.source, self._of_source), (place.key, self._of_key)):
                del of_one[name][holder]
                if not of_one[name]:
                    del of_one[name]

    def idle_for(self, seconds: float, now: float) -> list[H]:
        """Those that have done nothing for so long, which their user may end."""
        return [one for one, place in self._places.items() if not place.works and now - place.idle_since >= seconds]

    def _make_room_of_one(self, of_one: dict[str, dict[H, None]], name: str, now: float, going: list[H]) -> list[H]:
        is_key = of_one is self._of_key
        most = self.bounds.of_key if is_key else self.bounds.of_source
        own = of_one.get(name, {}) if name else {}
        if len(own) - sum(one in own for one in going) < most:
            return []
        longest = self._longest_idle(own, now, going)
        if longest is None:
            raise TooOften(
                f"{most} {self._what} are held for {'one key' if is_key else name}, which is as many as there may be",
                fix="end one of them, or try again later",
                wait_s=self.bounds.try_again_s,
            )
        return [longest]

    def _longest_idle(self, among: Iterable[H], now: float, going: list[H]) -> H | None:
        """The holder that gives way first: of the source that holds most, the one that has been idle longest."""
        found: tuple[int, float] | None = None
        holder: H | None = None
        for one in among:
            place = self._places[one]
            if place.works or now - place.idle_since < self.bounds.least_age_s or one in going:
                continue
            rank = (len(self._of_source[place.source]) if place.source else 0, now - place.idle_since)
            if found is None or rank > found:
                found, holder = rank, one
        return holder
