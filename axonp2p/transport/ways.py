"""The ways to a peer, in the order in which they are tried (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from axonp2p.errors import MalformedMessage, SettingsError
from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy

HEAD_START_S = 3.0
"""How long a direct way is tried when there is a relay as well: a router that drops what comes says nothing at all."""
FIRST_DIRECT_AGAIN_S = 60.0
LAST_DIRECT_AGAIN_S = 1800.0
"""How long a session through a relay waits before it looks for a direct way: the first time, and at the most."""


class Whereabouts(Protocol):
    """The addresses of a peer, as rows and rosters tell them."""

    @property
    def peer(self) -> PeerId:
        """Its id."""
        ...

    @property
    def addresses(self) -> Sequence[str]:
        """HOST:PORT."""
        ...

    @property
    def certificate(self) -> bytes | None:
        """The fingerprint that must answer there; None: an authority must vouch. Rows always have one."""
        ...

    @property
    def relays(self) -> Sequence[str]:
        """https://HOST:PORT#FINGERPRINT of those that hold a connection of it."""
        ...

    @property
    def dialable(self) -> bool | None:
        """Whether others could dial it; None while nobody has tried."""
        ...


@dataclass(frozen=True)
class BareWhereabouts:
    """Whereabouts that are no row: of a relay, say."""

    peer: PeerId
    addresses: Sequence[str]
    certificate: bytes | None
    relays: Sequence[str] = ()
    dialable: bool | None = None


@dataclass(frozen=True)
class Way:
    """One way to one peer. Through a relay the peer's id stands for its host."""

    address: PinnedAddress
    relay: PinnedAddress | None = None

    def __str__(self) -> str:
        return self.address.host_port if self.relay is None else f"relay {self.relay.host_port}"


def ways_to(where: Whereabouts, policy: DialPolicy | None, *, avoid: str = "", spread: int = 0) -> list[Way]:
    """All ways that may be tried, the best first: direct ones, unless others could not dial it; then its relays.

    `policy` says which addresses may be dialled; None: the owner of this machine chose them.
    `avoid` is a relay (as `Way` shows it) that has just failed: it comes last. `spread` turns the order of relays,
    which is the same for all peers that name the same ones, so that not everybody comes through one. One that is
    no address, or may not be dialled, is left out.
    """
    relayed = [way for relay in sorted(where.relays) if (way := _through(relay, where, policy))]
    if relayed:
        turn = spread % len(relayed)
        relayed = relayed[turn:] + relayed[:turn]
    relayed.sort(key=lambda way: str(way) == avoid)
    direct = direct_ways(where, policy)
    if where.dialable is False and relayed:
        return relayed
    return direct + relayed


def direct_ways(where: Whereabouts, policy: DialPolicy | None) -> list[Way]:
    """Only the direct ones, whatever is said of them."""
    return [way for address in where.addresses if (way := _directly(address, where, policy))]


def patience(way: Way, ways: Sequence[Way], timeout_s: float) -> float:
    """How long this way is tried, in seconds, when `timeout_s` is the most for any."""
    has_relay = any(other.relay is not None for other in ways)
    return min(timeout_s, HEAD_START_S) if way.relay is None and has_relay else timeout_s


def direct_again_in(tried: int) -> float:
    """Seconds until a direct way is looked for, after it was tried so many times in vain."""
    return min(LAST_DIRECT_AGAIN_S, FIRST_DIRECT_AGAIN_S * 2.0**tried)


def _directly(address: str, where: Whereabouts, policy: DialPolicy | None) -> Way | None:
    try:
        pinned = PinnedAddress.of(address, where.certificate)
    except MalformedMessage:
        return None
    return Way(pinned) if policy is None or policy.allows(pinned.host) else None


def _through(relay: str, where: Whereabouts, policy: DialPolicy | None) -> Way | None:
    try:
        pinned = PinnedAddress.parse(relay)
    except SettingsError:
        return None
    if policy is not None and not policy.allows(pinned.host):
        return None
    return Way(PinnedAddress(where.peer, 443, where.certificate), pinned)
