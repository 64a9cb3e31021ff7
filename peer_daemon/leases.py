"""Whom this peer lends a slot to, and until when (pure).

A lease lives from its token until the first of: the client ends it, the client's session ends (and it does not come
back within the grace that it asked for), the token expires, the owner takes the machine back, the daemon
stops. Its slot is free again only when its worker is gone, however late that is. A daemon that was killed keeps the
slots of its leases for their clients for a while when it is started again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from axonp2p.errors import Busy, Refused
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.messages import TakeLease
from axonp2p.peers.capability import Capability
from axonp2p.reservation.calendar import Calendar
from axonp2p.reservation.token import Caller, Token, check_token
from axonp2p.wire.codec import decode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from axonp2p.wire.schema import check_schema
from peer_daemon.lending import Lending

MOST_GRACE_S = 600
"""For how long at most a worker waits for a client that is away: its memory is the volunteer's."""
RETURN_WITHIN_S = 60
"""How long after a crash of this daemon a slot waits for the client that had it."""


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
    datasets: tuple[str, ...] = ()
    """Names of the volunteer's data that the job may read."""
    taken_at: float = 0.0
    """Unix seconds."""
    grace_s: int = 0
    """How long its worker waits for a client that is away."""


@dataclass(frozen=True)
class Interrupted:
    """What is kept of a lease over a crash. `until` in Unix seconds."""

    reservation: str
    client: PeerId
    until: int


class Leases:
    """Every lease of this peer, and the rules by which it gives another."""

    def __init__(self, peer: PeerId, lending: Lending, *, check_address: bool) -> None:
        self._peer = peer
        self._lending = lending
        self._check_address = check_address
        self._calendar = Calendar(lending.offer.slots)
        self._living: dict[str, Lease] = {}
        self._interrupted: dict[str, PeerId] = {}
        self._issuers: frozenset[PeerId] = frozenset()
        self.trackers: Callable[[float], frozenset[PeerId]] = lambda now: frozenset()
        """The trackers whose tokens are accepted at a moment (Unix seconds)."""

    def interrupted(self, leases: Iterable[Interrupted], now: float) -> None:
        """These lived when the daemon was killed: for a minute nobody else gets their slots."""
        for lease in leases:
            until = min(lease.until, now + RETURN_WITHIN_S)
            if until > now and len(self._interrupted) < self._calendar.slots:
                self._calendar.hold(lease.reservation, lease.client, now, until)
                self._interrupted[lease.reservation] = lease.client

    def living(self) -> list[Lease]:
        """Those that were taken and have not ended."""
        return list(self._living.values())

    def slots_changed(self) -> None:
        """The owner lends more slots, or fewer; no lease ends by that."""
        self._calendar.slots = self._lending.offer.slots

    def trust(self, issuer: PeerId) -> None:
        """Accept tokens of this issuer from now on: the peer itself, say."""
        self._issuers |= {issuer}

    def take(self, ask: TakeLease, caller: Caller, now: float) -> Lease:
        """The lease that `ask` gives to `caller` at `now`; the slot is held until `ended`.

        Raises `VersionMismatch`, `TokenRefused`, `Busy`, `Refused`, and what decoding and opening a token raise.
        Nothing is changed then.
        """
        token = self._token(ask, caller, now)
        offer = self._lending.offer
        _check_offer(offer, ask)
        self._forget_over(now)
        if token.uuid in self._living:
            raise Busy("the reservation is in use: its lease still lives", fix="end that lease, or reserve again")
        if len(self._living) >= offer.slots:  # a lease whose time is over, but whose worker is not gone yet
            raise Busy(f"every slot is taken ({offer.slots} in all)")
        if self._interrupted.get(token.uuid) == token.client:
            del self._interrupted[token.uuid]
            self._calendar.release(token.uuid)
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
            memory_mb=ask.memory_mb or offer.memory_mb,
            disk_mb=offer.disk_mb,
            token=ask.token,
            datasets=tuple(ask.datasets),
            taken_at=now,
            grace_s=min(ask.grace, MOST_GRACE_S),
        )
        self._living[lease.reservation] = lease
        return lease

    def returning(self, ask: TakeLease, caller: Caller, now: float) -> Lease | None:
        """The lease that lives already for this client's token and job. Raises what a token is refused with."""
        token = self._token(ask, caller, now)
        lease = self._living.get(token.uuid)
        return lease if lease and (lease.client, lease.job) == (token.client, ask.job) else None

    def ended(self, lease: Lease) -> None:
        """The worker of `lease` and its files are gone."""
        if self._living.pop(lease.reservation, None) is not None:
            self._calendar.release(lease.reservation)

    def free(self, now: float) -> int:
        """Slots that nobody holds."""
        self._forget_over(now)
        return max(0, self._lending.offer.slots - len(self._living) - len(self._interrupted))

    def _forget_over(self, now: float) -> None:
        for over in self._calendar.expire(now):
            self._interrupted.pop(over.lease, None)

    def _token(self, ask: TakeLease, caller: Caller, now: float) -> Token:
        check_schema(ask.schema, "the client")
        signed: Signed[Token] = decode(ask.token, Signed[Token], Token.LIMIT + ENVELOPE_OVERHEAD)
        return check_token(
            signed,
            caller,
            peer=self._peer,
            trusted_issuers=self._issuers | self.trackers(now),
            kind=ask.kind,
            now=now,
            check_address=self._check_address,
        )


def _check_offer(offer: Capability, ask: TakeLease) -> None:
    """Raise `Refused` for a job that wants more than is lent."""
    if offer.refuses:
        raise Refused(f"this peer takes no work: {offer.refuses}")
    if ask.cores > offer.cores:
        raise Refused(f"this peer lends {offer.cores} of the {ask.cores} cores asked for")
    if ask.memory_mb > offer.memory_mb:
        raise Refused(f"this peer lends {offer.memory_mb} of the {ask.memory_mb} MiB memory asked for")
    if missing := set(ask.datasets) - set(offer.datasets):
        raise Refused(f"this peer does not offer the data {', '.join(sorted(missing))}")
