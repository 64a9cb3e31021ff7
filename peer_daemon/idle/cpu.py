"""How much of the processor other programs use: the whole of /proc/stat less what is ours.

The workers' share comes from a sample that may be a little old, which would make every other look a wrong one. But they
are niced, and the kernel counts niced time apart: so what is not niced is told by the last look alone, and what is
niced, less the workers, by the last two seconds.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import NamedTuple

_NICED_OVER_S = 2.0
_LEAST_LOOK_S = 0.1


class _Look(NamedTuple):
    """Sums since the machine started, in seconds, but for `now`."""

    now: float
    all: float
    """Of all cores, idle or not."""
    plain: float
    niced: float
    daemon: float
    workers: float


class OthersCpu:
    """What programs that are not ours used from one look to the next."""

    def __init__(self, proc: Path) -> None:
        self._stat = proc / "stat"
        self._tick = 1 / os.sysconf("SC_CLK_TCK")
        self._looks: deque[_Look] = deque()
        self._share = 0.0

    def look(self, now: float, daemon_cpu_s: float, workers_cpu_s: float) -> float:
        """Share of all cores, 0 to 1, since the last look; the first one knows nothing and tells 0.

        Both sums are of processor seconds so far, the workers' of those that live now. Raises `OSError` without /proc.
        """
        if self._looks and now - self._looks[-1].now < _LEAST_LOOK_S:
            return self._share
        with self._stat.open() as file:
            user, nice, system, idle, waiting, irq, softirq, stolen = map(int, file.readline().split()[1:9])
        every = user + nice + system + idle + waiting + irq + softirq + stolen
        plain = user + system + irq + softirq
        look = _Look(now, every * self._tick, plain * self._tick, nice * self._tick, daemon_cpu_s, workers_cpu_s)
        if self._looks and look.workers < self._looks[-1].workers:
            # A worker is gone, and its last seconds with it. What is niced is counted anew from here.
            self._looks = deque([self._looks[-1]._replace(workers=look.workers, niced=look.niced)])
        if self._looks:
            self._share = min(1.0, max(0.0, self._plain(look) + self._niced(look)))
        self._looks.append(look)
        while len(self._looks) > 1 and now - self._looks[1].now >= _NICED_OVER_S:
            self._looks.popleft()
        return self._share

    def _plain(self, look: _Look) -> float:
        last = self._looks[-1]
        return (look.plain - last.plain - (look.daemon - last.daemon)) / max(look.all - last.all, self._tick)

    def _niced(self, look: _Look) -> float:
        first = self._looks[0]
        return (look.niced - first.niced - (look.workers - first.workers)) / max(look.all - first.all, self._tick)
