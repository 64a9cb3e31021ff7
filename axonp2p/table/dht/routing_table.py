"""Whom a DHT node knows: contacts that proved their ids, by their distance, within limits for each network (pure).

A subclass of `kademlia.routing.RoutingTable` whose search is exact: the package's own finds about half of the true nearest.
"""

from __future__ import annotations

import random

from kademlia.routing import RoutingTable

from axonp2p.table.dht.contact import Contact

BUCKET_SIZE = 20
MOST_OF_A_NETWORK_IN_A_BUCKET = 2
MOST_OF_A_NETWORK = 10
FAILURES_TO_EVICT = 2
STALE_AFTER_S = 3600.0
QUESTIONABLE_AFTER_S = 900.0


class ContactTable(RoutingTable):  # type: ignore[misc]  # kademlia has no types
    """Buckets of contacts around the own id. Times are seconds of one clock that never goes back."""

    def __init__(self, own_id: bytes, bucket_size: int = BUCKET_SIZE, now: float = 0.0) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def contacts(self) -> list[Contact]:
        """All of them."""
        raise NotImplementedError

    def find_neighbors(self, node: Contact, k: int | None = None, exclude: Contact | None = None) -> list[Contact]:
        """As in the package, but exact. `nearest` is the same with ids."""
        raise NotImplementedError

    def nearest(self, target: bytes, count: int, exclude: bytes = b"") -> list[Contact]:
        """The `count` contacts nearest to `target`, nearest first, without the one whose id is `exclude`."""
        raise NotImplementedError

    def find(self, contact_id: bytes) -> Contact | None:
        """The contact with this id."""
        raise NotImplementedError

    def knows(self, contact: Contact) -> bool:
        """Whether just this contact (id, address) is in a bucket, so that nothing has to be proved again."""
        raise NotImplementedError

    def would_take(self, contact: Contact) -> bool:
        """Whether it is worth a challenge: it would get a place in a bucket, or in a replacement cache."""
        raise NotImplementedError

    def add_contact(self, contact: Contact, now: float) -> Contact | None:
        """Take in a contact that has just proved its id.

        When its bucket is full the newcomer waits as a replacement, and the answer is the bucket's least recently heard
        contact if it should be pinged: not heard for 15 minutes, and no other of its bucket pinged in the last 10 s.
        """
        raise NotImplementedError

    def heard(self, contact: Contact, now: float) -> None:
        """It answered or asked: to the end of its bucket, its failures forgotten. Unknown contacts are ignored."""
        raise NotImplementedError

    def failed(self, contact: Contact) -> bool:
        """It did not answer. Whether it is gone now: at the second time in a row a replacement takes its place."""
        raise NotImplementedError

    def touch(self, target: bytes, now: float) -> None:
        """A look-up went through the range of `target`: it needs no refresh for an hour."""
        raise NotImplementedError

    def refresh_targets(self, now: float, chance: random.Random) -> list[bytes]:
        """An id in each range that no look-up went through for an hour."""
        raise NotImplementedError
