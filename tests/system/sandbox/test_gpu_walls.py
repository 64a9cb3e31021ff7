"""A sandbox with a GPU, where there is none: its nodes are devices that do nothing, and the attacks are real."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from axonp2p.sandbox.attacks.attack import Tried
from axonp2p.sandbox.attacks.run import try_the_wall
from axonp2p.sandbox.card_trial import why_no_cuda
from axonp2p.sandbox.gpu_access import nodes_of
from tests.system.sandbox.hostile import played_gpu
from tests.system.sandbox.hostile.users import AS_ANYBODY, AS_ROOT, run_as, why_not


@pytest.fixture
def nodes() -> Iterator[str]:
    """A folder with nodes of /dev/null under the names of a card's, which everybody may open as they may a card's."""
    if os.getuid():
        pytest.skip("only root can make the nodes of a played GPU")
    with tempfile.TemporaryDirectory(prefix="axon-gpu-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for path in nodes_of(0):
            node = folder / Path(path).name
            os.mknod(node, stat.S_IFCHR | 0o666, os.stat("/dev/null").st_rdev)
            node.chmod(0o666)
        (folder / played_gpu.LIBRARY).write_bytes(b"no library")
        yield name


@pytest.mark.parametrize("who", [AS_ROOT, AS_ANYBODY])
def test_no_attack_gets_beyond_the_card_that_it_was_given(nodes: str, who: str) -> None:
    if why := why_not(who):
        pytest.skip(why)
    done = run_as(who, played_gpu.__name__, 60, nodes)
    assert done.returncode == 0, done.stderr[-4000:]
    tried = {one.name: one for one in msgspec.json.decode(done.stdout, type=list[Tried])}
    assert [f"{one.name}: {one.said}" for one in tried.values() if not one.held] == []
    # By the wall, and not because nothing was there to be asked.
    assert tried["other-requests-to-gpu"].said == "Operation not permitted"
    assert tried["left-in-gpu-cache"].said != "there is no such place"
    assert tried["settings-of-gpu"].said.startswith("not run:")


async def test_a_card_on_which_nothing_computes_is_told_as_that(nodes: str) -> None:
    why = await why_no_cuda(played_gpu.played(Path(nodes)), "normal")
    assert why.startswith("its library cannot be loaded: /nvidia/libcuda.so.1: ")


async def test_a_sandbox_without_one_makes_no_attack_on_it() -> None:
    names = {one.name for one in await try_the_wall()}
    assert not [name for name in names if "gpu" in name]
