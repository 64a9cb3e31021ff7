"""The GPUs of this machine, as they were seen (pure values)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from axonp2p.sandbox.gpu_access import DriverFiles


@dataclass(frozen=True)
class SeenGpu:
    """One card of NVIDIA's, as its driver tells of it."""

    uuid: str
    name: str
    memory_mb: int
    capability: str
    """Compute capability: "9.0"."""
    minor: int
    """Its node is /dev/nvidia and this number."""
    sliced: bool = False
    """Cut into slices (MIG), each of which needs nodes of its own."""
    virtual: bool = False
    """A share of a card that a hypervisor gives (vGPU)."""


@dataclass(frozen=True)
class SeenGpus:
    """All that bears on lending GPUs. Nothing of it imports torch, or touches a card."""

    cards: tuple[SeenGpu, ...] = ()
    driver: str = ""
    """Version of NVIDIA's driver: "580.159.04"."""
    driver_cuda: str = ""
    """The newest CUDA that this driver runs: "13.0"."""
    unseen: str = ""
    """Why no card of NVIDIA's is seen; empty where some are."""
    unseen_fix: str = ""
    """The fix for that; empty where there is none."""
    torch_cuda: str = ""
    """The CUDA that the installed torch was built for; empty for a build that computes on processors alone."""
    machine: str = "x86_64"
    """The kind of processor, as `os.uname` names it."""
    files: DriverFiles = field(default_factory=DriverFiles)
    others: tuple[str, ...] = ()
    """Cards of other vendors, each as a sentence says it: "an AMD card"."""


@dataclass(frozen=True)
class GpuProcess:
    """A program that has something on a card."""

    pid: int
    name: str
    """Empty where it cannot be seen from here: the daemon runs in a container of its own."""
    memory_mb: int
    """MiB; 0 where the driver does not tell."""
    computes: bool
    """It computes there (CUDA); a program that only draws does not."""
    busy: int = 0
    """Percent of the card's time that it used since the last look: computing, drawing, films."""


@dataclass(frozen=True)
class GpuLook:
    """One look at one card."""

    uuid: str
    temperature_c: int | None
    processes: tuple[GpuProcess, ...]


Looks = Mapping[str, GpuLook]
"""By UUID."""
