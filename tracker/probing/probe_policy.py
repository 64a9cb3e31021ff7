"""Which rows are worth a call, at which of their addresses, and what came of it (pure).

A row names any addresses that its peer likes, so a tracker that called them all could be pointed at somebody else's
machines. Called is what the tracker may dial (`transport.dial_policy`), a private address besides only on the word of a
caller from the same network, and only so many a second.
"""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import Row
from axonp2p.transport.dial_policy import DialPolicy, may_dial
from axonp2p.transport.ways import Way, direct_ways, ways_to

LOOKS_A_SECOND = 20.0
"""First looks; a TLS handshake costs some 2 ms of CPU."""
BURST = 100.0
MOST_REMEMBERED = 200_000
MOST_ADDRESSES = 2
"""Of one row."""
MOST_WAYS = 3
LOOK_AGAIN_S = 900.0
"""A router may have been changed, or a machine moved behind one: what was found is true for so long."""


def worth_calling(row: Row, source: str, dials: DialPolicy) -> list[Way]:
    """The addresses of a row that may be called on the word of somebody at the IP address `source`."""
    return [way for way in direct_ways(row, dials) if may_dial(way.address.host, [source])][:MOST_ADDRESSES]


def worth_asking(row: Row, source: str, dials: DialPolicy) -> list[Way]:
    """All ways to the peer of a row that may be tried on the word of somebody there: relays are somebody's too."""
    return [way for way in ways_to(row, dials) if may_dial((way.relay or way.address).host, [source])][:MOST_WAYS]


@dataclass(slots=True)
class _Look:
    place: int
    reached: bool | None
    again_at: float


class FirstProbes:
    """First looks: whether a peer could be called at the addresses of its row. Times never go back."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._seen: dict[PeerId, _Look] = {}
        self._left = BURST
        self._at = 0.0

    def reached(self, row: Row) -> bool | None:
        """Whether a call reached these addresses; None when none was made, or none has ended yet."""
        look = self._seen.get(row.peer)
        return look.reached if look is not None and look.place == _place(row) else None

    def is_due(self, row: Row, now: float) -> bool:
        """Whether nobody has looked lately."""
        look = self._seen.get(row.peer)
        return look is None or look.place != _place(row) or now >= look.again_at

    def wanted(self, row: Row, now: float) -> bool:
        """Whether to call the peer now, which counts as one look: not when it was done lately, nor too many at once."""
        if not self.is_due(row, now):
            return False
        self._left = min(BURST, self._left + (now - self._at) * LOOKS_A_SECOND)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        self._remember(row, self.reached(row), now + LOOK_AGAIN_S)
        return True

    def found(self, row: Row, reached: bool) -> None:
        """Remember the outcome of a call."""
        look = self._seen.get(row.peer)
        self._remember(row, reached, self._at + LOOK_AGAIN_S if look is None else look.again_at)

    def _remember(self, row: Row, reached: bool | None, again_at: float) -> None:
        self._seen.pop(row.peer, None)
        self._seen[row.peer] = _Look(_place(row), reached, again_at)
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]


def _place(row: Row) -> int:
    # A number instead of the addresses: there may be hundreds of thousands of them.
    return hash((tuple(row.addresses), row.certificate))
