"""Attacks from a sandbox whose GPU is played by devices that do nothing: `python -m ... FOLDER`; prints JSON.

FOLDER has the nodes, named as below /dev, and a file that stands for the driver's library.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from axonp2p.sandbox.attacks.run import try_the_wall
from axonp2p.sandbox.gpu_access import GpuAccess, nodes_of

LIBRARY = "libcuda.so.1"


def played(folder: Path) -> GpuAccess:
    """The card with number 0."""
    nodes = tuple((str(folder / Path(node).name), node) for node in nodes_of(0))
    return GpuAccess("GPU-played", nodes, ((str(folder / LIBRARY), f"/nvidia/{LIBRARY}"),), memory_mb=1024)


if __name__ == "__main__":
    print(msgspec.json.encode(asyncio.run(try_the_wall(played(Path(sys.argv[1]))))).decode())
