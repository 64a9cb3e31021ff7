"""Balances (pure): what receipts add up to, for each key that earned or owes.

`BalanceSums` is a running sum: adding receipts one by one, in any order, gives what `fold` gives for all of them. Sums
are Python's own integers, so no number of receipts makes them overflow.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable

from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.receipt import Balance

CREDITS_A_DAY_AT_A_GFLOPS = 200
_FLOPS_A_DAY_AT_A_GFLOPS = 86400 * 10**9


def credits_of(flops: int) -> float:
    """Credits for so many floating point operations: cobblestones, BOINC's unit, 200 for a day at 1 GFLOPS."""
    return flops * CREDITS_A_DAY_AT_A_GFLOPS / _FLOPS_A_DAY_AT_A_GFLOPS


class BalanceSums:
    """Sums over receipts, each of which must be added once. Of several with one number, one counts: see `receipt`."""

    def __init__(self) -> None:
        self._earned: Counter[PeerId] = Counter()
        self._owed: Counter[PeerId] = Counter()
        self._receipts: Counter[PeerId] = Counter()
        self._between: Counter[tuple[PeerId, PeerId]] = Counter()
        self.receipts = 0
        """How many were added."""

    def add(self, client: PeerId, peer: PeerId, flops: int, receipts: int = 1) -> None:
        """Count a receipt of `client` for `peer`, who are never the same; or so many, of `flops` in all."""
        self._earned[peer] += flops
        self._owed[client] += flops
        self._receipts[client] += receipts
        self._receipts[peer] += receipts
        self._between[client, peer] += receipts
        self.receipts += receipts

    def take_back(self, client: PeerId, peer: PeerId, flops: int, receipts: int = 1) -> None:
        """A receipt that was added counts no more; or so many, of `flops` in all."""
        self.add(client, peer, -flops, -receipts)

    def balance(self, key: PeerId) -> Balance:
        """One key's sums; zeros for a key without receipts."""
        # Reading a Counter does not add the key: strangers may ask for any.
        return Balance(key=key, earned=str(self._earned[key]), owed=str(self._owed[key]), receipts=self._receipts[key])

    def largest(self, most: int, stands: Callable[[PeerId], int] = lambda key: 0) -> list[Balance]:
        """The largest earners first, then the largest debtors; at most so many.

        Before both, those of whose earnings most `stands`, where somebody judges that. May run in a thread of its own.
        """
        known = [key for key, receipts in list(self._receipts.items()) if receipts]

        def order(key: PeerId) -> tuple[int, int, int, PeerId]:
            return -stands(key), -self._earned[key], -self._owed[key], key

        return [self.balance(key) for key in heapq.nsmallest(most, known, key=order)]

    def taking_part(self, keys: Iterable[PeerId]) -> int:
        """How many receipts have one of `keys` on either side, each counted once."""
        wanted = set(keys)
        both = sum(self._between[client, peer] for client in wanted for peer in wanted)
        return sum(self._receipts[key] for key in wanted) - both
