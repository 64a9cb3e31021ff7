"""Watches all processes of a sandbox together, several times a second; says which limit they went over.

Kernel limits see one process each. What hides from them, such as many children with a little memory each, is seen in
the sum. `verdict` decides; here is who looks and who acts.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import psutil

from axonp2p.sandbox.launch import FirstProcess
from axonp2p.sandbox.limits import MIB, Limits, task_limit
from axonp2p.sandbox.priority import lower_sessions
from axonp2p.sandbox.verdict import Sample, Verdict, parse_exact, parse_status, parse_ticks, verdict

INTERVAL_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")


class Sampler:
    """Looks at the processes below the first process of a sandbox."""

    def __init__(self, first: int, limits: Limits) -> None:
        self._first = first
        self._limits = limits
        self._tmp: int | None = None
        self._tasks_allowed = task_limit(limits.processes, limits.cores)
        self._started = time.monotonic()
        self.pids: list[int] = []
        """What the last sample found."""

    def take(self, printed_bytes: int) -> Sample:
        """What they use now."""
        memory = tasks = ticks = 0
        self.pids = descendants(self._first, self._tasks_allowed)
        for pid in self.pids:
            try:
                used, threads = parse_status(_read(f"/proc/{pid}/status"))
                ticks += parse_ticks(_read(f"/proc/{pid}/stat"))
            except OSError:
                continue  # it ended meanwhile
            memory += used
            tasks += threads
        return Sample(
            memory_bytes=memory,
            tasks=tasks,
            cpu_seconds=ticks / _TICKS,
            seconds=time.monotonic() - self._started,
            files=self._files(),
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
                total += parse_exact(_read(f"/proc/{pid}/smaps_rollup"))
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

    def _files(self) -> int:
        try:
            if self._tmp is None:
                self._tmp = self._open_tmp()
            if self._tmp is None:
                return 0
            found = os.fstatvfs(self._tmp)
        except OSError:
            return 0  # the sandbox is not built yet, or gone
        return found.f_files - found.f_ffree

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

    def __init__(self, first: FirstProcess, limits: Limits, printed_bytes: Callable[[], int]) -> None:
        self._first = first
        self._limits = limits
        self._printed_bytes = printed_bytes
        self._verdict: Verdict | None = None
        self._trusted_samples = self._trusted_bytes = 0
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{first.pid}", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> Verdict | None:
        """Stop watching and say which limit was passed; blocks for a moment."""
        self._enough.set()
        self._thread.join()
        return self._verdict

    def _run(self) -> None:
        sampler = Sampler(self._first.pid, self._limits)
        try:
            while self._verdict is None and not self._enough.wait(INTERVAL_S):
                self._verdict = self._judge(sampler)
                lower_sessions(sampler.pids)
            if self._verdict is not None:
                self._first.kill()
        finally:
            sampler.close()

    def _judge(self, sampler: Sampler) -> Verdict | None:
        sample = sampler.take(self._printed_bytes())
        found = verdict(sample, self._limits)
        if found is None or found.limit != "memory":
            return found
        if self._trusted_samples and sample.memory_bytes <= self._trusted_bytes:
            self._trusted_samples -= 1
            return None
        exact = sampler.exact_memory_bytes()
        judged = found if exact is None else verdict(replace(sample, memory_bytes=exact), self._limits)
        # Children that share much memory are over the limit in every quick sum: look closely once a second only.
        self._trusted_samples, self._trusted_bytes = 10, sample.memory_bytes + 16 * MIB
        return judged


def _memory_bytes(pid: int) -> int:
    """0 also for a process that has ended, which nobody but root may look into."""
    try:
        return parse_status(_read(f"/proc/{pid}/status"))[0]
    except OSError:
        return 0


def descendants(first: int, enough: int) -> list[int]:
    """`first` and all processes below it; stops soon after `enough` were found."""
    if not os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children"):
        # A kernel without CONFIG_PROC_CHILDREN: look through all processes of the machine.
        try:
            return [first, *(child.pid for child in psutil.Process(first).children(recursive=True))]
        except psutil.NoSuchProcess:
            return []
    found: list[int] = []
    waiting = [first]
    while waiting and len(found) <= enough:
        pid = waiting.pop()
        found.append(pid)
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                waiting += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
        except OSError:
            continue  # it ended meanwhile
    return found


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
