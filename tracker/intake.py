"""What a tracker takes into its log, and what of that counts as earned here: each rule in one place.

A log is never made smaller and every tracker copies it, so an entry has a price: a reservation that this tracker or a
trusted one gave, or a machine that this tracker knows and one of the few places a day that strangers have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from axonp2p.clock import Clock
from axonp2p.errors import Refused, TooOften
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.receipt import Receipt
from axonp2p.peers.capability import Capability
from axonp2p.reservation.token import Token
from axonp2p.transport.rate_limit import RateLimit

DAY_S = 86400.0
STRANGERS_A_DAY_OF_ONE = 5000
"""New receipts on the tokens of nobody whom this tracker trusts, by the household that pushes them: one every 17 s."""
STRANGERS_A_DAY = 100_000
"""The same in all: 90 MB of log a day at the most."""
RECEIPTS_A_SECOND = 4
"""Of one peer, for each second of its reservation: no round is shorter for long."""
RECEIPTS_AT_ONCE = 100
"""A reservation of seconds has so many all the same."""
FASTER_THAN_MEASURED = 4.0
"""Speed is measured in float32; narrower floats on one machine come to about so much more."""
UNMEASURED_GFLOPS = 100.0
"""What a machine without a row here is taken for."""


@dataclass(frozen=True)
class Machine:
    """A peer as this tracker's table has it."""

    known: bool
    """Whether there is a row of it, be it withdrawn."""
    offer: Capability | None
    """What it offers, while its row is valid."""


@dataclass(frozen=True)
class Trust:
    """Whom this tracker believes that a reservation was given, and what it knows of others."""

    own: PeerId = ""
    trusted: Callable[[PeerId], bool] = lambda tracker: False
    """Whether a tracker is configured here, or vouched for."""
    known: Callable[[PeerId], bool] = lambda tracker: False
    """Whether a tracker stands in the book at all."""
    machine: Callable[[PeerId], Machine] = lambda peer: Machine(known=False, offer=None)
    """Called on the event loop; the others from any thread."""

    def vouches(self, issuer: PeerId) -> bool:
        """Whether it knows that this issuer gives reservations of machines that are there."""
        return issuer == self.own or self.trusted(issuer)

    def stands(self, issuer: PeerId, client: PeerId, peer: PeerId) -> bool:
        """Whether what is signed under a reservation of this issuer's counts as earned."""
        return issuer not in (client, peer) and self.vouches(issuer)


NOBODY = Trust()


class Budget:
    """What strangers may add to the log. One thread at a time uses it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of_one = RateLimit(STRANGERS_A_DAY_OF_ONE / DAY_S, STRANGERS_A_DAY_OF_ONE)
        self._in_all = RateLimit(STRANGERS_A_DAY / DAY_S, STRANGERS_A_DAY)

    def charge(self, source: str) -> None:
        """One more receipt that this source is the first to show. Raises `TooOften`."""
        now = self._clock.monotonic()
        try:
            self._of_one.charge(source, now)
            self._in_all.charge("everybody", now)
        except TooOften as error:
            raise TooOften(
                "too many receipts on reservations of trackers that this one does not trust",
                fix="hand them in later, or to the tracker that gave the reservations",
                wait_s=min(error.wait_s, 3600.0),
            ) from error


def check_stranger(trust: Trust, issuer: PeerId, receipt: Receipt, machine: Machine) -> None:
    """Raise `Refused` unless something speaks for a receipt whose reservation nobody gave that this tracker trusts."""
    if not (trust.known(issuer) or machine.known):
        raise Refused(
            f"its reservation is of {short(issuer)}, which is no tracker that this one knows,"
            f" and {short(receipt.peer)} has no row here"
        )


def check_number(receipt: Receipt, token: Token) -> None:
    """Raise `Refused` for more receipts than the reservation's time has rounds."""
    most = RECEIPTS_AT_ONCE + RECEIPTS_A_SECOND * max(0, token.expires - token.not_before)
    if receipt.number > most:
        raise Refused(f"receipt number {receipt.number} of a reservation that has time for {most}")


def most_flops(token: Token, gflops: float, slots: int) -> int:
    """What a machine of this speed may have done within a reservation, with all of its slots."""
    seconds = max(0, token.expires - token.not_before)
    return min(2**62, int(FASTER_THAN_MEASURED * gflops * 1e9 * max(1, slots) * seconds))
