"""Whom this peer lends a slot to, and until when (pure).

A lease lives from its token until the first of: the client ends it, the client's session ends (there is no grace yet:
nothing could be resumed on a session that is gone), the token expires, the daemon stops. Its slot is free again only
when its worker is gone, however late that is.
"""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.errors import Busy, Refused
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.messages import TakeLease
from axonp2p.peers.capability import Capability
from axonp2p.reservation.calendar import Calendar
from axonp2p.reservation.token import Caller, Token, check_token
from axonp2p.wire.codec import decode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed

SESSION_GRACE_S = 0
"""How long a lease outlives its session, in seconds."""


@dataclass(frozen=True)
class Lease:
    """A slot, lent. Memory and disk in MiB, `until` in Unix seconds."""

    reservation: str
    issuer: PeerId
    """Who signed the token: a tracker, or this peer itself."""
    peer: PeerId
    client: PeerId
    job: str
    until: int
    cores: int
    memory_mb: int
    disk_mb: int
    token: bytes
    """As the client showed it: receipts are handed in with it where the issuer is not the one who keeps them."""


class Leases:
    """Every lease of this peer, and the rules by which it gives another."""

    def __init__(self, peer: PeerId, offer: Capability, *, check_address: bool) -> None:
        self._peer = peer
        self._offer = offer
        self._check_address = check_address
        self._calendar = Calendar(offer.slots)
        self._living: dict[str, Lease] = {}
        self._issuers: frozenset[PeerId] = frozenset()

    def trust(self, issuer: PeerId) -> None:
        """Accept tokens of this tracker from now on, or of the peer itself."""
        self._issuers |= {issuer}

    def take(self, ask: TakeLease, caller: Caller, now: float) -> Lease:
        """The lease that `ask` gives to `caller` at `now`; the slot is held until `ended`.

        Raises `TokenRefused`, `Busy`, `Refused`, and what decoding and opening a token raise. Nothing is changed then.
        """
        token = self._token(ask, caller, now)
        if self._offer.refuses:
            raise Refused(f"this peer takes no work: {self._offer.refuses}")
        if ask.cores > self._offer.cores:
            raise Refused(f"this peer lends {self._offer.cores} of the {ask.cores} cores asked for")
        if ask.memory_mb > self._offer.memory_mb:
            raise Refused(f"this peer lends {self._offer.memory_mb} of the {ask.memory_mb} MiB memory asked for")
        self._calendar.expire(now)
        if token.uuid in self._living:
            raise Busy("the reservation is in use: its lease still lives", fix="end that lease, or reserve again")
        if len(self._living) >= self._offer.slots:  # a lease whose time is over, but whose worker is not gone yet
            raise Busy(f"every slot is taken ({self._offer.slots} in all)")
        self._calendar.hold(token.uuid, token.client, now, token.expires)
        lease = Lease(
            reservation=token.uuid,
            issuer=token.issuer,
            peer=self._peer,
            client=token.client,
            job=ask.job,
            until=token.expires,
            cores=ask.cores,
            # A job that asks for nothing gets what there is: a limit of 0 would kill it at once.
            memory_mb=ask.memory_mb or self._offer.memory_mb,
            disk_mb=self._offer.disk_mb,
            token=ask.token,
        )
        self._living[lease.reservation] = lease
        return lease

    def ended(self, lease: Lease) -> None:
        """The worker of `lease` and its files are gone."""
        if self._living.pop(lease.reservation, None) is not None:
            self._calendar.release(lease.reservation)

    def free(self) -> int:
        """Slots that nobody holds."""
        return self._offer.slots - len(self._living)

    def _token(self, ask: TakeLease, caller: Caller, now: float) -> Token:
        signed: Signed[Token] = decode(ask.token, Signed[Token], Token.LIMIT + ENVELOPE_OVERHEAD)
        return check_token(
            signed,
            caller,
            peer=self._peer,
            trusted_issuers=self._issuers,
            kind=ask.kind,
            now=now,
            check_address=self._check_address,
        )
