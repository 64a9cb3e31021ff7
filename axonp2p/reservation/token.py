"""Reservation tokens: who may use which peers, for what, from where, until when."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec

from axonp2p.errors import TokenRefused
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import Signable, Signed, open_signed
from axonp2p.wire.quantities import IpText, UnixTime

MOST_PEERS = 64
LONGEST_S = 24 * 3600
USED_WITHIN_S = 900
"""Within so long after its beginning a token is first used at a peer, or it is void there: it was only held."""

Uuid = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")]
Kind = Annotated[str, msgspec.Meta(max_length=32)]


class Token(Signable, frozen=True):
    """An issuer's word that `client` may use `peers`. Times are Unix seconds."""

    PURPOSE: ClassVar[str] = "axon/token/1"
    LIMIT: ClassVar[int] = 8192

    uuid: Uuid
    """Names the reservation."""
    issuer: PeerId
    """The tracker that signed it."""
    client: PeerId
    """The client that may use it."""
    client_address: IpText
    """The IP address that the reservation was asked from."""
    peers: Annotated[list[PeerId], msgspec.Meta(min_length=1, max_length=MOST_PEERS)]
    """On whom."""
    kinds: Annotated[list[Kind], msgspec.Meta(min_length=1, max_length=8)]
    """For which kinds of work."""
    not_before: UnixTime
    """Unix seconds."""
    expires: UnixTime
    """Unix seconds."""


class ReserveRequest(Signable, frozen=True):
    """A client's signed wish for a token."""

    PURPOSE: ClassVar[str] = "axon/reserve/1"
    LIMIT: ClassVar[int] = 8192

    uuid: Uuid
    """Chosen by the client, so that a request that is sent again gives the same token."""
    peers: Annotated[list[PeerId], msgspec.Meta(min_length=1, max_length=MOST_PEERS)]
    """The peers to reserve."""
    kinds: Annotated[list[Kind], msgspec.Meta(min_length=1, max_length=8)]
    """For which kinds of work."""
    seconds: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_S)]
    """For how long, from now on."""
    time: UnixTime
    """When it was signed: a tracker refuses one that is more than 30 s off."""


class TokenGiven(Message, frozen=True):
    """A tracker's answer: the token, stored durably before it was sent."""

    token: Signed[Token]
    """As the tracker signed it."""


@dataclass(frozen=True)
class TokenHolder:
    """The caller that brings a token: a key that was proved, and the address that it calls from."""

    key: PeerId
    address: str
    source: str = ""
    """By what it is counted where that is not the household of its address (`relay.inner.source_at`)."""


def check_token(
    signed: Signed[Token],
    caller: TokenHolder,
    *,
    peer: PeerId,
    trusted_issuers: frozenset[PeerId],
    kind: str,
    now: float,
    check_address: bool = True,
) -> Token:
    """The token, when `peer` may serve `caller` on it at `now`.

    Raises `TokenRefused` with the one reason, and what `open_signed` raises. The address is not compared when the two
    are of different families (a client may reach a tracker over IPv6 and a peer over IPv4).
    """
    if signed.signer not in trusted_issuers:
        raise TokenRefused(f"the token was issued by {short(signed.signer)}, which is none of this peer's trackers")
    token = open_signed(signed, Token)
    if token.issuer != signed.signer:
        raise TokenRefused("the token names another issuer than its signer")
    if token.expires - token.not_before > LONGEST_S + CLOCK_TOLERANCE_S:
        raise TokenRefused(f"the token is valid for more than {LONGEST_S} s")
    if now < token.not_before - CLOCK_TOLERANCE_S:
        raise TokenRefused(f"the token is not valid before {token.not_before}, in {token.not_before - now:.0f} s")
    if now >= token.expires:
        raise TokenRefused(f"the token expired {now - token.expires:.0f} s ago", fix="reserve again")
    if token.expires - token.not_before > LONGEST_S:
        raise TokenRefused(f"the token is valid for longer than {LONGEST_S // 3600} hours", fix="reserve again")
    if peer not in token.peers:
        raise TokenRefused("the token is for other peers")
    if kind not in token.kinds:
        raise TokenRefused(f"the token is for {', '.join(token.kinds)} jobs, not {kind}")
    if caller.key != token.client:
        raise TokenRefused(f"the token belongs to another key than {short(caller.key)}")
    if check_address and _differ(caller.address, token.client_address):
        raise TokenRefused(f"the token was given to {token.client_address}, the caller is at {caller.address}")
    return token


def _differ(one: str, other: str) -> bool:
    try:
        first, second = _plain(one), _plain(other)
    except ValueError:
        return True
    return first.version == second.version and first != second


def _plain(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address
