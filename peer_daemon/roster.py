"""Whether a peer believes a roster (pure)."""

from __future__ import annotations

from axonp2p.errors import MalformedMessage
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.messages import SetRoster


def check_roster(roster: SetRoster, *, peer: PeerId, reservation: str, epoch: int) -> None:
    """Raise `MalformedMessage` unless `peer` may believe what it heard under `reservation` after one of `epoch`.

    It gives this peer its own place, names nobody twice, and is newer.
    """
    members = {member.rank: member for member in roster.members}
    mine = members.get(roster.rank)
    if mine is None or (mine.peer, mine.reservation) != (peer, reservation):
        raise MalformedMessage("a roster on which this peer does not have the rank that it is given")
    if len(members) != len(roster.members) or len({member.peer for member in roster.members}) != len(members):
        raise MalformedMessage("a roster with the same rank or peer twice")
    if roster.epoch <= epoch:
        raise MalformedMessage(f"a roster of epoch {roster.epoch} after one of epoch {epoch}")
