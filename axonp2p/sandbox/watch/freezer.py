"""Makes all processes of a sandbox stand still, and go on.

Where a control group of ours holds the worker, the kernel does it in one stroke. Elsewhere each process is stopped by
a signal that it can neither catch nor ignore. Meanwhile others may be born, so this is repeated until a look finds
everyone stopped and nobody new; nobody is left then who could wake the others.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat

from axonp2p.sandbox.watch.process_tree import birth, descendants, read, signal_process, state, threads_of
from axonp2p.sandbox.watch.worker_group import WorkerGroup

PATIENCE_S = 1.0
"""How long `freeze` looks again before it returns or gives up, in seconds."""
_BETWEEN_LOOKS_S = 0.002
_AT_REST = frozenset("TtZX")
_DEEPLY = "D"


@dataclass(frozen=True)
class SeenProcess:
    """One process of a sandbox at one moment."""

    born: int
    """Ticks since the machine was started: with its number this names one process for ever."""
    states: str
    """One letter for each thread."""


@dataclass(frozen=True)
class Look:
    """The result of one look at the processes of a sandbox."""

    to_stop: tuple[int, ...]
    """Numbers of those that do not stand still."""
    unasked: tuple[int, ...]
    """Those among them that were not told to before: they run on at full speed."""
    still: bool
    """Everyone stands still, and nobody is new since the last look."""


def judge(now: Mapping[int, SeenProcess], before: Mapping[int, SeenProcess], asked: set[tuple[int, int]]) -> Look:
    """The result of two looks at the processes, by number; `asked` are (number, born) of those told to stop already."""
    to_stop = tuple(pid for pid, seen in now.items() if not _stands((pid, seen.born) in asked, seen))
    unasked = tuple(pid for pid in to_stop if (pid, now[pid].born) not in asked)
    new = any(pid not in before or before[pid].born != seen.born for pid, seen in now.items())
    return Look(to_stop, unasked, still=not to_stop and not new)


def _stands(asked: bool, seen: SeenProcess) -> bool:
    # A thread deep in the kernel, such as one that waits for its stopped child of vfork, stops before it does
    # anything else of its own.
    return all(letter in _AT_REST or (asked and letter == _DEEPLY) for letter in seen.states)


class Freezer:
    """Freezes and thaws one sandbox; its methods may be called from any thread."""

    def __init__(self, first: int, enough: int, group: WorkerGroup | None, give_up: Callable[[], None]) -> None:
        """`first` is the sandbox's first process; no more than about `enough` are looked for. `give_up` ends a
        sandbox that cannot be brought to rest."""
        self.frozen = False
        self._first = first
        self._enough = enough
        self._group = group
        self._give_up = give_up
        self._ended = False
        self._one_at_a_time = threading.Lock()

    def ended(self) -> None:
        """Nothing is left of the sandbox, whose number may be given to another process now: nobody is touched any more.

        Waits for a `freeze` that has begun.
        """
        with self._one_at_a_time:
            self._ended, self.frozen = True, False

    def freeze(self) -> None:
        """Return when every process stands still; blocks for milliseconds, at most a second.

        On a machine that is all busy a stopped process may have to wait for its turn to stand still. It does nothing
        of its own until then, so it is not waited for longer. A sandbox whose processes evade is ended.
        """
        with self._one_at_a_time:
            if self.frozen or self._ended:
                return
            self.frozen = True
            if self._group is None:
                self._stop_all()
            else:
                self._freeze_group(self._group)

    def thaw(self) -> None:
        """Let all processes go on."""
        with self._one_at_a_time:
            if not self.frozen:
                return
            self.frozen = False
            if self._group is not None:
                self._group.freeze(False)
                return
            for pid, seen in self._look().items():
                signal_process(pid, seen.born, signal.SIGCONT)

    def keep(self) -> None:
        """Stop again who was woken from outside; nothing unless frozen."""
        with self._one_at_a_time:
            if self.frozen and self._group is None:
                found = self._look()
                for pid in judge(found, found, set()).to_stop:
                    signal_process(pid, found[pid].born, signal.SIGSTOP)

    def _stop_all(self) -> None:
        until = time.monotonic() + PATIENCE_S
        before: dict[int, SeenProcess] = {}
        asked: set[tuple[int, int]] = set()
        while True:
            now = self._look()
            look = judge(now, before, asked)
            if look.still:
                return
            for pid in look.to_stop:
                signal_process(pid, now[pid].born, signal.SIGSTOP)
                asked.add((pid, now[pid].born))
            if time.monotonic() > until:
                if look.unasked:
                    self._give_up()
                return
            before = now
            time.sleep(_BETWEEN_LOOKS_S)

    def _freeze_group(self, group: WorkerGroup) -> None:
        group.freeze(True)
        until = time.monotonic() + PATIENCE_S
        while not group.is_frozen() and time.monotonic() < until:
            time.sleep(_BETWEEN_LOOKS_S)

    def _look(self) -> dict[int, SeenProcess]:
        found = {}
        for pid in descendants(self._first, self._enough):
            try:
                found[pid] = SeenProcess(
                    birth(read(f"/proc/{pid}/stat")), "".join(map(_state, threads_of(pid), repeat(pid)))
                )
            except OSError:
                continue  # it ended meanwhile
        return found


def _state(thread: int, pid: int) -> str:
    try:
        return state(read(f"/proc/{pid}/task/{thread}/stat"))
    except OSError:
        return ""  # it ended meanwhile; others of its process may not have
