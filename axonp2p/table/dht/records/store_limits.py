"""How much one DHT node holds for others, and for whom (pure)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoreLimits:
    """How much a node holds."""

    keys: int = 20_000
    bytes: int = 16 * 1024 * 1024
    rows_a_set: int = 512
    split_above: int = 256
    """A set with more rows says so: writers go one bit deeper, readers too."""
    rows_a_network: int = 16
    """That one source network (/24, IPv6 /48) may have put into one set."""
    rows_a_network_in_all: int = 1000
    """That one source network may have put under all keys together."""
    rows_a_signer: int = 64
    """Of one peer, under all keys together."""
    puts_a_second: float = 50.0
    """Of one IP address; twice as many at once. Like the limit for networks it is not for local addresses."""
