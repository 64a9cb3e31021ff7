"""A connection whose TLS we began, a relay's stream too, looks to aiohttp like one of its own here (a door)."""

from __future__ import annotations

import asyncio
from typing import Any

from axonp2p.transport.address import source_of

_SOURCE = "axon source"
_PASSED_ON = (
    *("set_protocol", "get_protocol", "is_closing", "close", "abort", "is_reading", "pause_reading", "resume_reading"),
    *("write", "writelines", "write_eof", "can_write_eof"),
    *("set_write_buffer_limits", "get_write_buffer_size", "get_write_buffer_limits"),
)
"""All that asyncio's transports do but to say who is at the other end."""


class EarlyBytes(asyncio.Protocol):
    """Keeps what comes between the TLS handshake and the moment when somebody serves the connection."""

    def __init__(self) -> None:
        self._came: list[bytes] = []
        self._lost = False

    def data_received(self, data: bytes) -> None:
        """At most what one reading of the socket gave: nobody serves it later than that."""
        self._came.append(data)

    def connection_lost(self, error: Exception | None) -> None:
        """Then nobody has to serve it."""
        self._lost = True

    def hand_over(self, transport: asyncio.Transport, protocol: asyncio.Protocol) -> bool:
        """From now on `protocol` serves the connection; False when it is lost already."""
        if self._lost:
            return False
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        for data in self._came:
            protocol.data_received(data)
        return True


class NamedTransport(asyncio.Transport):
    """A transport that names another caller than the one at its other end: a proxy says whom it passes on."""

    def __init__(self, inner: asyncio.Transport, caller: str, source: str) -> None:
        """`source` is by what the caller is counted."""
        super().__init__()
        for name in _PASSED_ON:
            setattr(self, name, getattr(inner, name))
        self._inner = inner
        self._caller = caller
        self._source = source

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """`asyncio.BaseTransport`."""
        if name == _SOURCE:
            return self._source
        return (self._caller, 0) if name == "peername" else self._inner.get_extra_info(name, default)


class RelayedTransport(NamedTransport):
    """A transport inside a relay's stream, which names the caller as the relay does, not the relay."""

    def __init__(self, inner: asyncio.Transport, caller: str, relay: str) -> None:
        super().__init__(inner, caller, relayed_source(caller, relay))


def relayed_source(caller: str, relay: str) -> str:
    """By what a relay's caller is counted: its address is the relay's word, and must cost nobody else's household."""
    return f"{source_of(caller)} through {relay}"


def source_at(transport: asyncio.BaseTransport | None, address: str) -> str:
    """By what the caller at the other end, who calls from `address`, is counted: its household, or the above."""
    source = None if transport is None else transport.get_extra_info(_SOURCE)
    return str(source) if source else source_of(address)
