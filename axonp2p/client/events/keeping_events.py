"""The events of a job that is gone on with: what was found of it, and what was not."""

from __future__ import annotations

from axonp2p.client.events.event import Event
from axonp2p.wire.quantities import Count, Number


class FileDamaged(Event, frozen=True):
    """A file of the job's folder was damaged, or not there: it is put aside, and made again from what is known else."""

    name: str
    """Of the file."""
    file: str
    """Where the damaged file is now; empty if there was none."""


class PeersAwaited(Event, frozen=True):
    """Too few peers are there for the job to go on; it keeps what it has, and looks for others."""

    there: Count
    """How many are there."""
    needed: Count
    """How many the job needs at least."""
    seconds: Number
    """For how long it does so."""
    reason: str
