"""How much a relay carries, for whom (pure numbers)."""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.errors import SettingsError

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
