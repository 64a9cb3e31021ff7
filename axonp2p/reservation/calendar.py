"""A calendar of slots: what is promised to whom, from when until when. It never promises a slot twice.

Pure: times are Unix seconds that the caller passes in. A hold covers its start, not its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.errors import Busy
from axonp2p.identity.peer_id import PeerId


@dataclass(frozen=True)
class Hold:
    """One slot, promised to a client."""

    lease: str
    client: PeerId
    start: float
    end: float


class Calendar:
    """The promises on `slots` equal slots."""

    def __init__(self, slots: int) -> None:
        if slots < 0:
            raise ValueError("a calendar has no less than 0 slots")
        self.slots = slots
        self._holds: dict[str, Hold] = {}

    def hold(self, lease: str, client: PeerId, start: float, end: float) -> Hold:
        """Promise a slot to `client` from `start` until `end`, under the name `lease` (a reservation's UUID).

        Raises `Busy` when the name is in use, by whomever, or when every slot is promised at some moment between.
        """
        if not start < end:
            raise ValueError("a hold ends after it starts")
        if lease in self._holds:
            raise Busy("the reservation is in use: its lease has not ended", fix="end that lease, or reserve again")
        if self._most_promised(start, end) >= self.slots:
            raise Busy(f"every slot is taken ({self.slots} in all)")
        held = Hold(lease, client, start, end)
        self._holds[lease] = held
        return held

    def release(self, lease: str) -> None:
        """Forget a promise; one that is not there is no mistake."""
        self._holds.pop(lease, None)

    def expire(self, now: float) -> list[Hold]:
        """Forget the promises that ended, and return them."""
        over = [held for held in self._holds.values() if held.end <= now]
        for held in over:
            del self._holds[held.lease]
        return over

    def free(self, now: float) -> int:
        """How many slots nobody holds at `now`."""
        return max(0, self.slots - self._promised_at(now))

    def _most_promised(self, start: float, end: float) -> int:
        # The count only grows where a hold starts, so it is largest at `start` or at one of the starts after it.
        moments = [start, *(held.start for held in self._holds.values() if start < held.start < end)]
        return max(self._promised_at(moment) for moment in moments)

    def _promised_at(self, moment: float) -> int:
        return sum(held.start <= moment < held.end for held in self._holds.values())
