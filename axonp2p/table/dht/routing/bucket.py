"""Buckets of the routing table: what they are for follows from their range alone (pure)."""

from __future__ import annotations

from collections import OrderedDict

from kademlia.routing import KBucket

from axonp2p.table.dht.routing.contact import Contact
from axonp2p.table.dht.routing.keys import ID_BYTES

BITS = ID_BYTES * 8
PINGS_APART_S = 10.0


class Bucket(KBucket):  # type: ignore[misc]  # kademlia has no types
    """All ids with one prefix. `nodes` and `replacement_nodes` stand in the order in which they were heard."""

    def __init__(self, low: int, bits: int, size: int, now: float) -> None:
        self.bits = bits
        self.low = low
        self.looked_up = now
        self.pinged = -PINGS_APART_S
        super().__init__(low, low + (1 << bits) - 1, size, replacementNodeFactor=1)
        self.nodes: OrderedDict[bytes, Contact]
        self.replacement_nodes: OrderedDict[bytes, Contact]

    def touch_last_updated(self) -> None:
        """The package reads the machine's clock here; ours is `looked_up`."""

    def depth(self) -> int:
        """How many bits all ids of its range share, whoever is in it."""
        return BITS - self.bits

    def halves(self) -> tuple[Bucket, Bucket]:
        """Two of half the range, empty."""
        bits = self.bits - 1
        lower = Bucket(self.low, bits, self.ksize, self.looked_up)
        return lower, Bucket(self.low + (1 << bits), bits, self.ksize, self.looked_up)
