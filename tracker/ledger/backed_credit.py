"""The part of a peer's credit that stands: it came from clients that had as much themselves (pure).

A key costs nothing, so a receipt by itself is worth nothing: two keys sign each other any. Credit that a client gives
counts up to what it earned itself by this same rule, and without limit when the operator vouches for it. So credit
enters the books with those whom the operator named, and is handed on from them; keys that deal only with each other
hand round nothing, and no ring of keys has more in all than was brought into it. Credit that a client gave and could
not cover waits, and counts once the client has earned it: a newcomer's peers lose nothing by having worked for it
early.

The order in which receipts come decides who waits where a client gave more than it had; the sums never do.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection

from axonp2p.identity.peer_id import PeerId

STEPS_AT_ONCE = 1000
"""Peers that one receipt may move on to the next: a long chain is settled by the receipts that follow."""


class BackedCredit:
    """Sums over receipts that stand on a reservation as docs/ledger.md asks. Flops are whole numbers, 0 or more."""

    def __init__(self, vouched: Collection[PeerId] = ()) -> None:
        """`vouched`: clients that the operator vouches for."""
        self.vouched = frozenset(vouched)
        self._earned: Counter[PeerId] = Counter()
        self._given: Counter[PeerId] = Counter()
        """By clients, as far as it counts."""
        self._counted: Counter[tuple[PeerId, PeerId]] = Counter()
        self._waiting: dict[PeerId, dict[PeerId, int]] = {}
        """The credit that each client gave and could not cover yet, by peer."""
        self._moved: deque[PeerId] = deque()

    def earned(self, key: PeerId) -> int:
        """FLOPs of its work that stand."""
        return self._earned[key]

    def add(self, client: PeerId, peer: PeerId, flops: int) -> None:
        """A client's receipts of so many FLOPs for a peer."""
        if flops <= 0:
            return
        waiting = self._waiting.setdefault(client, {})
        waiting[peer] = waiting.get(peer, 0) + flops
        self._moved.append(client)
        self._settle()

    def take_back(self, client: PeerId, peer: PeerId, flops: int) -> None:
        """They count no more: first those that wait, then those that counted. Credit handed on already stays."""
        waiting = self._waiting.get(client, {})
        if peer in waiting:
            of_waiting = min(flops, waiting[peer])
            waiting[peer] -= of_waiting
            flops -= of_waiting
            if not waiting[peer]:
                del waiting[peer]
            if not waiting:
                del self._waiting[client]
        flops = min(flops, self._counted[client, peer])
        self._counted[client, peer] -= flops
        self._earned[peer] -= flops
        self._given[client] -= flops
        self._moved.append(client)
        self._settle()

    def _settle(self) -> None:
        for _ in range(STEPS_AT_ONCE):
            if not self._moved:
                return
            client = self._moved[0]
            waiting = self._waiting.get(client)
            free = None if client in self.vouched else self._earned[client] - self._given[client]
            if not waiting or (free is not None and free <= 0):
                self._moved.popleft()
                continue
            peer, flops = next(iter(waiting.items()))
            some = flops if free is None else min(free, flops)
            if some == flops:
                del waiting[peer]
                if not waiting:
                    del self._waiting[client]
            else:
                waiting[peer] = flops - some
            self._counted[client, peer] += some
            self._given[client] += some
            self._earned[peer] += some
            if peer in self._waiting:
                self._moved.append(peer)
