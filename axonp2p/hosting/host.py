"""Where a host is, and the key with which it works on a client's job (pure)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from axonp2p.identity.keys import PrivateKey
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


_PERSON = b"axon/job-key/1"


def job_key(client: PrivateKey, job: str) -> PrivateKey:
    """The key of the client's job with that id: whoever has the client's key and the id has it.

    It reserves peers and signs receipts for this one job, at the host. Nobody who has it can make the client's key of
    it, or that of another job: BLAKE2b (RFC 7693), keyed with the client's secret for a purpose of its own, leads one
    way only.
    """
    seed = hashlib.blake2b(job.encode(), key=client.seed, digest_size=32, person=_PERSON).digest()
    return PrivateKey(seed)
