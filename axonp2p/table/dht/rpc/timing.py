"""How long to wait for a DHT node: from what it, and all others, took before (pure).

Smoothed round trips as in RFC 6298, also its rule that a request sent twice measures nothing (Karn). Silent addresses
rest, each time twice as long.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

HARD_LIMIT_S = 1.5
"""After this a request has failed."""
LEAST_SOFT_S = 0.05
MOST_SOFT_S = 1.0
FIRST_REST_S = 60.0
LONGEST_REST_S = 3600.0
MOST_ADDRESSES = 2048
"""How many are remembered; over that, the one heard of longest ago is forgotten."""

_SLACK_S = 0.05
_FIRST_SRTT_S = 0.2
_FIRST_RTTVAR_S = 0.1

Address = tuple[str, int]


@dataclass(slots=True)
class _Known:
    srtt: float | None = None
    rests_until: float = 0.0
    rests: int = 0


class Timing:
    """Round trips by address and over all. Times are seconds of one clock that never goes back."""

    def __init__(self) -> None:
        # Insertion order is the order in which addresses were heard of.
        self._known: OrderedDict[Address, _Known] = OrderedDict()
        self._srtt = _FIRST_SRTT_S
        self._rttvar = _FIRST_RTTVAR_S

    def answered(self, address: Address, rtt: float | None) -> None:
        """It answered after `rtt` seconds; None when it was asked twice, and nobody knows which of them it answers."""
        known = self._remember(address)
        known.rests = 0
        known.rests_until = 0.0
        if rtt is None:
            return
        known.srtt = rtt if known.srtt is None else known.srtt + (rtt - known.srtt) / 4
        self._rttvar += (abs(rtt - self._srtt) - self._rttvar) / 16
        self._srtt += (rtt - self._srtt) / 16

    def silent(self, address: Address, now: float) -> None:
        """It let the hard limit pass: it rests for 60 s, then 120 s, 240 s, at most an hour."""
        known = self._remember(address)
        if known.rests_until > now:
            return  # several questions at once, one silence
        known.rests_until = now + min(LONGEST_REST_S, FIRST_REST_S * 2**known.rests)
        known.rests = min(known.rests + 1, 16)

    def rests(self, address: Address, now: float) -> bool:
        """Whether it is better not to ask it."""
        known = self._known.get(address)
        return known is not None and known.rests_until > now

    def soft_limit(self, address: Address) -> float:
        """Seconds after which to send again and to ask somebody else beside; 0.05 to 1."""
        known = self._known.get(address)
        if known is not None and known.srtt is not None:
            limit = 2 * known.srtt + _SLACK_S
        else:
            limit = self._srtt + 3 * self._rttvar
        return min(MOST_SOFT_S, max(LEAST_SOFT_S, limit))

    def _remember(self, address: Address) -> _Known:
        known = self._known.get(address)
        if known is None:
            known = self._known[address] = _Known()
            if len(self._known) > MOST_ADDRESSES:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(address)
        return known
