"""Look at this machine: cores, memory, disk, GPUs, packages, and once its speed. Never imports torch."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

import msgspec

from axonp2p.files import write_whole
from axonp2p.logs import get_logger
from axonp2p.sandbox.walls import landlock
from axonp2p.wheels.platforms import own_platform
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Count, Line, Number
from peer_daemon.gpus.nvml import see_gpus
from peer_daemon.lending.offer import (
    Distribution,
    LendingLimits,
    MeasuredMachine,
    lent_cores,
    packages_worth_naming,
    with_gflops,
)
from peer_daemon.lending.speed import thread_environment

log = get_logger(__name__)

_MIB = 2**20
_SPEED_TIMEOUT_S = 60
SPEED_FILE = "hardware.json"
"""In the peer's home."""
_CGROUP = Path("/sys/fs/cgroup")


class MeasuredSpeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """HOME/hardware.json: a speed, and what it was measured on."""

    processor: Line
    cores: Count
    numpy: Line
    gflops: Number


async def look_at_machine(home: Path, limits: LendingLimits) -> MeasuredMachine:
    """Everything that a row says about this machine; measures the speed the first time only (about a second)."""
    machine = await asyncio.to_thread(look, home)
    cores = lent_cores(machine.cores, limits)
    return with_gflops(machine, await _speed(home / SPEED_FILE, cores))


def look(home: Path) -> MeasuredMachine:
    """The machine as it can be seen at once, without its speed. Blocks some milliseconds."""
    return MeasuredMachine(
        cores=_cores(),
        memory_mb=_memory_bytes() // _MIB,
        disk_mb=shutil.disk_usage(home).free // _MIB,
        gflops=0,
        python=platform.python_version(),
        packages=packages_worth_naming(distributions()),
        gpus=see_gpus(),
        landlock=landlock.version(),
        platform=str(own_platform() or ""),
    )


async def _speed(cache: Path, cores: int) -> float:
    processor, numpy = processor_model(), importlib.metadata.version("numpy")
    known = await asyncio.to_thread(_read, cache)
    if known is not None and (known.processor, known.cores, known.numpy) == (processor, cores, numpy):
        return known.gflops
    gflops = await _measure_speed(cores)
    if gflops:
        measured = MeasuredSpeed(processor, cores, numpy, gflops)
        await asyncio.to_thread(write_whole, cache, msgspec.json.encode(measured))
    log.info("speed measured", gflops=gflops, cores=cores)
    return gflops


def _read(cache: Path) -> MeasuredSpeed | None:
    try:
        return decode_json(cache.read_bytes(), MeasuredSpeed)
    except (OSError, msgspec.DecodeError):
        return None  # not there, or of another version: measured again


async def _measure_speed(cores: int) -> float:
    """GFLOPS, or 0 when the measurement failed: the peer can still lend, and clients see that it claims nothing."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "peer_daemon.lending.speed", str(cores)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | thread_environment(cores),
    )
    try:
        printed, complaint = await asyncio.wait_for(child.communicate(), _SPEED_TIMEOUT_S)
        return float(printed)
    except TimeoutError:
        log.warning("speed not measured", reason=f"no result within {_SPEED_TIMEOUT_S} s")
    except ValueError:
        log.warning("speed not measured", reason=complaint.decode(errors="replace").strip()[-200:])
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return 0.0


def _cores() -> int:
    """Cores that this process may use: the machine's, less what affinity or a container's quota takes away."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = (_CGROUP / "cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, int(quota) // int(period))
    except (OSError, ValueError):
        pass  # no cgroup v2 here: no quota
    return max(1, cores)


def _memory_bytes() -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(total, int((_CGROUP / "memory.max").read_text()))
    except (OSError, ValueError):
        return total  # no cgroup v2 here, or "max"


def processor_model() -> str:
    """The processor's model, so that a home that moved to another machine is measured again."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def distributions() -> Iterator[Distribution]:
    """The packages that are installed here, first on the path first."""
    for one in importlib.metadata.distributions():
        # Each attribute of `one` would read the file again, and parse the project's description at its end.
        # They also raise for an empty file, once a program has loaded the importlib-metadata of PyPI.
        text = one.read_text("METADATA")
        head = HeaderParser().parsestr(text or one.read_text("PKG-INFO") or one.read_text("") or "")
        if head["Name"]:
            requires = head.get_all("Requires-Dist") if text else one.requires
            yield Distribution(head["Name"], head["Version"], tuple(requires or ()))
