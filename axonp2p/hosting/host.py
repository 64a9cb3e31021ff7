"""Where a host is (a value)."""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.address import PinnedAddress


@dataclass(frozen=True)
class Host:
    """Its address, and the key that answers there."""

    address: PinnedAddress
    peer: PeerId

    @property
    def called(self) -> str:
        """For people."""
        return f"host {self.address.host_port}"
