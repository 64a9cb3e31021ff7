"""What a relay and the peers that are registered with it say to each other, over a session."""

from __future__ import annotations

import ipaddress
from typing import Annotated

import msgspec

from axonp2p.transport.messages import Text
from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Count

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
