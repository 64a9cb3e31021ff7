"""The events of a job that is gone on with: what was found of it, and what was not."""

from __future__ import annotations

from axonp2p.client.events.event import Event
from axonp2p.wire.quantities import Count, Number


class StateFound(Event, frozen=True):
    """The job goes on from here."""

    round: Count
    """How many rounds are done."""
    rounds: Count
    waiting: list[str] = []
    """Peers that waited, and hold what these rounds led to."""


class FileDamaged(Event, frozen=True):
    """A file of the job's folder was damaged, or not there: it is put aside, and made again from what is known else."""

    name: str
    file: str
    """Where the damaged one lies now; empty when there was none."""


class StateDamaged(Event, frozen=True):
    """A state on this disk is not what its name or the books say: it is put aside, and the one before is used."""

    round: Count
    """How many rounds were in it."""
    file: str
    """Where it lies now."""


class PeersAwaited(Event, frozen=True):
    """Too few peers are there for the job to go on; it keeps what it has, and looks for others."""

    there: Count
    needed: Count
    seconds: Number
    """For how long it does so."""
    reason: str


class RoundsLost(Event, frozen=True):
    """These rounds were in the books, but no state after them is left: they are trained again."""

    first: Count
    """From 0."""
    last: Count
