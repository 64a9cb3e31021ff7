"""The messages of a relay and the peers registered with it, and how much it carries for whom (pure)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Annotated

import msgspec

from axonp2p.errors import SettingsError
from axonp2p.transport.messages import Text
from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Count

BYTES_A_MBIT = 125_000


@dataclass(frozen=True)
class RelayLimits:
    """One relay's. Bytes are counted in both directions together, as callers and peers send them."""

    peers: int = 256
    """Registered at once."""
    peers_of_source: int = 8
    """Of one IP address (or IPv6 household)."""
    registered_s: float = 60.0
    """A peer that is not known otherwise, and to which nobody has opened a stream, keeps its place for so long when
    there are more who want one: announcing its relay and being called takes less."""
    streams: int = 512
    """At once, in all."""
    streams_of_peer: int = 64
    """At once, to one peer."""
    streams_of_caller: int = 64
    """At once, from one IP address (or IPv6 household)."""
    opened_a_second: float = 4.0
    """New streams from one caller; `opened_at_once` may come in one go."""
    opened_at_once: float = 64.0
    hourly_bytes: int = 4 * 2**30
    """To and from one peer in an hour, and the same for one caller; 0: no limit."""
    bytes_a_second: float = 0.0
    """Of all streams together; 0: no limit."""
    stream_s: float = 24 * 3600.0
    """How long one stream may last."""
    idle_s: float = 120.0
    """A stream on which nothing moves for so long is ended: sessions give a sign of life every few seconds."""


def limits_of(mbit: float, hourly_mb: int, **others: int) -> RelayLimits:
    """As an operator sets them. Raises `SettingsError` for numbers that cannot be meant."""
    if mbit < 0 or hourly_mb < 0:
        raise SettingsError(
            f"relay-mbit is {mbit:g}, relay-hourly-mb is {hourly_mb}", fix="0 for no limit, or more than that"
        )
    return RelayLimits(bytes_a_second=mbit * BYTES_A_MBIT, hourly_bytes=hourly_mb * 2**20, **others)


Ticket = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]


class RegisterAtRelay(Message, tag=True, frozen=True):
    """The first message: carry streams to me over this session, for as long as it lasts."""


class RelayTerms(Message, tag=True, frozen=True):
    """Yes: callers may say CONNECT to your id here from now on. The limits hold for you alone."""

    streams: Annotated[int, msgspec.Meta(ge=1, le=65536)]
    """How many streams to you at once."""
    hourly_bytes: Count
    """How much is carried to and from you in an hour; 0: as much as comes."""
    stream_s: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """How long a stream may last, in seconds."""


CallerAddress = Annotated[str, msgspec.Meta(max_length=45, pattern=r"^[0-9a-fA-F:.]+\Z")]


class OpenStream(Message, tag=True, frozen=True):
    """Somebody wants to speak to you: GET /v1/relayed/TICKET on a new connection to me."""

    ticket: Ticket
    """Names the stream; good once, for some seconds."""
    caller: CallerAddress
    """The caller's IP address, as the relay sees it: what the peer counts it by, and compares it with in tokens."""

    def __post_init__(self) -> None:
        """Raises `ValueError`, which decoding makes `MalformedMessage`, for what is no IP address."""
        ipaddress.ip_address(self.caller)


class StreamReady(Message, tag=True, frozen=True):
    """The peer has its end and waits for TLS: bytes of the caller may come."""

    ticket: Ticket
    """Of the stream."""


class StreamRefused(Message, tag=True, frozen=True):
    """The peer opens no connection for that stream."""

    ticket: Ticket
    """Of the stream."""
    reason: Text
    """The reason for the caller."""


FromRegistered = StreamReady | StreamRefused
