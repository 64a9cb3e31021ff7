"""Which processors a worker is held on, so that two share none while another is free. Decides only.

Where no control group gives a worker its share of time, it runs on as many processors as it may have cores. It cannot
widen that: the filter of system calls refuses `sched_setaffinity`, and what it starts inherits it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def processors_for(cores: int, allowed: Collection[int], taken: Mapping[int, int]) -> frozenset[int]:
    """So many of the `allowed` processors; `taken` tells how many others are held on each.

    Those that fewest were given, and of these the last ones, since other programs often stay on the first ones.
    """
    return frozenset(sorted(allowed, key=lambda number: (taken.get(number, 0), -number))[: max(1, cores)])
