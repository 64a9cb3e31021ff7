"""Where a worker finds the modules of the wheels that its job brought."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from axonp2p.jobs.file_names import WHEELS_FOLDER
from axonp2p.wheels.bundled import UNPACKED

_OWN = "/axon"
"""Where Axon itself lies in a sandbox: nothing that a job brings comes before it."""


def use_wheels(bundle: Path) -> None:
    """Look for modules in the unpacked wheels of the bundle, here and in all that this process will start.

    They come before the packages of the peer: the job was resolved with them. Nothing happens where there are none.
    """
    folders = sorted(str(folder) for folder in bundle.glob(f"{WHEELS_FOLDER}/*/{UNPACKED}"))
    new = [folder for folder in folders if folder not in sys.path]
    if not new:
        return
    sys.path[:] = with_folders(sys.path, new)
    before = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    os.environ["PYTHONPATH"] = os.pathsep.join(with_folders(before, new))
    importlib.invalidate_caches()


def with_folders(path: list[str], folders: list[str]) -> list[str]:
    """`path` with `folders`: behind Axon's own, before all else."""
    at = path.index(_OWN) + 1 if _OWN in path else 0
    return [*path[:at], *folders, *path[at:]]
