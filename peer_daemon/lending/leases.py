"""The clients that this peer lends slots to, and until when (pure).

A lease lives from its token until the first of: the client ends it, the client's session ends (and it does not come
back within the grace that it asked for), the token expires, the owner takes the machine back, the daemon
stops. Its slot is free again only when its worker is gone, however late that is. A daemon that was killed keeps the
slots of its leases for their clients for a while when it is started again.

Where all slots are lent, a lease under which nothing is done (`lease_progress`) gives way to a new one. A client that
held one for nothing waits for the next one, each time twice as long; one that did not pay for work waits for an hour.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from axonp2p.errors import Busy, Refused, TokenRefused, TooOften
from axonp2p.holdings import Bounds, Holdings
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.messages import TakeLease
from axonp2p.peers.capability import Capability, Gpu
from axonp2p.reservation.calendar import Calendar
from axonp2p.reservation.token import USED_WITHIN_S, Token, TokenHolder, check_token
from axonp2p.sandbox.gpu_access import GpuAccess
from axonp2p.transport.address import source_of
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.codec import decode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from axonp2p.wire.schema import check_schema
from peer_daemon.lending.lending import Lending
from peer_daemon.lending.lent_gpus import GpuAssignment, LentGpu

MOST_GRACE_S = 600
"""For how long at most a worker waits for a client that is away: its memory is the volunteer's."""
RETURN_WITHIN_S = 60
"""How long after a crash of this daemon a slot waits for the client that had it."""
LEAST_AGE_S = 60.0
"""For how long a lease keeps its slot without anything being done under it, when others want it."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 3600.0
"""For how long a client, and all of its household, get no lease after one that was not worked: others find the slot
free meanwhile. Doubled each time, until a receipt comes; the longest at once for work that was not paid for."""
_MOST_REMEMBERED = 1024


@dataclass(frozen=True)
class LentSlot:
    """A slot, lent. Memory and disk in MiB, `until` in Unix seconds."""

    reservation: str
    issuer: PeerId
    """The signer of the token: a tracker, or this peer itself."""
    peer: PeerId
    client: PeerId
    job: str
    kind: str
    """Of `jobs.kinds.KINDS`: says which program the worker is."""
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
    source: str = ""
    """The household that its client called from."""
    instead_of: tuple[str, ...] = ()
    """Reservations whose leases give way to it: its worker starts when theirs are gone."""
    gpu: GpuAccess | None = None
    """The card that it has for itself."""


@dataclass(frozen=True)
class Interrupted:
    """The record of a lease that outlives a crash. `until` in Unix seconds."""

    reservation: str
    client: PeerId
    kind: str
    until: int


@dataclass(frozen=True)
class _Pause:
    """For whom held a slot for nothing."""

    seconds: float
    until: float


class Leases:
    """Every lease of this peer, and the rules by which it gives another."""

    def __init__(self, peer: PeerId, lending: Lending, *, check_address: bool) -> None:
        self._peer = peer
        self._lending = lending
        self._check_address = check_address
        self._calendar = Calendar(lending.offer.slots)
        self._living: dict[str, LentSlot] = {}
        self._places: Holdings[str] = Holdings("leases", _bounds(lending.offer.slots))
        self._used: dict[str, None] = {}
        self._pauses: OrderedDict[str, _Pause] = OrderedDict()
        self._interrupted: dict[str, PeerId] = {}
        self._issuers: frozenset[PeerId] = frozenset()
        self.gpus = GpuAssignment()
        """The cards that jobs may have, and which lease has which."""
        self.trackers: Callable[[float], frozenset[PeerId]] = lambda now: frozenset()
        """The trackers whose tokens are accepted at a moment (Unix seconds)."""

    def interrupted(self, leases: Iterable[Interrupted], now: float) -> None:
        """These lived when the daemon was killed: for a minute nobody else gets their slots.

        Those of a kind that the owner lends for no more wait for nobody.
        """
        for lease in leases:
            until = min(lease.until, now + RETURN_WITHIN_S)
            lent_for = lease.kind in self._lending.offer.kinds
            if lent_for and until > now and len(self._interrupted) < self._calendar.slots:
                self._calendar.hold(lease.reservation, lease.client, now, until)
                self._interrupted[lease.reservation] = lease.client
                self._places.take(lease.reservation, "", "", now)
                self._places.works(lease.reservation)

    def living(self) -> list[LentSlot]:
        """Those that were taken and have not ended."""
        return list(self._living.values())

    def slots_changed(self) -> None:
        """The owner lends more slots, or fewer; no lease ends by that."""
        self._calendar.slots = self._lending.offer.slots
        self._places.bounds = _bounds(self._lending.offer.slots)

    def trust(self, issuer: PeerId) -> None:
        """Accept tokens of this issuer from now on: the peer itself, say."""
        self._issuers |= {issuer}

    def take(self, ask: TakeLease, caller: TokenHolder, now: float) -> LentSlot:
        """The lease that `ask` gives to `caller` at `now`; the slot is held until `ended`.

        Raises `VersionMismatch`, `TokenRefused`, `Busy`, `TooOften`, `Refused`, and what decoding and opening a token
        raise. Nothing is changed then.
        """
        token = self._token(ask, caller, now)
        offer, source = self._lending.offer, caller.source or source_of(caller.address)
        _check_offer(offer, ask)
        self._check_pause(token.client, source, now)
        self._forget_over(now)
        if token.uuid in self._living or self._interrupted.get(token.uuid, token.client) != token.client:
            raise Busy("the reservation is in use: its lease has not ended", fix="end that lease, or reserve again")
        self._check_fresh(token, now)
        if self._interrupted.pop(token.uuid, None):
            self._calendar.release(token.uuid)
            self._places.release(token.uuid)
        chosen = self._gpu_for(ask, now)
        going = self._take_place(token, source, now)
        if chosen is not None and chosen[1] and chosen[1] not in going:
            self._places.release(chosen[1])
            going.append(chosen[1])
        for reservation in going:
            self._calendar.release(reservation)
        self._calendar.hold(token.uuid, token.client, now, token.expires)
        lease = LentSlot(
            reservation=token.uuid,
            issuer=token.issuer,
            peer=self._peer,
            client=token.client,
            job=ask.job,
            kind=ask.kind,
            until=token.expires,
            cores=ask.cores,
            # A job that asks for nothing gets what there is: a limit of 0 would kill it at once.
            memory_mb=ask.memory_mb or offer.memory_mb,
            disk_mb=offer.disk_mb,
            token=ask.token,
            datasets=tuple(ask.datasets),
            taken_at=now,
            grace_s=min(ask.grace, MOST_GRACE_S),
            source=source,
            instead_of=tuple(going),
            gpu=chosen[0].access if chosen else None,
        )
        if chosen is not None:
            self.gpus.take(chosen[0].access.uuid, lease.reservation)
        self._living[lease.reservation] = lease
        self._used[token.uuid] = None
        if len(self._used) > _MOST_REMEMBERED:
            del self._used[next(iter(self._used))]
        return lease

    def returning(self, ask: TakeLease, caller: TokenHolder, now: float) -> LentSlot | None:
        """The lease that lives already for this client's token, job and kind.

        Raises what a token is refused with.
        """
        token = self._token(ask, caller, now)
        lease = self._living.get(token.uuid)
        same = lease and (lease.client, lease.job, lease.kind) == (token.client, ask.job, ask.kind)
        return lease if same else None

    def seen(self, lease: LentSlot, idle_s: float, now: float) -> None:
        """Nothing has been done under a living lease for so long; 0: it is worked."""
        if idle_s:
            self._places.waits(lease.reservation, now - idle_s)
        else:
            self._places.works(lease.reservation)

    def ended(self, lease: LentSlot) -> None:
        """The worker of `lease` and its files are gone."""
        if self._living.pop(lease.reservation, None) is not None:
            self._calendar.release(lease.reservation)
            self._places.release(lease.reservation)
            self.gpus.release(lease.reservation)
            for other in self._living.values():
                # One that was to give way for it, and whose worker is not gone.
                if lease.gpu and other.gpu and other.gpu.uuid == lease.gpu.uuid:
                    self.gpus.take(other.gpu.uuid, other.reservation)

    def unworked(self, lease: LentSlot, now: float, *, unpaid: bool) -> None:
        """Nothing was done under `lease`, or nothing was paid for it: whoever took it waits for the next one."""
        for name in (lease.client, lease.source):
            before = self._pauses.pop(name, None)
            again = before is not None and now < before.until + LONGEST_PAUSE_S
            seconds = min(LONGEST_PAUSE_S, 2 * before.seconds if before and again else FIRST_PAUSE_S)
            seconds = LONGEST_PAUSE_S if unpaid else seconds
            self._pauses[name] = _Pause(seconds, now + seconds)
            if len(self._pauses) > _MOST_REMEMBERED:
                self._pauses.popitem(last=False)

    def paid(self, lease: LentSlot) -> None:
        """A receipt came under `lease`."""
        for name in (lease.client, lease.source):
            self._pauses.pop(name, None)

    def free(self, now: float) -> int:
        """Slots that nobody holds, or only holds."""
        self._forget_over(now)
        held = len(self._living) + len(self._interrupted) - len(self._places.idle_for(LEAST_AGE_S, now))
        return max(0, self._lending.offer.slots - held)

    def gpus_told(self, now: float) -> list[Gpu]:
        """The cards as the row names them, those that are taken as such."""
        return self.gpus.told(self._places.idle_for(LEAST_AGE_S, now))

    def _gpu_for(self, ask: TakeLease, now: float) -> tuple[LentGpu, str] | None:
        """The card for a job that wants one, and whose lease gives way for it."""
        if not ask.wants_gpu:
            return None
        return self.gpus.choose(ask.gpu_memory_mb, ask.gpu_capability, self._places.idle_for(LEAST_AGE_S, now))

    def _forget_over(self, now: float) -> None:
        for over in self._calendar.expire(now):
            if self._interrupted.pop(over.lease, None):
                self._places.release(over.lease)

    def _check_fresh(self, token: Token, now: float) -> None:
        """A reservation that was not used soon was only held; one that was used may be used again."""
        used = token.uuid in self._used or token.uuid in self._interrupted
        if not used and now > token.not_before + USED_WITHIN_S + CLOCK_TOLERANCE_S:
            raise TokenRefused(
                f"the token was given {(now - token.not_before) / 60:.0f} minutes ago and not used here within"
                f" {USED_WITHIN_S // 60}",
                fix="reserve again",
            )

    def _take_place(self, token: Token, source: str, now: float) -> list[str]:
        """The reservations whose leases give way."""
        try:
            going = self._places.take(token.uuid, source, token.client, now)
        except TooOften:
            raise
        except Busy:
            raise Busy(f"every slot is taken ({self._lending.offer.slots} in all)") from None
        self._places.works(token.uuid)
        return going

    def _check_pause(self, client: PeerId, source: str, now: float) -> None:
        wait_s = max((pause.until - now for name in (client, source) if (pause := self._pauses.get(name))), default=0)
        if wait_s > 0:
            raise TooOften(
                "a lease of yours was not worked here, or not paid for",
                fix=f"use another peer, or ask again in {wait_s:.0f} s",
                wait_s=wait_s,
            )

    def _token(self, ask: TakeLease, caller: TokenHolder, now: float) -> Token:
        check_schema(ask.schema, ask.kind)
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


def _bounds(slots: int) -> Bounds:
    """Where there are four slots or more, one client and one household leave every fourth to others."""
    most = slots - slots // 4 if slots >= 4 else slots + 1
    return Bounds(in_all=slots, of_source=most, of_key=most, least_age_s=LEAST_AGE_S)


def _check_offer(offer: Capability, ask: TakeLease) -> None:
    """Raise `Refused` for a job that wants more than is lent."""
    if offer.refuses:
        raise Refused(f"this peer takes no work: {offer.refuses}")
    if ask.kind not in offer.kinds:
        raise Refused(
            f"this peer takes no jobs of the kind {ask.kind!r}, only: {', '.join(offer.kinds) or 'none'}",
            fix="use another peer; the owner of this one chooses by `kinds` in config.toml",
        )
    if ask.cores > offer.cores:
        raise Refused(f"this peer lends {offer.cores} of the {ask.cores} cores asked for")
    if ask.memory_mb > offer.memory_mb:
        raise Refused(f"this peer lends {offer.memory_mb} of the {ask.memory_mb} MiB memory asked for")
    if missing := set(ask.datasets) - set(offer.datasets):
        raise Refused(f"this peer does not offer the data {', '.join(sorted(missing))}")
