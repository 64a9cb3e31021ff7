"""The contacts of a DHT node: those that proved their ids, by their distance, within limits for each network (pure).

A subclass of `kademlia.routing.RoutingTable`, whose own search misses a fifth of the true nearest, whose buckets
split by what is in them instead of by what they are for, and which anybody may fill.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter, OrderedDict

from kademlia.routing import KBucket, RoutingTable

from axonp2p.table.dht.routing.contact import Contact, read_host
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


BUCKET_SIZE = 20
MOST_OF_A_NETWORK_IN_A_BUCKET = 2
MOST_OF_A_NETWORK = 10
FAILURES_TO_EVICT = 2
STALE_AFTER_S = 3600.0
QUESTIONABLE_AFTER_S = 900.0
SPLIT_BITS = 2
"""Away from the own id, a full bucket splits unless its depth is a multiple of this: more contacts, fewer hops."""


class ContactTable(RoutingTable):  # type: ignore[misc]
    """Buckets of contacts around the own id. Times are seconds of one clock that never goes back."""

    def __init__(self, own_id: bytes, bucket_size: int = BUCKET_SIZE, now: float = 0.0) -> None:
        self._own = int.from_bytes(own_id)
        self._own_id = own_id
        self._now = now
        self._heard: dict[bytes, float] = {}
        self._failures: Counter[bytes] = Counter()
        self._by_address: dict[tuple[str, int], Contact] = {}
        self._networks: Counter[bytes] = Counter()
        self.buckets: list[Bucket]
        super().__init__(None, bucket_size, None)

    def flush(self) -> None:
        """Back to one empty bucket."""
        self.buckets = [Bucket(0, BITS, self.ksize, self._now)]
        for index in (self._heard, self._failures, self._by_address, self._networks):
            index.clear()

    def __len__(self) -> int:
        return len(self._heard)

    def contacts(self) -> list[Contact]:
        """All of them."""
        return list(self._by_address.values())

    # --- searching --------------------------------------------------------------------------------

    def nearest(self, target: bytes, count: int, exclude: bytes = b"") -> list[Contact]:
        """The `count` contacts nearest to `target`, nearest first, without the one whose id is `exclude`."""
        place = int.from_bytes(target)
        # All ids of a bucket share its prefix, so its distances to a target fill one range that overlaps no other's.
        order = sorted(self.buckets, key=lambda bucket: (bucket.low ^ place) >> bucket.bits << bucket.bits)
        found: list[Contact] = []
        for bucket in order:
            if bucket.nodes:
                near = sorted((contact.long_id ^ place, contact) for contact in bucket.nodes.values())
                found += [contact for _, contact in near if contact.id != exclude]
                if len(found) >= count:
                    break
        return found[:count]

    def find(self, contact_id: bytes) -> Contact | None:
        """The contact with this id."""
        if contact_id not in self._heard:
            return None
        return self._bucket(int.from_bytes(contact_id)).nodes[contact_id]

    def knows(self, contact: Contact) -> bool:
        """Whether just this contact (id, address) is in a bucket, so that nothing has to be proved again."""
        known = self._by_address.get(contact.address)
        return known is not None and known.id == contact.id

    # --- coming and going -------------------------------------------------------------------------

    def would_take(self, contact: Contact) -> bool:
        """Whether it is worth a challenge: it would get a place in a bucket, or a free one among the replacements."""
        if contact.id == self._own_id or self.knows(contact):
            return False
        bucket = self._bucket(contact.long_id)
        if not self._network_has_room(contact, bucket):
            return False
        roomy = len(bucket.nodes) < self.ksize or self._may_split(bucket)
        waiting = bucket.replacement_nodes
        return roomy or (contact.id not in waiting and len(waiting) < bucket.max_replacement_nodes)

    def add_contact(self, contact: Contact, now: float) -> Contact | None:
        """Take in a contact that has just proved its id.

        When its bucket is full the newcomer waits as a replacement, and the answer is the bucket's least recently heard
        contact if it should be pinged: not heard for 15 minutes, and no other of its bucket pinged in the last 10 s.
        """
        if contact.id == self._own_id:
            return None
        if self.knows(contact):
            self.heard(contact, now)
            return None
        # It proved itself: whoever had this id elsewhere has moved, whoever was at this address has gone.
        for stale in (self.find(contact.id), self._by_address.get(contact.address)):
            if stale is not None:
                self.remove_contact(stale)
        bucket = self._bucket(contact.long_id)
        while len(bucket.nodes) >= self.ksize and self._may_split(bucket):
            self.split_bucket(self._index(contact.long_id))
            bucket = self._bucket(contact.long_id)
        if not self._network_has_room(contact, bucket):
            return None
        if len(bucket.nodes) < self.ksize:
            self._keep(contact, bucket, now)
            return None
        self._wait(contact, bucket)
        return self._questionable(bucket, now)

    def remove_contact(self, node: Contact) -> None:
        """Out of its bucket at once; the replacement that was heard last takes its place."""
        bucket = self._bucket(node.long_id)
        bucket.replacement_nodes.pop(node.id, None)
        known = self.find(node.id)
        if known is None:
            return
        heard = self._heard[known.id]
        self._drop(known)
        while bucket.replacement_nodes:
            _, replacement = bucket.replacement_nodes.popitem()
            if replacement.address not in self._by_address and self._network_has_room(replacement, bucket):
                # It proved itself once, but nobody heard it since: it counts as heard when the lost one was.
                self._keep(replacement, bucket, heard)
                bucket.nodes.move_to_end(replacement.id, last=False)
                return

    def heard(self, contact: Contact, now: float) -> None:
        """It answered or asked: to the end of its bucket, its failures forgotten. Unknown contacts are ignored."""
        if self.knows(contact):
            self._bucket(contact.long_id).nodes.move_to_end(contact.id)
            self._heard[contact.id] = now
            self._failures.pop(contact.id, None)

    def failed(self, contact: Contact) -> bool:
        """It did not answer. Whether it is gone now: at the second time in a row a replacement takes its place."""
        if not self.knows(contact):
            self._bucket(contact.long_id).replacement_nodes.pop(contact.id, None)
            return False
        self._failures[contact.id] += 1
        if self._failures[contact.id] < FAILURES_TO_EVICT:
            return False
        self.remove_contact(contact)
        return True

    # --- keeping fresh ----------------------------------------------------------------------------

    def touch(self, target: bytes, now: float) -> None:
        """A look-up went through the range of `target`: it needs no refresh for an hour."""
        self._bucket(int.from_bytes(target)).looked_up = now

    def refresh_targets(self, now: float, chance: random.Random) -> list[bytes]:
        """An id in each range that no look-up went through for an hour."""
        stale = [bucket for bucket in self.buckets if now - bucket.looked_up >= STALE_AFTER_S]
        return [(bucket.low + chance.getrandbits(bucket.bits)).to_bytes(ID_BYTES) for bucket in stale]

    def split_bucket(self, index: int) -> None:
        """Put the two halves of a bucket in its place. A bucket that may split has no replacements."""
        whole = self.buckets[index]
        lower, upper = whole.halves()
        for contact in whole.nodes.values():
            (upper if contact.long_id >= upper.low else lower).nodes[contact.id] = contact
        self.buckets[index : index + 1] = [lower, upper]

    # --- inside -----------------------------------------------------------------------------------

    def _index(self, place: int) -> int:
        return bisect_right(self.buckets, place, key=lambda bucket: bucket.low) - 1

    def _bucket(self, place: int) -> Bucket:
        return self.buckets[self._index(place)]

    def _may_split(self, bucket: Bucket) -> bool:
        ours = bucket.low >> bucket.bits == self._own >> bucket.bits
        return ours or bucket.depth() % SPLIT_BITS != 0

    def _network_has_room(self, contact: Contact, bucket: Bucket) -> bool:
        host = read_host(contact.ip)
        if host.local:
            return True
        if self._networks[host.network] >= MOST_OF_A_NETWORK:
            return False
        seated = sum(read_host(other.ip).network == host.network for other in bucket.nodes.values())
        return seated < MOST_OF_A_NETWORK_IN_A_BUCKET

    def _keep(self, contact: Contact, bucket: Bucket, heard: float) -> None:
        bucket.replacement_nodes.pop(contact.id, None)
        bucket.nodes[contact.id] = contact
        self._heard[contact.id] = heard
        self._by_address[contact.address] = contact
        self._networks[read_host(contact.ip).network] += 1

    def _drop(self, contact: Contact) -> None:
        del self._bucket(contact.long_id).nodes[contact.id]
        del self._heard[contact.id]
        del self._by_address[contact.address]
        self._failures.pop(contact.id, None)
        network = read_host(contact.ip).network
        self._networks[network] -= 1
        if not self._networks[network]:
            del self._networks[network]

    def _wait(self, contact: Contact, bucket: Bucket) -> None:
        waiting = bucket.replacement_nodes
        waiting.pop(contact.id, None)
        waiting[contact.id] = contact
        if len(waiting) > bucket.max_replacement_nodes:
            waiting.popitem(last=False)

    def _questionable(self, bucket: Bucket, now: float) -> Contact | None:
        head = next(iter(bucket.nodes.values()))
        if now - self._heard[head.id] < QUESTIONABLE_AFTER_S or now - bucket.pinged < PINGS_APART_S:
            return None
        bucket.pinged = now
        return head
