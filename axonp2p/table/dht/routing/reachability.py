"""Whether others can reach a node: only then may it stand in their tables (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from axonp2p.errors import SettingsError
from axonp2p.transport.address import split_host_port


def should_serve(reached: bool | None, seen: str | None, own_hosts: Iterable[str], own_port: int) -> bool:
    """A tracker's word counts; without one, whether others see this node under an address and port of its own.

    `reached` is a tracker's `Announced.reached`, `seen` is `DhtNode.own_address_seen`. A node behind a router that
    rewrites addresses sees another host or port, and only asks: whom it asked can answer, but nobody else reach it.
    """
    if reached is not None:
        return reached
    if seen is None:
        return False
    try:
        host, port = split_host_port(seen)
    except SettingsError:
        return False
    return port == own_port and host in set(own_hosts)
