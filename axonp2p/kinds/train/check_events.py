"""The events of checks: whose work was done again by whom, and what came of it."""

from __future__ import annotations

from typing import Literal

from axonp2p.client.events.event import Event
from axonp2p.wire.quantities import Count, Number

CheckOutcome = Literal["passed", "convicted", "unlike", "undecided", "withheld"]


class WorkChecked(Event, frozen=True):
    """Some local steps of a peer were done again by others, from what it had committed to."""

    peer: str
    """The peer whose work it was."""
    by: list[str]
    """In the order in which they were asked."""
    round: Count
    """From 0."""
    first: Count
    """How many steps of the round came before them."""
    last: Count
    """After how many they end."""
    outcome: CheckOutcome
    """docs/trust.md says what each means."""
    distance: Number
    """Of what it said from where the first one was led, as a share of the movement; 0: equal to the bit."""
    step: Number
    """The distance if one of the steps had been left out, measured in the same way."""
    convicted: list[str]
    """The peers that lied: that one, or one of those asked. They get no more receipts or work from this client."""
    flops: Count
    """Spent on it."""


class ChecksAwaited(Event, frozen=True):
    """All rounds are trained; checks of the last one are waited for before it is paid for."""

    checks: Count
    """How many."""


class ChecksUnended(Event, frozen=True):
    """The job ended although some checks had not."""

    checks: Count
    """How many."""
    reason: str


class ChecksOff(Event, frozen=True):
    """The work of this job cannot be checked."""

    reason: str


class PeerUnchecked(Event, frozen=True):
    """Nobody else in this job can do the steps of this peer again. Told of each peer once."""

    peer: str
    reason: str


class NothingLearnt(Event, frozen=True):
    """Local steps of peers ended with the very weights that they began with. Told of each peer once."""

    round: Count
    """From 0."""
    legs: dict[str, Count]
    """By peer: in how many of the round's legs."""
