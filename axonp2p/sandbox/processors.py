"""Which processors each worker of a daemon is held on, so that two share none while another is free. Decides only.

Where no control group gives a worker its share of time, it runs on as many processors as it may have cores. It cannot
widen that: the filter of system calls refuses `sched_setaffinity`, and what it starts inherits it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from weakref import WeakKeyDictionary


class HeldProcessors:
    """The workers of one daemon."""

    def __init__(self) -> None:
        # One whose start failed is forgotten together with what stands for it.
        self._held: WeakKeyDictionary[object, frozenset[int]] = WeakKeyDictionary()

    def hold(self, worker: object, cores: int, allowed: Collection[int]) -> frozenset[int]:
        """So many of the `allowed` processors for this worker, instead of those that it had, until `release`.

        Those that other workers were given least often, the last ones first, since other programs often stay on the
        first ones.
        """
        self.release(worker)
        given = Counter(number for held in self._held.values() for number in held)
        chosen = frozenset(sorted(allowed, key=lambda number: (given[number], -number))[: max(1, cores)])
        self._held[worker] = chosen
        return chosen

    def release(self, worker: object) -> None:
        """It has ended, or runs wherever the kernel puts it. Harmless when it is held nowhere."""
        self._held.pop(worker, None)
