"""Watches all processes of a sandbox together, several times a second; says which limit they went over.

Kernel limits see one process each. Use that they do not show, such as many children with a little memory each, is
seen in the sum. `verdict` decides; the code here looks and acts.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from axonp2p.sandbox.limits import MIB, NICE, Limits, task_limit
from axonp2p.sandbox.watch.freezer import Freezer
from axonp2p.sandbox.watch.init_process import InitProcess
from axonp2p.sandbox.watch.priority import hold_to, lower_sessions
from axonp2p.sandbox.watch.process_tree import birth, descendants, read
from axonp2p.sandbox.watch.processors import ProcessorTime, ahead_of_cores, parse_ticks
from axonp2p.sandbox.watch.verdict import (
    LimitVerdict,
    UsageSample,
    parse_exact,
    parse_page_tables,
    parse_sockets,
    parse_status,
    verdict,
)
from axonp2p.sandbox.watch.worker_group import WorkerGroup

INTERVAL_S = 0.1
FROZEN_INTERVAL_S = 0.5
"""A worker that stands still needs fewer looks."""
RESTING_INTERVAL_S = 5.0
"""And fewer still while nothing but our own code runs, and waits."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Sampler:
    """Looks at the processes below the first process of a sandbox."""

    def __init__(self, first: int, limits: Limits, group: WorkerGroup | None = None) -> None:
        self._first = first
        self._limits = limits
        self._group = group
        self._processor_time = ProcessorTime()
        self._tmp: int | None = None
        self._tasks_allowed = task_limit(limits.processes, limits.cores)
        self._last = time.monotonic()
        self._cpu_seconds = self._seconds = self._ahead_seconds = 0.0
        self.pids: list[int] = []
        """The processes that the last sample found."""

    def take(self, printed_bytes: int, *, frozen: bool = False) -> UsageSample:
        """Their use now. Time in which they are frozen does not count."""
        memory = tasks = 0
        ticks: dict[tuple[int, int], tuple[int, int]] = {}
        self.pids = descendants(self._first, self._tasks_allowed)
        for pid in self.pids:
            try:
                used, threads = parse_status(read(f"/proc/{pid}/status"))
                stat = read(f"/proc/{pid}/stat")
            except OSError:
                continue  # it ended meanwhile
            ticks[pid, birth(stat)] = parse_ticks(stat)
            memory += used
            tasks += threads
        counted = self._processor_time.add(ticks) / _TICKS
        cpu_seconds = self._group.cpu_seconds() if self._group else counted
        files, full = self._scratch()
        passed = self._passed(frozen)
        self._ahead_seconds = ahead_of_cores(
            self._ahead_seconds, cpu_seconds - self._cpu_seconds, passed, self._limits.cores
        )
        self._seconds += passed
        self._cpu_seconds = cpu_seconds
        return UsageSample(
            memory_bytes=memory,
            tasks=tasks,
            cpu_seconds=self._cpu_seconds,
            seconds=self._seconds,
            ahead_seconds=self._ahead_seconds,
            files=files,
            scratch_full=full,
            sockets=self._sockets(),
            printed_bytes=printed_bytes,
        )

    def exact_memory_bytes(self) -> int | None:
        """Memory with each page counted once however many processes share it; None where it cannot be known.

        Slow with large processes, so it is asked only when the quick sum, which counts shared pages again for each
        process, is over the limit.
        """
        total = 0
        for pid in descendants(self._first, self._tasks_allowed):
            try:
                total += parse_page_tables(read(f"/proc/{pid}/status"))
                total += parse_exact(read(f"/proc/{pid}/smaps_rollup"))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            except PermissionError:
                if _memory_bytes(pid):
                    return None  # it made itself unreadable
        return total

    def close(self) -> None:
        """Let go of the sandbox's /tmp, whose memory lives as long as it is held."""
        if self._tmp is not None:
            os.close(self._tmp)
            self._tmp = None

    def _passed(self, frozen: bool) -> float:
        now = time.monotonic()
        passed, self._last = now - self._last, now
        return 0.0 if frozen else passed

    def _sockets(self) -> int:
        """Those in its own network: each may hold messages that count as nobody's memory."""
        try:
            return parse_sockets(read(f"/proc/{self._first}/net/sockstat"))
        except OSError:
            return 0  # it ended

    def _scratch(self) -> tuple[int, bool]:
        """Files in /tmp, and whether it is full."""
        try:
            if self._tmp is None:
                self._tmp = self._open_tmp()
            if self._tmp is None:
                return 0, False
            found = os.fstatvfs(self._tmp)
        except OSError:
            return 0, False  # the sandbox is not built yet, or gone
        return found.f_files - found.f_ffree, not found.f_bfree

    def _open_tmp(self) -> int | None:
        """Held from early on, so that a job cannot hide it later by making its processes unreadable."""
        folder = os.open(f"/proc/{self._first}/root/tmp", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        found = os.fstatvfs(folder)
        if found.f_blocks * found.f_frsize == self._limits.scratch_mb * MIB:
            return folder
        os.close(folder)  # that of the machine: the sandbox is not built yet
        return None


class Watch:
    """A thread that takes samples until one is over a limit, and then ends the sandbox."""

    def __init__(
        self, first: InitProcess, limits: Limits, printed_bytes: Callable[[], int], group: WorkerGroup | None
    ) -> None:
        self._first = first
        self.limits = limits
        """Of which that of memory may change while it is watched."""
        self._printed_bytes = printed_bytes
        self._group = group
        self._verdict: LimitVerdict | None = None
        self._trusted_samples = self._trusted_bytes = 0
        self.last = UsageSample()
        """The findings of the last look."""
        self._held_to: frozenset[int] | None = None
        self._enough, self._woken = threading.Event(), threading.Event()
        self._rests, self._cpu_seconds = False, 0.0
        self.freezer = Freezer(first.pid, task_limit(limits.processes, limits.cores), group, self._evades)
        self._thread = threading.Thread(target=self._run, name=f"watch-{first.pid}", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def rest(self, wish: bool) -> None:
        """Look seldom as long as they use no processor time, or often again and at once."""
        self._rests = wish
        self._woken.set()

    def stop(self) -> LimitVerdict | None:
        """The sandbox has ended: stop watching, and say which limit was passed; blocks for a moment."""
        self._enough.set()
        self._woken.set()
        self._thread.join()
        self.freezer.ended()
        return self._verdict

    def hold_to(self, processors: frozenset[int]) -> None:
        """Let its threads run on these processors only, those too that are born later or move away."""
        self._held_to = processors
        hold_to(processors, self.pids())

    def pids(self) -> list[int]:
        """Its processes; none once it has ended."""
        if self._enough.is_set():
            return []
        return descendants(self._first.pid, task_limit(self.limits.processes, self.limits.cores))

    def _run(self) -> None:
        sampler = Sampler(self._first.pid, self.limits, self._group)
        try:
            while self._verdict is None and not self._waited():
                if found := self._judge(sampler):
                    self._verdict = found
                self._keep(sampler.pids)
            if self._verdict is not None:
                self.kill()
        finally:
            sampler.close()

    def _waited(self) -> bool:
        """Wait until the next look is due, or none is any more."""
        interval_s = FROZEN_INTERVAL_S if self.freezer.frozen else INTERVAL_S
        before, self._cpu_seconds = self._cpu_seconds, self.last.cpu_seconds
        self._woken.wait(RESTING_INTERVAL_S if self._rests and 0 < before == self._cpu_seconds else interval_s)
        self._woken.clear()
        return self._enough.is_set()

    def _keep(self, pids: list[int]) -> None:
        self.freezer.keep()
        if self.limits.priority != "normal" and not self._first.killed:
            lower_sessions(pids, NICE[self.limits.priority])
        if self._held_to is not None:
            hold_to(self._held_to, pids)

    def kill(self) -> None:
        """End all its processes at once."""
        if self._group is not None:
            self._group.kill()
        self._first.kill()
        if self._group is not None:
            self._group.hasten_the_end()

    def end(self, verdict: LimitVerdict) -> None:
        """End it for this; what was found first stays."""
        self._verdict = self._verdict or verdict
        self.kill()

    def _evades(self) -> None:
        self.end(LimitVerdict("", "did not stop when this computer was needed"))

    def _judge(self, sampler: Sampler) -> LimitVerdict | None:
        sample = self.last = sampler.take(self._printed_bytes(), frozen=self.freezer.frozen)
        found = verdict(sample, self.limits)
        if found is None or found.limit != "memory":
            return found
        if self._trusted_samples and sample.memory_bytes <= self._trusted_bytes:
            self._trusted_samples -= 1
            return None
        exact = sampler.exact_memory_bytes()
        judged = found if exact is None else verdict(replace(sample, memory_bytes=exact), self.limits)
        # Children that share much memory are over the limit in every quick sum: look closely once a second only.
        self._trusted_samples, self._trusted_bytes = 10, sample.memory_bytes + 16 * MIB
        return judged


def _memory_bytes(pid: int) -> int:
    """0 also for a process that has ended, which nobody but root may look into."""
    try:
        return parse_status(read(f"/proc/{pid}/status"))[0]
    except OSError:
        return 0
