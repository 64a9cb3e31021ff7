"""The sides of a lease: the promise that it was taken on, and the listener that is told what the peer says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from axonp2p.jobs.messages import OwnersMessage
from axonp2p.reservation.token import Token
from axonp2p.wire.envelope import Signed


class LeaseListener(Protocol):
    """The listener that is told what a leased peer says."""

    async def worker_said(self, rank: int, payload: memoryview, signature: bytes) -> None:
        """The worker's words, some with its daemon's signature; awaited before more is read, which slows down a peer
        that says too much. May raise `PeerMisbehaved`."""
        ...

    def receipt_signed(self, rank: int, receipt: bytes) -> None:
        """A counter-signed receipt came back."""
        ...

    def receipt_refused(self, rank: int, reason: str) -> None:
        """The peer does not sign a receipt that it was asked for; the lease goes on."""
        ...

    async def link_lost(self, rank: int, other: int, reason: str) -> None:
        """The peer cannot reach the member with the rank `other`."""
        ...

    def line_measured(self, rank: int, upload: int, download: int) -> None:
        """How fast the peer's line was of late, in bytes a second."""
        ...

    def owner_says(self, rank: int, message: OwnersMessage) -> None:
        """The peer's owner needs the machine, or needs it no longer; said when it changes."""
        ...

    def peer_gone(self, rank: int, reason: str) -> None:
        """The worker has ended or the peer is away; said once."""
        ...


@dataclass(frozen=True)
class Reservation:
    """A reservation: the token for some peers, and who issued it."""

    uuid: str
    token: Signed[Token]
    issued_by: str
    """`tracker HOST:PORT`, or `peer NAME` when the peer gave it for itself."""
    tracker: str
    """The address of the tracker that issued it; empty when a peer did."""
