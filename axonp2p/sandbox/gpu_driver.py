"""Looks at the machine: which nodes and libraries the GPU driver put there (a door)."""

from __future__ import annotations

import os
from pathlib import Path

from axonp2p.sandbox.gpu_access import TOLD, DriverFiles

_LOADED = "/libnvidia-ml.so"


def find_driver(version: str, root: Path = Path("/")) -> DriverFiles:
    """The parts of the driver of this version. `root`: where /dev and the library folders are."""
    folder = library_folder((root / "proc/self/maps").read_text(errors="replace")) if version else None
    if folder is None:
        return DriverFiles()
    told = tuple(path for path in TOLD if (root / path.lstrip("/")).is_file())
    return DriverFiles(version, frozenset(_nodes(root / "dev")), tuple(_libraries(folder)), told)


def library_folder(maps: str) -> Path | None:
    """The folder out of which this process loaded the library that manages GPUs, from /proc/self/maps."""
    for line in maps.splitlines():
        path = line[line.find("/") :] if "/" in line else ""
        if _LOADED in path:
            return Path(path).parent
    return None


def _nodes(devices: Path) -> list[str]:
    try:
        return [f"/dev/{name}" for name in os.listdir(devices) if name.startswith("nvidia")]
    except OSError:
        return []


def _libraries(folder: Path) -> list[tuple[str, str]]:
    try:
        return [(path.name, str(path.resolve())) for path in folder.iterdir() if ".so" in path.name]
    except OSError:
        return []
