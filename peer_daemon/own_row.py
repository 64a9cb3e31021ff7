"""What this peer says of itself, and where it may be reached (pure)."""

from __future__ import annotations

import ipaddress

import msgspec

from axonp2p.identity.peer_id import PeerId
from axonp2p.peers.capability import Capability
from axonp2p.table.records import Row
from axonp2p.transport.address import join_host_port
from peer_daemon.offer import fit

MOST_ADDRESSES = 4
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 (compared with, not bound to)


class OwnRow:
    """The row's lasting part; what changes is passed in each time it is written."""

    def __init__(self, peer: PeerId, name: str, certificate: bytes, offer: Capability, listen: tuple[str, int]) -> None:
        self._lasting = Row(
            peer=peer, name=name, sequence=0, addresses=[], certificate=certificate, expires=0, capability=None
        )
        self._offer = offer
        self.free = offer.free
        """Slots that nobody holds now."""
        host, self._port = listen
        self._told = "" if host in _WILDCARDS else host
        self._seen: dict[int, str] = {}

    @property
    def name(self) -> str:
        """What people see."""
        return self._lasting.name

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT, by which others reach this peer; none is known before the first tracker answered."""
        hosts = [self._told] if self._told else list(dict.fromkeys(self._seen.values()))
        return [join_host_port(host, self._port) for host in hosts[:MOST_ADDRESSES]]

    def seen(self, tracker: int, address: str) -> bool:
        """That tracker (by index) saw an announce come from this IP. True when the row says something else now.

        It counts only when the peer listens everywhere: who listens on one address is reached there.
        """
        before = self.addresses
        try:
            host = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped:
            self._seen[tracker] = str(host.ipv4_mapped)
        else:
            self._seen[tracker] = str(host)
        return self.addresses != before

    def offering(self, *, sequence: int, expires: int) -> Row:
        """The row that lends, until `expires` (Unix seconds)."""
        row = msgspec.structs.replace(self._lasting, sequence=sequence, expires=expires, addresses=self.addresses)
        return fit(row, msgspec.structs.replace(self._offer, free=self.free))

    def withdrawing(self, *, sequence: int, expires: int) -> Row:
        """The row that lends nothing any more; `expires` is when every older row has expired."""
        return msgspec.structs.replace(self._lasting, sequence=sequence, expires=expires)
