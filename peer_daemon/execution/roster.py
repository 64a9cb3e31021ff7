"""Whether a peer believes a roster, and where it finds the members (pure)."""

from __future__ import annotations

from functools import lru_cache

from axonp2p.errors import MalformedMessage, StaleRow
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.jobs.messages import Member, SetRoster
from axonp2p.reservation.token import LONGEST_S
from axonp2p.table.records import decode_own_row
from axonp2p.transport.mesh.link import MeshMember

# Each roster of a job names the same members again.
_opened = lru_cache(maxsize=512)(decode_own_row)


def read_roster(roster: SetRoster, *, peer: PeerId, reservation: str, epoch: int, now: float) -> list[MeshMember]:
    """The members of a roster that `peer` may believe: heard under `reservation`, after one of `epoch`.

    It gives this peer its own place, names nobody twice, and is newer. Where a member is found is the member's own
    signed word, not older than the longest lease; `now` is Unix time. Raises `MalformedMessage`, `BadSignature` or
    `StaleRow`.
    """
    members = {member.rank: _member(member, now) for member in roster.members}
    mine = members.get(roster.rank)
    if mine is None or (mine.peer, mine.reservation) != (peer, reservation):
        raise MalformedMessage("a roster on which this peer does not have the rank that it is given")
    if len(members) != len(roster.members) or len({member.peer for member in members.values()}) != len(members):
        raise MalformedMessage("a roster with the same rank or peer twice")
    if roster.epoch <= epoch:
        raise MalformedMessage(f"a roster of epoch {roster.epoch} after one of epoch {epoch}")
    return list(members.values())


def _member(member: Member, now: float) -> MeshMember:
    row = _opened(member.row)
    if row.expires < now - LONGEST_S:
        raise StaleRow(f"the row of {short(row.peer)} on a roster is older than any lease")
    return MeshMember(
        rank=member.rank,
        peer=row.peer,
        name=row.name,
        addresses=row.addresses,
        certificate=row.certificate,
        reservation=member.reservation,
        relays=row.relays,
        dialable=row.dialable,
    )
