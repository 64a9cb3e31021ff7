"""The amount that a client may owe before this tracker reserves no more peers for it (pure).

The cost of a reservation is not known before its work is done: at most what its peers can compute in its time. So a
client is refused when it could end up owing more than it may, by what it owes, what was promised to it and is not over,
and what it asks for; and is told all the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import msgspec

from axonp2p.errors import Refused, SettingsError, TooOften
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.receipt import Balance
from axonp2p.peers.capability import Capability
from axonp2p.reservation.token import Token
from axonp2p.wire.quantities import Count, Number, UnixMoment
from tracker.ledger.intake import UNMEASURED_GFLOPS

OPEN, LIMITED, EARNED = "open", "limited", "earned"
RECEIPTS_COME_WITHIN_S = 600.0
"""Work of longer ago is in the ledger; what was done since may be on its way, and counts as if it all were."""
MOST_PROMISED = 1024
"""Peers promised to one client, whose cost is added up anew for each reservation: sixteen of the largest jobs."""


class PeerPromise(msgspec.Struct, frozen=True):
    """One peer, reserved for a client; as it was when the reservation was given. Times are Unix seconds."""

    peer: PeerId
    gflops: Number
    """Of each of its slots."""
    slots: Count
    began: UnixMoment
    expires: UnixMoment


def promises_of(token: Token, offer_of: Callable[[PeerId], Capability | None]) -> list[PeerPromise]:
    """The promises of a token, by the offers of its peers at that moment."""
    return [
        PeerPromise(peer, offer.gflops or UNMEASURED_GFLOPS, max(1, offer.slots), token.not_before, token.expires)
        for peer in token.peers
        if (offer := offer_of(peer)) is not None
    ]


def may_cost(promises: Iterable[PeerPromise], now: float) -> float:
    """Credits that these promises to one client may still add to what it owes: an estimate that is never too small.

    As long as peers are no faster than they say, and receipts come in time.
    """
    since = now - RECEIPTS_COME_WITHIN_S
    flops = 0.0
    for _, group in groupby(sorted(promises, key=lambda one: one.peer), key=lambda one: one.peer):
        of_peer = list(group)
        slots, gflops = max(one.slots for one in of_peer), max(one.gflops for one in of_peer)
        flops += gflops * 1e9 * _slot_seconds([(max(since, one.began), one.expires) for one in of_peer], slots)
    return credits_of(round(flops))


def _slot_seconds(spans: Iterable[tuple[float, float]], slots: int) -> float:
    """For how long slots can be at work in all: however many promises overlap, no more of them than there are."""
    changes = sorted(change for began, ended in spans if began < ended for change in ((began, 1), (ended, -1)))
    total, promised, last = 0.0, 0, 0.0
    for at, change in changes:
        total += min(promised, slots) * (at - last)
        promised, last = promised + change, at
    return total


@dataclass(frozen=True)
class Owing:
    """The operator's rule."""

    rule: str = OPEN
    """`open`: anybody may owe any amount; `limited`: so many credits; `earned`: only what it earned itself."""
    most: float = 0.0
    """Credits, for `limited`."""
    vouched: frozenset[PeerId] = frozenset()
    """Clients that may owe any amount by any rule: the operator vouches for them."""

    def __post_init__(self) -> None:
        if self.rule not in (OPEN, LIMITED, EARNED) or self.most < 0:
            raise SettingsError(
                f'owing is "{self.rule}", owing-credits {self.most}',
                fix='[tracker] owing: "open", "limited" (with owing-credits) or "earned"',
            )

    def lets_owe_any(self, client: PeerId) -> bool:
        """Whether this client is never refused."""
        return self.rule == OPEN or client in self.vouched

    @property
    def trouble(self) -> str:
        """Why nobody can reserve by this rule; empty when somebody can."""
        if self.rule != EARNED or self.vouched:
            return ""
        return 'nobody can reserve here: owing is "earned", and there are no vouched-clients with whom credit begins'

    def check(
        self, balance: Balance, promised: Sequence[PeerPromise], asked: Sequence[PeerPromise], now: float
    ) -> None:
        """Raise `Refused` when the work `asked` for, beside what is `promised`, could make its client owe too much.

        `TooOften` when these are too many to add up.

        The earned credit of `balance` must stand: see `BackedCredit`.
        """
        if self.lets_owe_any(balance.key):
            return
        if len(promised) + len(asked) > MOST_PROMISED:
            fix = "wait until some of its reservations are over"
            raise TooOften(f"{len(promised)} peers are promised to this client", fix=fix, wait_s=60.0)
        total = may_cost([*promised, *asked], now)
        owed, earned = credits_of(balance.owed_flops), credits_of(balance.earned_flops)
        most = self.most if self.rule == LIMITED else 0.0
        if owed - earned + total <= most:
            return
        waiting = may_cost(promised, now)
        allowed = f"{most:,.2f} credits more than it earned" if self.rule == LIMITED else "what it earned"
        raise Refused(
            f"this reservation may cost up to {total - waiting:,.2f} credits; with up to {waiting:,.2f} promised"
            f" already, {owed:,.2f} owed and {earned:,.2f} earned its client could come to owe"
            f" {owed - earned + total:,.2f}, and this tracker lets it owe no more than {allowed}",
            fix="reserve fewer peers, or for less time (reserve under [need] in job.toml); wait until reservations are"
            " over; or lend a machine with the same key to clients that this tracker's operator vouches for, or that"
            " earned credits here themselves",
        )


ANY_AMOUNT = Owing()
NOBODY_VOUCHED_FIX = "[tracker] vouched-clients: ids of clients, 52 letters each: axon credits; or another owing"


def vouched_clients(ids: Iterable[str]) -> frozenset[PeerId]:
    """The clients of the setting `vouched-clients`. Raises `SettingsError` for what is no id."""
    try:
        return frozenset(msgspec.convert(list(ids), list[PeerId]))
    except msgspec.ValidationError as error:
        raise SettingsError(
            f"vouched-clients: {error}", fix="[tracker] vouched-clients: ids of clients, 52 letters each: axon credits"
        ) from error
