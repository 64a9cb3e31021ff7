"""The part of a peer's credit that stands: it came from clients that had as much themselves (pure).

A key costs nothing, so a receipt by itself is worth nothing: two keys sign each other any. Credit that a client gives
counts up to what it earned itself by this same rule, and without limit when the operator vouches for it. So credit
enters the books with those whom the operator named, and is handed on from them; keys that deal only with each other
hand round nothing, and no ring of keys has more in all than was brought into it. Credit that a client gave and could
not cover waits, and counts once the client has earned it: a newcomer's peers lose nothing by having worked for it
early.

Credit that goes round a ring comes back to where it began, and could go round for as long as anything waits there: a
billion times for one FLOP. So a ring is found before, and the smallest amount that waits in it is handed round at once.

The order in which receipts come decides who waits where a client gave more than it had; the sums never do.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Sequence

from axonp2p.identity.peer_id import PeerId

STEPS_AT_ONCE = 1000
"""Peers over which one receipt hands credit on: the receipts that follow do the rest. At the end of a longer chain it
stays until the next receipt about the key there, or a restart."""
STEPS_FOR_ONE = 16
"""The same for each of those that are added up at a start."""


class BackedCredit:
    """Sums over receipts that stand on a reservation as docs/ledger.md asks. Flops are whole numbers, 0 or more."""

    def __init__(self, vouched: Collection[PeerId] = ()) -> None:
        """`vouched`: clients that the operator vouches for."""
        self.vouched = frozenset(vouched)
        self._earned: Counter[PeerId] = Counter()
        self._given: Counter[PeerId] = Counter()
        """By clients, as far as it counts."""
        self._counted: Counter[tuple[PeerId, PeerId]] = Counter()
        self._waiting: dict[PeerId, OrderedDict[PeerId, int]] = {}
        """The credit that each client gave and could not cover yet, by peer."""
        self._moved: deque[PeerId] = deque()
        """Clients that may have something to hand on."""

    def earned(self, key: PeerId) -> int:
        """FLOPs of its work that stand."""
        return self._earned[key]

    def add(self, client: PeerId, peer: PeerId, flops: int) -> None:
        """A client's receipts of so many FLOPs for a peer."""
        self.gather(client, peer, flops)
        self._settle()

    def gather(self, client: PeerId, peer: PeerId, flops: int) -> None:
        """The same, for `settle_gathered`: many at once."""
        if flops <= 0:
            return
        waiting = self._waiting.setdefault(client, OrderedDict())
        waiting[peer] = waiting.get(peer, 0) + flops
        self._moved.append(client)
        if peer in self._waiting:
            self._moved.append(peer)  # it may be the end of a chain that was too long

    def take_back(self, client: PeerId, peer: PeerId, flops: int) -> None:
        """They count no more: first those that wait, then those that counted. Credit handed on already stays."""
        waiting = self._waiting.get(client)
        if waiting and peer in waiting:
            of_waiting = min(flops, waiting[peer])
            self._take_from_waiting(client, peer, of_waiting)
            flops -= of_waiting
        flops = min(flops, self._counted[client, peer])
        self._counted[client, peer] -= flops
        self._earned[peer] -= flops
        self._given[client] -= flops
        self._moved.append(client)
        self._settle()

    def settle_gathered(self) -> None:
        """Hand on what may be of all that was gathered, in as many steps as honest clients need."""
        self._settle(STEPS_AT_ONCE + STEPS_FOR_ONE * len(self._moved))

    def _settle(self, steps: int = STEPS_AT_ONCE) -> None:
        while self._moved and steps > 0:
            client = self._moved[0]
            if client in self._waiting and self._has_to_give(client):
                way = self._way_on(client)
                self._hand_along(way)
                steps -= len(way)
            else:
                self._moved.popleft()
                steps -= 1

    def _way_on(self, client: PeerId) -> list[PeerId]:
        """The keys through which the client's credit goes on, each to the first that waits for its own.

        Where it comes round to a key again, that one is the last.
        """
        way, at = {client: None}, client
        while len(way) <= STEPS_AT_ONCE:
            at = next(iter(self._waiting[at]))
            if at in way:
                return [*way, at]
            way[at] = None
            if at in self.vouched or at not in self._waiting or self._left(at) < 0:
                break
        return list(way)

    def _hand_along(self, way: Sequence[PeerId]) -> None:
        last = way[-1]
        way = way[way.index(last) :] if last in way[:-1] else way
        some = min(self._waiting[client][peer] for client, peer in itertools.pairwise(way))
        # What goes round a ring comes back and goes round again, so one FLOP is enough for it.
        if way[0] != last and way[0] not in self.vouched:
            some = min(some, self._left(way[0]))
        owed = self._left(last) < 0
        for client, peer in itertools.pairwise(way):
            self._take_from_waiting(client, peer, some)
            self._counted[client, peer] += some
            self._given[client] += some
            self._earned[peer] += some
        if owed:
            self._moved.append(last)

    def _has_to_give(self, client: PeerId) -> bool:
        return client in self.vouched or self._left(client) > 0

    def _left(self, client: PeerId) -> int:
        return self._earned[client] - self._given[client]

    def _take_from_waiting(self, client: PeerId, peer: PeerId, flops: int) -> None:
        waiting = self._waiting[client]
        waiting[peer] -= flops
        if not waiting[peer]:
            del waiting[peer]
        if not waiting:
            del self._waiting[client]
