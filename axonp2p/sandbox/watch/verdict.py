"""From what the processes of a sandbox use together to the limit that they went over. Decides only."""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.sandbox.limits import MIB, Limits, task_limit

PRINTED_PER_KEPT = 64
"""A job may print this many times what is kept of its log at once ..."""
PRINTED_BYTES_S = 256 * 1024
"""... and so much more for each second that it has lived: reading a flood costs the daemon its time."""
FILES = 1000
FILES_PER_MB = 64
"""Files that a job may make, and more for each MiB of scratch: each costs about a KiB that no size counts."""

SOCKETS = 128
"""Sockets that a job may have open, the channel aside: each may hold some 400 KiB that count as nobody's memory."""

SPARE_CORE_SECONDS = 10.0
"""How far a job may get ahead of its cores and 5 % more: helper threads that overlap for a moment are no offence."""


@dataclass(frozen=True)
class UsageSample:
    """The resources that the processes of a sandbox used together at one moment."""

    memory_bytes: int = 0
    tasks: int = 0
    """Processes and threads."""
    cpu_seconds: float = 0.0
    """Of the living and of the ended ones."""
    seconds: float = 0.0
    """Since the sandbox was started, those in which it was frozen left out."""
    ahead_seconds: float = 0.0
    """How far it is ahead of its cores: see `processors`."""
    files: int = 0
    """In /tmp."""
    scratch_full: bool = False
    """Nothing more fits into /tmp."""
    sockets: int = 0
    printed_bytes: int = 0


@dataclass(frozen=True)
class LimitVerdict:
    """The limit that was passed, in one word, and in a sentence."""

    limit: str
    reason: str


def verdict(sample: UsageSample, limits: Limits) -> LimitVerdict | None:
    """Which limit the sample is over, or None. Processes come first: while they multiply, every moment counts."""
    tasks = task_limit(limits.processes, limits.cores)
    files = FILES + limits.scratch_mb * FILES_PER_MB
    printed = limits.log_bytes * PRINTED_PER_KEPT + int(sample.seconds * PRINTED_BYTES_S)
    if sample.tasks > tasks:
        return LimitVerdict("processes", f"ran more than the {tasks} processes and threads that are allowed")
    if limits.cpu_seconds and sample.cpu_seconds > limits.cpu_seconds:
        return LimitVerdict("cpu", f"used more than the {limits.cpu_seconds} s of processor time that are allowed")
    if limits.wall_seconds and sample.seconds > limits.wall_seconds:
        return LimitVerdict("time", f"ran longer than the {limits.wall_seconds} s that are allowed")
    if sample.ahead_seconds > SPARE_CORE_SECONDS:
        return LimitVerdict("cores", f"kept more cores busy than the {limits.cores} that are allowed")
    if sample.files > files:
        return LimitVerdict("files", f"made more than the {files} files in /tmp that are allowed")
    if sample.sockets > SOCKETS:
        return LimitVerdict("files", f"opened more than the {SOCKETS} sockets that are allowed")
    if sample.printed_bytes > printed:
        return LimitVerdict("output", f"printed more than the {printed // MIB} MiB that are allowed in its time")
    if sample.memory_bytes > limits.memory_mb * MIB:
        used = sample.memory_bytes // MIB
        return LimitVerdict("memory", f"used {used} MiB of memory where {limits.memory_mb} MiB are allowed")
    return None


def parse_status(text: str) -> tuple[int, int]:
    """Bytes of memory, swapped or not, that is no cache of a file, and threads, from /proc/PID/status.

    Page tables count as well: a job that touches a byte here and there has more of them than of anything else.
    """
    memory = threads = 0
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in ("RssAnon", "RssShmem", "VmSwap", "VmPTE"):
            memory += int(value.split()[0]) * 1024
        elif name == "Threads":
            threads = int(value)
    return memory, threads


def parse_page_tables(text: str) -> int:
    """Bytes of page tables from /proc/PID/status; no process shares its own."""
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmPTE:")), 0)


def parse_sockets(text: str) -> int:
    """Sockets of all kinds in a network, from /proc/PID/net/sockstat."""
    for line in text.splitlines():
        if line.startswith("sockets: used "):
            return int(line.split()[2])
    return 0


def parse_exact(text: str) -> int:
    """The same but page tables, from /proc/PID/smaps_rollup: pages that several share are counted by their share."""
    total = 0
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in ("Pss_Anon", "Pss_Shmem", "SwapPss"):
            total += int(value.split()[0]) * 1024
    return total
