"""Watches all processes of a sandbox together, several times a second, and says which limit they went over.

Kernel limits see one process each. What hides from them, such as many children with a little memory each, is seen in
the sum. `verdict` decides; `Sampler` looks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import psutil

from axonp2p.sandbox.launch import FirstProcess
from axonp2p.sandbox.limits import MIB, Limits, task_limit

INTERVAL_S = 0.1
PRINTED_PER_KEPT = 1024
"""A job may print this many times what is kept of its log."""
FILES = 1000
FILES_PER_MB = 64
"""Files that a job may make, and more for each MiB of scratch: each costs about a KiB that no size counts."""

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """What the processes of a sandbox use together at one moment."""

    memory_bytes: int = 0
    tasks: int = 0
    """Processes and threads."""
    cpu_seconds: float = 0.0
    """Of the living and of the ended ones."""
    files: int = 0
    """In /tmp."""
    printed_bytes: int = 0


@dataclass(frozen=True)
class Verdict:
    """The limit that was passed, in one word, and in a sentence."""

    limit: str
    reason: str


def verdict(sample: Sample, limits: Limits) -> Verdict | None:
    """Which limit the sample is over, or None. Processes come first: while they multiply, every moment counts."""
    tasks = task_limit(limits.processes, limits.cores)
    files = FILES + limits.scratch_mb * FILES_PER_MB
    printed = limits.log_bytes * PRINTED_PER_KEPT
    if sample.tasks > tasks:
        return Verdict("processes", f"ran more than the {tasks} processes and threads that are allowed")
    if limits.cpu_seconds and sample.cpu_seconds > limits.cpu_seconds:
        return Verdict("cpu", f"used more than the {limits.cpu_seconds} s of processor time that are allowed")
    if sample.files > files:
        return Verdict("files", f"made more than the {files} files in /tmp that are allowed")
    if sample.printed_bytes > printed:
        return Verdict("output", f"printed more than the {printed // MIB} MiB that are allowed")
    if sample.memory_bytes > limits.memory_mb * MIB:
        used = sample.memory_bytes // MIB
        return Verdict("memory", f"used {used} MiB of memory where {limits.memory_mb} MiB are allowed")
    return None


class Sampler:
    """Looks at the processes below the first process of a sandbox."""

    def __init__(self, first: int, limits: Limits) -> None:
        self._first = first
        self._limits = limits
        self._tmp: int | None = None
        self._tasks_allowed = task_limit(limits.processes, limits.cores)

    def take(self, printed_bytes: int) -> Sample:
        """What they use now."""
        memory = tasks = ticks = 0
        for pid in descendants(self._first, self._tasks_allowed):
            try:
                used, threads = parse_status(_read(f"/proc/{pid}/status"))
                ticks += parse_ticks(_read(f"/proc/{pid}/stat"))
            except OSError:
                continue  # it ended meanwhile
            memory += used
            tasks += threads
        return Sample(memory, tasks, ticks / _TICKS, self._files(), printed_bytes)

    def exact_memory_bytes(self) -> int | None:
        """Memory with each page counted once however many processes share it; None where it cannot be known.

        Slow with large processes, so it is asked only when the quick sum, which counts shared pages again for each
        process, is over the limit.
        """
        total = 0
        for pid in descendants(self._first, self._tasks_allowed):
            try:
                total += parse_exact(_read(f"/proc/{pid}/smaps_rollup"))
            except ProcessLookupError:
                continue  # it ended meanwhile
            except OSError:
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


def parse_status(text: str) -> tuple[int, int]:
    """Bytes of memory, swapped or not, that is no cache of a file, and threads, from /proc/PID/status."""
    memory = threads = 0
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in ("RssAnon", "RssShmem", "VmSwap"):
            memory += int(value.split()[0]) * 1024
        elif name == "Threads":
            threads = int(value)
    return memory, threads


def parse_ticks(text: str) -> int:
    """Processor time of the process and of its children that it has seen end, from /proc/PID/stat."""
    # The name, in brackets, may hold spaces and brackets.
    fields = text.rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


def parse_exact(text: str) -> int:
    """The same from /proc/PID/smaps_rollup, with pages that several processes share counted by their share."""
    total = 0
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in ("Pss_Anon", "Pss_Shmem", "SwapPss"):
            total += int(value.split()[0]) * 1024
    return total


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
