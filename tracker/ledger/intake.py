"""The rules for the entries of a tracker's log, and for those of them that count as earned here: each in one place.

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
from axonp2p.transport.flow.rate_limit import RateLimit, charge_all

DAY_S = 86400.0
STRANGERS_A_DAY_OF_ONE = 5000
"""New receipts on the tokens of nobody whom this tracker trusts, by the household that pushes them: one every 17 s."""
STRANGERS_A_DAY = 100_000
"""The same in all: 90 MB of log a day at the most."""
CHECKED_A_SECOND_OF_ONE, CHECKED_AT_ONCE_OF_ONE = 200.0, 4000.0
"""Receipts and tokens of one household whose signatures are looked at: a fiftieth of a core, and a day's backlog."""
NEW_A_SECOND_OF_ONE, NEW_AT_ONCE_OF_ONE = 20.0, 50_000.0
"""New receipts on reservations of this tracker or a trusted one, by household: a hundred machines with a round every
five seconds. A key, its row and its reservations cost nothing, and an entry stays for good."""
CONVICTIONS_A_DAY_OF_ONE = 50
CONVICTIONS_A_DAY = 2000
"""Each may come with 208 KiB of evidence, which stays for good."""
_EVERYBODY = "everybody"
RECEIPTS_A_SECOND = 4
"""Of one peer, for each second of its reservation: no round is shorter for long."""
RECEIPTS_AT_ONCE = 100
"""A reservation of seconds has so many all the same."""
FASTER_THAN_MEASURED = 4.0
"""Speed is measured in float32; narrower floats on one machine come to about so much more."""
UNMEASURED_GFLOPS = 100.0
"""The speed that a machine without a row here, or with one that names none, is taken to have."""


@dataclass(frozen=True)
class ListedMachine:
    """A peer as this tracker's table has it."""

    known: bool
    """Whether there is a row of it, be it withdrawn."""
    offer: Capability | None
    """Its offer, while its row is valid."""


@dataclass(frozen=True)
class TrackerTrust:
    """The trackers that this one believes when they say that a reservation was given, and what it knows of others."""

    own: PeerId = ""
    trusted: Callable[[PeerId], bool] = lambda tracker: False
    """Whether a tracker is configured here, or vouched for."""
    known: Callable[[PeerId], bool] = lambda tracker: False
    """Whether a tracker stands in the book at all."""
    machine: Callable[[PeerId], ListedMachine] = lambda peer: ListedMachine(known=False, offer=None)
    """Called on the event loop; the others from any thread."""

    def vouches(self, issuer: PeerId) -> bool:
        """Whether it knows that this issuer gives reservations of machines that are there."""
        return issuer == self.own or self.trusted(issuer)

    def stands(self, issuer: PeerId, client: PeerId, peer: PeerId) -> bool:
        """Whether what is signed under a reservation of this issuer's counts as earned."""
        return issuer not in (client, peer) and self.vouches(issuer)


NOBODY = TrackerTrust()


class Budget:
    """The limits on checks, and on additions to the log, for each household, or log, that shows receipts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._checks = RateLimit(CHECKED_A_SECOND_OF_ONE, CHECKED_AT_ONCE_OF_ONE)
        self._reserved = RateLimit(NEW_A_SECOND_OF_ONE, NEW_AT_ONCE_OF_ONE)
        self._of_one = RateLimit(STRANGERS_A_DAY_OF_ONE / DAY_S, STRANGERS_A_DAY_OF_ONE)
        self._in_all = RateLimit(STRANGERS_A_DAY / DAY_S, STRANGERS_A_DAY)
        self._convictions = RateLimit(CONVICTIONS_A_DAY_OF_ONE / DAY_S, CONVICTIONS_A_DAY_OF_ONE)
        self._all_convictions = RateLimit(CONVICTIONS_A_DAY / DAY_S, CONVICTIONS_A_DAY)

    def charge_checks(self, source: str, signed: int) -> None:
        """So many receipts and tokens are to be checked for this source. Raises `TooOften`. For the event loop."""
        if source:
            self._checks.charge(source, self._clock.monotonic(), signed)

    def charge_new(self, source: str, reserved: int, strangers: int) -> None:
        """So many receipts are new, on reservations of trusted trackers and on others; all of them or none count.

        Raises `TooOften`. For the thread that writes.
        """
        if not source:
            return
        try:
            charge_all(
                [
                    (self._reserved, source, reserved),
                    (self._of_one, source, strangers),
                    (self._in_all, _EVERYBODY, strangers),
                ],
                self._clock.monotonic(),
            )
        except TooOften as error:
            raise TooOften(
                "too many receipts, of which few may be on reservations of trackers that this one does not trust",
                fix="hand them in later, or to the tracker that gave the reservations",
                wait_s=min(error.wait_s, 3600.0),
            ) from error

    def charge_conviction(self, source: str) -> None:
        """One more that this source is the first to show. Raises `TooOften`. For the thread that writes."""
        if not source:
            return
        try:
            charge_all(
                [(self._convictions, source, 1), (self._all_convictions, _EVERYBODY, 1)], self._clock.monotonic()
            )
        except TooOften as error:
            fix = "hand it in later, or to another tracker"
            raise TooOften("too many convictions", fix=fix, wait_s=min(error.wait_s, 3600.0)) from error


def check_stranger(trust: TrackerTrust, issuer: PeerId, receipt: Receipt, machine: ListedMachine) -> None:
    """Raise `Refused` unless something speaks for a receipt whose reservation nobody gave that this tracker trusts."""
    if not (trust.known(issuer) or machine.known):
        raise Refused(why_unknown(issuer, receipt.peer))


def why_unknown(issuer: PeerId, peer: PeerId) -> str:
    """The reason that the sender of such a receipt is told."""
    return (
        f"its reservation is of {short(issuer)}, which is no tracker that this one knows,"
        f" and {short(peer)} has no row here"
    )


def check_number(receipt: Receipt, token: Token) -> None:
    """Raise `Refused` for more receipts than the reservation's time has rounds."""
    most = RECEIPTS_AT_ONCE + RECEIPTS_A_SECOND * max(0, token.expires - token.not_before)
    if receipt.number > most:
        raise Refused(f"receipt number {receipt.number} of a reservation that has time for {most}")


def most_flops(token: Token, gflops: float, slots: int) -> int:
    """The FLOPs that a machine of this speed may have done within a reservation, with all of its slots."""
    seconds = max(0, token.expires - token.not_before)
    return min(2**62, int(FASTER_THAN_MEASURED * gflops * 1e9 * max(1, slots) * seconds))
