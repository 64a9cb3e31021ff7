"""Which way the next announce to a tracker takes: by datagram, or by HTTPS (pure). Times are Unix seconds, passed in.

A tracker offers datagrams over HTTPS, so the first announce to each goes that way. If it says nothing by datagram and
does answer by HTTPS, something blocks UDP: its port rests, each time twice as long. One that answers neither way is
away, and UDP is not to blame.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from axonp2p.table.announce_datagrams import MOST_BODY, NO_TOKEN, DatagramTicket

FIRST_REST_S = 1800.0
LONGEST_REST_S = 86_400.0
NOT_OFFERED_S = 86_400.0
"""A tracker that takes no datagrams is asked again after so long."""


@dataclass(frozen=True)
class DatagramWay:
    """Where to send a datagram, and what to show there."""

    host: str
    """An IP address of the tracker."""
    ticket: DatagramTicket
    token: bytes = NO_TOKEN


@dataclass
class _Known:
    way: DatagramWay | None = None
    by_https: bool = False
    """Whether the tracker said no by datagram, and has not taken a row by HTTPS since."""
    rests_until: float = 0.0
    rest_s: float = FIRST_REST_S


class AnnounceWays:
    """The ways to announce at each tracker, by the tracker's address."""

    def __init__(self) -> None:
        self._trackers: dict[str, _Known] = {}

    def by_datagram(self, address: str, size: int) -> DatagramWay | None:
        """How to announce a row of `size` encoded bytes by datagram; None for HTTPS."""
        known = self._trackers.get(address)
        return None if known is None or known.by_https or size > MOST_BODY else known.way

    def wants_ticket(self, address: str, now: float) -> bool:
        """Whether to ask the tracker, which has just taken a row by HTTPS, for a ticket."""
        known = self._trackers.get(address)
        # A rest that is longer than any was begun before the clock was put back.
        return known is None or (known.way is None and not 0 < known.rests_until - now <= LONGEST_REST_S)

    def offered(self, address: str, way: DatagramWay) -> None:
        """The tracker gave a ticket."""
        self._of(address).way = way

    def not_offered(self, address: str, now: float) -> None:
        """The tracker takes no datagrams."""
        known = self._of(address)
        known.way, known.rests_until = None, now + NOT_OFFERED_S

    def answered(self, address: str, token: bytes) -> None:
        """It took a row by datagram, with this token."""
        known = self._of(address)
        known.rest_s = FIRST_REST_S
        if known.way is not None:
            known.way = DatagramWay(known.way.host, known.way.ticket, token)

    def refused(self, address: str) -> None:
        """It said no by datagram: HTTPS, by which it says why, until it takes a row."""
        self._of(address).by_https = True

    def taken_by_https(self, address: str, now: float, *, was_silent: bool) -> None:
        """It took a row by HTTPS; `was_silent`: after no answer had come to a datagram."""
        known = self._of(address)
        known.by_https = False
        if was_silent:
            known.way, known.rests_until = None, now + known.rest_s
            known.rest_s = min(2 * known.rest_s, LONGEST_REST_S)

    def keep_only(self, addresses: Collection[str]) -> None:
        """Forget the trackers at all other addresses."""
        self._trackers = {address: known for address, known in self._trackers.items() if address in addresses}

    def _of(self, address: str) -> _Known:
        return self._trackers.setdefault(address, _Known())
