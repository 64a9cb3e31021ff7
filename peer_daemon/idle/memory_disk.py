"""What memory and disk are left: /proc/meminfo, /proc/pressure/memory, statvfs."""

from __future__ import annotations

import os
from pathlib import Path


def memory_free_mb(proc: Path) -> int | None:
    """What programs could still get without swapping, in MiB; None where the kernel does not tell."""
    try:
        with (proc / "meminfo").open() as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) // 1024
    except OSError:
        pass
    return None


def memory_pressure(proc: Path) -> float | None:
    """Percent of the last ten seconds in which some program waited for memory; None where the kernel does not tell."""
    try:
        first = (proc / "pressure/memory").read_text().splitlines()[0]
        return float(first.split("avg10=")[1].split()[0])
    except (OSError, IndexError, ValueError):  # the kernel refuses the read when pressure is switched off at boot
        return None


def disk_free_mb(folder: Path) -> int | None:
    """What this user may still write beside `folder`, in MiB; None when it cannot be read."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize // 1024**2
