"""Which processors a worker is held on, and how much of their time it has used. Decides only.

Two workers share none while another is free. Where no control group gives a worker its share of time, it runs on as
many processors as it may have cores. It cannot widen that: the filter of system calls refuses `sched_setaffinity`, and
what it starts inherits it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def processors_for(cores: int, allowed: Collection[int], taken: Mapping[int, int]) -> frozenset[int]:
    """So many of the `allowed` processors; `taken` tells how many others are held on each.

    Those that fewest were given, and of these the last ones, since other programs often stay on the first ones.
    """
    return frozenset(sorted(allowed, key=lambda number: (taken.get(number, 0), -number))[: max(1, cores)])


class ProcessorTime:
    """Sums up the time of living and of ended processes from one look after another.

    A parent that waits for its child is told the child's time; one that does not is not, so that short-lived children
    could work for nothing. The last count of those that have ended is therefore kept.
    """

    def __init__(self) -> None:
        self._last: Mapping[tuple[int, int], tuple[int, int]] = {}
        self._ended = 0

    def add(self, ticks: Mapping[tuple[int, int], tuple[int, int]]) -> int:
        """Ticks of all together, where each living process, by number and birth, has used (own, of children that it
        waited for)."""
        self._ended += sum(own for who, (own, _) in self._last.items() if who not in ticks)
        self._last = ticks
        told = sum(children for _, children in ticks.values())
        return sum(own for own, _ in ticks.values()) + max(told, self._ended)


def ahead_of_cores(ahead: float, cpu_seconds: float, seconds: float, cores: int) -> float:
    """How far a job is ahead of its cores, in seconds of one, after using `cpu_seconds` more in `seconds`.

    It does not save up time that it did not use: one that waited for an hour may not have twice the cores in the next.
    """
    return max(0.0, ahead + cpu_seconds - 1.05 * cores * seconds)


def parse_ticks(text: str) -> tuple[int, int]:
    """Processor time of the process, and of its children that it has waited for, from /proc/PID/stat."""
    # The name, in brackets, may hold spaces and brackets.
    own_user, own_system, children_user, children_system = map(int, text.rpartition(")")[2].split()[11:15])
    return own_user + own_system, children_user + children_system
