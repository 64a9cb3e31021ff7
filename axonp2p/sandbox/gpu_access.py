"""The parts of a GPU and its driver that a sandbox shows. Decides only: names and paths in, binds and variables out.

The list is the driver's own: its libraries of one version, wherever it put them, and the three nodes that CUDA opens.
No other card's node is there, none of the screen (nvidia-modeset, /dev/dri), none of slices (nvidia-caps), and not
nvidia-uvm-tools, through which one process looks at the memory of others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LIBRARIES_INSIDE = "/nvidia"
"""Where the driver's libraries lie in the sandbox."""
THREAD_NAMES = f"{LIBRARIES_INSIDE}/thread-names.so"
"""The library of `thread_names`, without which CUDA does not start."""
OWN_MAPS = "/proc/self/maps"
"""CUDA looks there for addresses that nobody uses, and then asks the kernel for them without insisting, so a list that
is not true does no harm. Without the file it says that memory is short."""
TOLD = ("/proc/devices", "/proc/driver/nvidia/params")
"""Files that the driver's libraries read before they open a node: its numbers, and that nobody is to make nodes."""
CONTROL, MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
NODES = (CONTROL, MEMORY, *(f"/dev/nvidia{minor}" for minor in range(32)))
"""Those that a sandbox may have: both, and one of the others."""
_LIBRARY = re.compile(r"lib(?:cuda|nvidia-(?:ml|ptxjitcompiler|nvvm\d*|gpucomp))\.so(?:\.[0-9.]+)?")


@dataclass(frozen=True)
class DriverFiles:
    """The files that the installed driver put on this machine."""

    version: str = ""
    """"580.159.04"; empty where there is none."""
    nodes: frozenset[str] = frozenset()
    """Paths below /dev that begin with nvidia."""
    libraries: tuple[tuple[str, str], ...] = ()
    """(name, the file that it leads to) of everything in the folder of the driver's libraries."""
    told: tuple[str, ...] = ()
    """Those of `TOLD` that are there."""


@dataclass(frozen=True)
class GpuAccess:
    """One GPU for one sandbox."""

    uuid: str
    """As the driver names it: "GPU-8f3c..."."""
    nodes: tuple[tuple[str, str], ...]
    """(node outside, path inside)"""
    files: tuple[tuple[str, str], ...]
    """(file outside, path inside), read-only: the driver's libraries, and what they read."""
    memory_mb: int
    """MiB of its memory that all processes of the worker may use together."""


def driver_libraries(files: DriverFiles) -> tuple[tuple[str, str], ...]:
    """(file outside, path inside) of those that CUDA loads, of the running driver's version alone."""
    return tuple(
        (file, f"{LIBRARIES_INSIDE}/{name}")
        for name, file in sorted(files.libraries)
        if _LIBRARY.fullmatch(name) and file.endswith(f".so.{files.version}")
    )


def nodes_of(minor: int) -> tuple[str, ...]:
    """The nodes that CUDA opens for the card of this minor number."""
    return CONTROL, MEMORY, f"/dev/nvidia{minor}"


def missing_nodes(files: DriverFiles, minor: int) -> list[str]:
    """Those that the driver has not made yet."""
    return [node for node in nodes_of(minor) if node not in files.nodes]


def missing_libraries(files: DriverFiles) -> list[str]:
    """Names of libraries without which nothing computes on any card."""
    found = {inside.rpartition("/")[2] for _, inside in driver_libraries(files)}
    return [name for name in ("libcuda.so.1", "libnvidia-ptxjitcompiler.so.1") if name not in found]


def gpu_access(files: DriverFiles, uuid: str, minor: int, memory_mb: int) -> GpuAccess:
    """The part of this card that a worker gets."""
    told = tuple((path, path) for path in files.told)
    nodes = tuple((node, node) for node in nodes_of(minor))
    return GpuAccess(uuid, nodes, (*driver_libraries(files), *told), memory_mb)


def gpu_arguments(gpu: GpuAccess) -> list[str]:
    """The part of the bubblewrap command that shows it."""
    words: list[str] = []
    for folder in (LIBRARIES_INSIDE, "/proc", "/proc/driver", "/proc/driver/nvidia"):
        words += ["--perms", "0755", "--dir", folder]
    for outside, inside in gpu.files:
        words += ["--ro-bind", outside, inside]
    for outside, inside in gpu.nodes:
        words += ["--dev-bind", outside, inside]
    return words


def gpu_variables(gpu: GpuAccess) -> dict[str, str]:
    """Its environment variables. `AXON_DEVICE` tells the worker's own code that there is one."""
    return {
        "AXON_DEVICE": "cuda",
        "LD_PRELOAD": THREAD_NAMES,
        "CUDA_VISIBLE_DEVICES": gpu.uuid,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        # The driver's code compiled for this card; gone with the sandbox, so that no job leaves anything for the next.
        "CUDA_CACHE_PATH": "/tmp/cuda",  # noqa: S108
        "CUDA_CACHE_MAXSIZE": str(64 * 1024 * 1024),
    }


def library_path(own: str) -> str:
    """Where the loader looks before its usual places; `own`: where the interpreter's library is, if it must be told."""
    return f"{own}:{LIBRARIES_INSIDE}" if own else LIBRARIES_INSIDE
