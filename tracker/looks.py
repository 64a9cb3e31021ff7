"""Which rows are worth a call, at which of their addresses, and what came of it (pure).

A row names any addresses that its peer likes, so a tracker that called them all could be pointed at somebody else's
machines. Only literal addresses are called, private ones only on the word of a caller who is in a private network
itself, and only so many a second.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from axonp2p.errors import SettingsError
from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import Row
from axonp2p.transport.address import split_host_port

LOOKS_A_SECOND = 20.0
"""First looks; a TLS handshake costs some 2 ms of CPU."""
BURST = 100.0
MOST_REMEMBERED = 200_000
MOST_ADDRESSES = 2
"""Of one row."""


def worth_calling(row: Row, source: str) -> list[str]:
    """The addresses of a row that may be called on the word of somebody at the IP address `source`."""
    near = _is_global(source) is False
    hosts = [(address, _is_global_at(address)) for address in row.addresses]
    return [address for address, is_global in hosts if is_global or (near and is_global is False)][:MOST_ADDRESSES]


@lru_cache(maxsize=16_384)
def _is_global(text: str) -> bool | None:
    """None for what is no IP address."""
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return None


@lru_cache(maxsize=16_384)
def _is_global_at(address: str) -> bool | None:
    """The same of HOST:PORT."""
    try:
        return _is_global(split_host_port(address)[0])
    except SettingsError:
        return None


class Looks:
    """First looks: whether a peer could be called at the addresses of its row. Times never go back."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._seen: dict[PeerId, tuple[int, bool | None]] = {}
        self._left = BURST
        self._at = 0.0

    def reached(self, row: Row) -> bool | None:
        """What is known of these addresses; None when nothing is, or nothing yet."""
        place, reached = self._seen.get(row.peer, (0, None))
        return reached if place == _place(row) else None

    def wanted(self, row: Row, now: float) -> bool:
        """Whether to call the peer now, which counts as one look: never when it has been done, nor too many at once."""
        if self._seen.get(row.peer, (0, None))[0] == _place(row):
            return False
        self._left = min(BURST, self._left + (now - self._at) * LOOKS_A_SECOND)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        self._remember(row, None)
        return True

    def found(self, row: Row, reached: bool) -> None:
        """What a call gave."""
        self._remember(row, reached)

    def _remember(self, row: Row, reached: bool | None) -> None:
        self._seen.pop(row.peer, None)
        self._seen[row.peer] = (_place(row), reached)
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]


def _place(row: Row) -> int:
    # A number instead of the addresses: there may be hundreds of thousands of them.
    return hash((tuple(row.addresses), row.certificate))
