"""A sandbox with a GPU, where there is none: its nodes are devices that do nothing, and the attacks are real."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from axonp2p.sandbox.attacks.run import try_the_wall
from axonp2p.sandbox.gpu_access import GpuAccess

NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")


@pytest.fixture
def played_gpu(tmp_path: Path) -> GpuAccess:
    """Nodes of /dev/null under other names, and a file for the driver's library."""
    if os.getuid():
        pytest.skip("only root can make the nodes of a played GPU")
    tmp_path.chmod(0o755)
    nodes = []
    for path in NODES:
        node = tmp_path / Path(path).name
        os.mknod(node, stat.S_IFCHR | 0o666, os.stat("/dev/null").st_rdev)
        node.chmod(0o666)
        nodes.append((str(node), path))
    library = tmp_path / "libcuda.so.1"
    library.write_bytes(b"no library")
    return GpuAccess("GPU-1", tuple(nodes), ((str(library), "/nvidia/libcuda.so.1"),), memory_mb=1024)


@pytest.mark.sandbox
async def test_no_attack_gets_beyond_the_card_that_it_was_given(played_gpu: GpuAccess) -> None:
    tried = {one.name: one for one in await try_the_wall(played_gpu)}
    assert [f"{one.name}: {one.said}" for one in tried.values() if not one.held] == []
    # By the wall, and not because nothing was there to be asked.
    assert tried["other-requests-to-gpu"].said == "Operation not permitted"
    assert tried["left-in-gpu-cache"].said != "there is no such place"
    assert tried["settings-of-gpu"].said.startswith("not run:")


@pytest.mark.sandbox
async def test_a_sandbox_without_one_makes_no_attack_on_it() -> None:
    names = {one.name for one in await try_the_wall()}
    assert not [name for name in names if "gpu" in name]
