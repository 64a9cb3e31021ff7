"""The events of a job that are owners' doing: peers that stand still, go on, or are wanted back."""

from __future__ import annotations

from axonp2p.client.events.event import Event
from axonp2p.wire.quantities import Count


class PeerPaused(Event, frozen=True):
    """The peer's owner needs the machine: its worker is frozen, and later continues or is handed back."""

    peer: str
    reason: str


class PeerResumed(Event, frozen=True):
    """Its worker continues."""

    peer: str


class PeerHandedBack(Event, frozen=True):
    """The peer's owner takes the machine back. It ends the round that runs where there is time, and leaves then."""

    peer: str
    reason: str
    round: Count
    """The one that runs, from 0."""


class JobWaiting(Event, frozen=True):
    """Without these paused peers fewer than `min-peers` are left: no deadline passes until one of them continues."""

    peers: list[str]


class JobGoesOn(Event, frozen=True):
    """The job waits for no paused peer any more."""
