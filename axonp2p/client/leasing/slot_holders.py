"""Who holds the slots that a job lacks: this client's own jobs are named before others. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from axonp2p.errors import NobodyFits
from axonp2p.identity.peer_id import PeerId


@dataclass(frozen=True)
class SlotHolder:
    """A job of this client that holds leases, as far as its folder tells."""

    job: str
    peers: frozenset[PeerId]
    """Where."""
    runs: bool
    """Whether a program works on it. One that was killed holds its slots until its peers have waited long enough."""


def with_holders(error: NobodyFits, taken: Collection[PeerId], holders: Sequence[SlotHolder]) -> NobodyFits:
    """The error that names the jobs of this client which hold some of the `taken` slots, and what gives them back."""
    ours = [(holder, len(holder.peers.intersection(taken))) for holder in holders]
    ours = sorted((one for one in ours if one[1]), key=lambda one: (one[0].runs, one[0].job))
    if not ours:
        return error
    held = " and ".join(
        f"{count} by your own job {holder.job}, {'which runs' if holder.runs else 'whose program is dead'}"
        for holder, count in ours
    )
    return NobodyFits(error.message, cause=f"{error.cause}; of the slots {held}", fix=_fix([one[0] for one in ours]))


def _fix(holders: Sequence[SlotHolder]) -> str:
    first = holders[0]
    if first.runs:
        return f"axon watch {first.job} shows how far it is; axon submit DIR --wait 10min waits for it"
    return f"axon resume {first.job} continues it, axon cancel {first.job} gives its slots back at once"
