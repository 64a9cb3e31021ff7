"""The limits of a sandboxed worker, and the kernel limits that hold each of its processes to it. Decides only.

Kernel limits count one process at a time; the sum over all processes is held by `watch`.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Literal

from axonp2p.sandbox.gpu_access import GpuAccess
from axonp2p.sandbox.messages import Start

MIB = 1024 * 1024
GPU_DATA_MB = 4096
"""Memory that CUDA may reserve beside a job's, in MiB. Only touched memory counts at the watch and in the group."""
SCRATCH_MB = 256
"""The most that a job's /tmp may hold, in MiB: it lies in memory, so at most a quarter of the job's memory too."""


Priority = Literal["idle", "low", "normal"]
"""When a job has its turn: when no other program wants one, a tenth as often as others, or as often."""
NICE: dict[Priority, int] = {"idle": 19, "low": 10, "normal": 0}


def scratch_within(*mebibytes: int) -> int:
    """MiB of /tmp for a job with so much memory, and disk where that is limited too."""
    return max(1, min(SCRATCH_MB, *(one // 4 for one in mebibytes)))


@dataclass(frozen=True)
class Limits:
    """The resources that one worker may use, all its processes together unless another unit is named."""

    cores: int
    memory_mb: int
    """MiB of memory that is not a cache of files."""
    scratch_mb: int
    """MiB of /tmp, /dev/shm included."""
    processes: int = 64
    """Processes and threads, beside the pools of threads that `cores` bring."""
    open_files: int = 256
    """A process."""
    cpu_seconds: int = 0
    """0: no limit."""
    wall_seconds: int = 0
    """Seconds from its start, those in which it is frozen left out; 0: no limit."""
    log_bytes: int = MIB
    """How much of stdout and stderr is kept: half from the start, half from the end."""
    executes: bool = False
    """Whether programs of /job may be executed. A file that the worker wrote itself never is."""
    priority: Priority = "idle"
    """Its place among the other programs of this machine."""
    gpu: GpuAccess | None = None
    """The graphics processor that it has for itself."""

    def start(self) -> Start:
        """The message by which the worker learns the limits to lay on itself."""
        return Start(
            cores=self.cores,
            memory_mb=self.memory_mb,
            processes=self.processes,
            open_files=self.open_files,
            file_mb=self.scratch_mb,
            cpu_seconds=self.cpu_seconds,
            executes=self.executes,
            devices=[inside for _, inside in self.gpu.nodes] if self.gpu else [],
        )


def task_limit(processes: int, cores: int) -> int:
    """Processes and threads that may live at a time: torch keeps up to three pools of one thread a core."""
    return processes + 4 * cores


def kernel_task_limit(processes: int, cores: int) -> int:
    """Where the kernel stops them: a little above, so that the watch sees who goes over, and can say so."""
    return task_limit(processes, cores) + 8


def kernel_limits(start: Start, kernel: tuple[int, int]) -> list[tuple[int, int]]:
    """(resource, value) for `setrlimit`, soft and hard alike, on a kernel of that version."""
    reserved = GPU_DATA_MB if start.devices else 0
    limits = [
        # Data and not address space, of which torch reserves many times what it uses. Stacks and reserves of
        # malloc count as data before they are touched, so this is above what the watch allows to be used.
        (resource.RLIMIT_DATA, (start.memory_mb + 256 + 16 * start.cores + reserved) * MIB),
        (resource.RLIMIT_NOFILE, start.open_files),
        (resource.RLIMIT_FSIZE, start.file_mb * MIB),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 64 * 1024),
    ]
    if kernel >= (5, 14):
        # Older kernels count all of the person's processes against it, those outside of the sandbox too.
        limits.append((resource.RLIMIT_NPROC, kernel_task_limit(start.processes, start.cores)))
        # Timers and signals that wait; the kernel has so many for each person, too.
        limits.append((resource.RLIMIT_SIGPENDING, 1024))
    if start.cpu_seconds:
        # A little later than the watch, which can say why.
        limits.append((resource.RLIMIT_CPU, start.cpu_seconds + 5))
    return limits
