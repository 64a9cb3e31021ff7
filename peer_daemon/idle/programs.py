"""Which programs run, and how much of the processor they use: walks through /proc, which cost some milliseconds.

The workers' share comes from a sample that may be a little old, which would make every other look a wrong one. But they
are niced, and the kernel counts niced time apart: so what is not niced is told by the last look alone, and what is
niced, less the workers, by the last two seconds.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

_NAME_LETTERS = 15
"""The kernel keeps no more of a program's name."""
_TOLD = 3
_LEAST_SHARE = 0.1
"""Of one core: who used less is not named."""


class _Process(NamedTuple):
    name: str
    parent: int
    cpu_s: float


class Programs:
    """The programs of this machine that are not ours."""

    def __init__(self, proc: Path, own_pids: Callable[[], Iterable[int]]) -> None:
        self._proc = proc
        self._own_pids = own_pids
        self._tick = 1 / os.sysconf("SC_CLK_TCK")
        self._last: dict[int, _Process] = {}
        self._last_at: float | None = None

    def walk(self, now: float) -> tuple[tuple[str, ...], frozenset[str]]:
        """At most three names of those that used the most since the last walk, and the names of all, in small letters.

        The first walk names nobody as busy.
        """
        processes = self._processes()
        ours = _with_descendants(self._own_pids(), processes)
        used: dict[str, float] = {}
        if self._last_at is not None:
            for pid, process in processes.items():
                # Short-lived ones, as compilers are, began since: all of theirs counts.
                before = self._last.get(pid)
                if pid not in ours:
                    more = process.cpu_s - (before.cpu_s if before else 0.0)
                    used[process.name] = used.get(process.name, 0.0) + more
        passed = 0.0 if self._last_at is None else now - self._last_at
        self._last, self._last_at = processes, now
        most = sorted(used, key=used.__getitem__, reverse=True)[:_TOLD]
        busiest = tuple(name for name in most if used[name] > _LEAST_SHARE * passed)
        return busiest, frozenset(process.name.lower() for pid, process in processes.items() if pid not in ours)

    @property
    def walked(self) -> bool:
        """Whether there was a walk to compare with."""
        return self._last_at is not None

    def forget(self) -> None:
        """The next walk is a first one: what was used since the last is of no interest."""
        self._last, self._last_at = {}, None

    def _processes(self) -> dict[int, _Process]:
        found = {}
        for entry in os.listdir(self._proc):
            if not entry.isdecimal():
                continue
            try:
                text = (self._proc / entry / "stat").read_text(errors="replace")
            except OSError:
                continue  # it ended meanwhile
            name = text[text.index("(") + 1 : text.rindex(")")]
            fields = text[text.rindex(")") + 2 :].split()
            found[int(entry)] = _Process(name, int(fields[1]), (int(fields[11]) + int(fields[12])) * self._tick)
        return found


def named(wanted: frozenset[str], running: frozenset[str]) -> frozenset[str]:
    """Those of `wanted` that run; the kernel may have cut their names."""
    return frozenset(name for name in wanted if name[:_NAME_LETTERS] in running)


def _with_descendants(pids: Iterable[int], processes: dict[int, _Process]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found, waiting = set[int](), list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, []))
    return found


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
    """The processor time of programs that are not ours, from one look to the next."""

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
            # A worker is gone, and its last seconds with it. Niced time is counted anew from here.
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
