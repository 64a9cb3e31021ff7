"""A peer with a played GPU, from the row to the sandbox: who asks for it has it, and who does not has none of it.

The driver is played by a module, the card by nodes that do nothing, in a /dev that only this peer sees. What a card
does, no test here says (`sandbox/test_on_a_card.py` does, where there is one).
"""

from __future__ import annotations

import json
import os
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import axonp2p
from axonp2p.errors import NobodyFits
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.small_job import write_command

LOADED = Path("/lib/x86_64-linux-gnu/libdl.so.2")
"""Any library that can be loaded: it stands for the driver's."""

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(180),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make the nodes of a played GPU"),
    pytest.mark.skipif(not LOADED.exists() or not shutil.which("unshare"), reason="no library to play the driver's"),
]

PLAYED_NVML = """
    from types import SimpleNamespace
    NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2
    class NVMLError(Exception):
        pass
    def nvmlInit(): pass
    def nvmlShutdown(): pass
    def nvmlSystemGetDriverVersion(): return "999.1"
    def nvmlSystemGetCudaDriverVersion_v2(): return 13000
    def nvmlDeviceGetCount(): return 1
    def nvmlDeviceGetHandleByIndex(index): return index
    def nvmlDeviceGetHandleByUUID(uuid): return 0
    def nvmlDeviceGetCudaComputeCapability(handle): return 8, 6
    def nvmlDeviceGetVirtualizationMode(handle): raise NVMLError("Not Supported")
    def nvmlDeviceGetMigMode(handle): raise NVMLError("Not Supported")
    def nvmlDeviceGetUUID(handle): return "GPU-played"
    def nvmlDeviceGetName(handle): return "Played Card"
    def nvmlDeviceGetMemoryInfo(handle): return SimpleNamespace(total=8192 * 2**20)
    def nvmlDeviceGetMinorNumber(handle): return 1
    def nvmlDeviceGetTemperature(handle, sensor): return 40
    def nvmlDeviceGetComputeRunningProcesses(handle): return []
    def nvmlDeviceGetGraphicsRunningProcesses(handle): return []
    def nvmlDeviceGetProcessUtilization(handle, since): raise NVMLError("Not Found")
"""
OWN_DEVICES = """
    set -e
    mount -t tmpfs -o mode=755 none "$0/dev"
    for name in null zero full random urandom tty; do cp -a "/dev/$name" "$0/dev/"; done
    for name in ctl -uvm -uvm-tools -modeset 0 1; do mknod -m 666 "$0/dev/nvidia$name" c 1 3; done
    mkdir "$0/dev/shm"
    ln -s /proc/self/fd "$0/dev/fd"
    mount --rbind "$0/dev" /dev
    export PYTHONPATH="$0/modules" LD_LIBRARY_PATH="$0/driver" AXON_PEER_GPU=true
    exec "$@"
"""
LOOK_AROUND = """
    import json, os, pathlib
    seen = {name: value for name, value in os.environ.items() if "CUDA" in name or name == "AXON_DEVICE"}
    def can_open(node):
        try:
            os.close(os.open(f"/dev/nvidia{node}", os.O_RDWR))
        except OSError:
            return False
        return True
    seen["nodes"] = [node for node in ("ctl", "-uvm", "-uvm-tools", "-modeset", "0", "1") if can_open(node)]
    seen["driver"] = sorted(os.listdir("/nvidia")) if os.path.isdir("/nvidia") else []
    pathlib.Path(os.environ["AXON_OUT"], "seen.txt").write_text(json.dumps(seen))
"""


def play_a_machine(folder: Path) -> list[str]:
    """What stands before the command line of a peer, so that it sees a card."""
    for name in ("dev", "modules/torch", "driver"):
        (folder / name).mkdir(parents=True)
    (folder / "modules/pynvml.py").write_text(textwrap.dedent(PLAYED_NVML))
    (folder / "modules/torch/__init__.py").write_text("raise ImportError('no daemon imports torch')\n")
    (folder / "modules/torch/version.py").write_text("cuda: Optional[str] = '13.0'\n")
    for name in ("nvidia-ml", "cuda", "nvidia-ptxjitcompiler", "nvidia-glcore"):
        file = folder / f"driver/lib{name}.so.999.1"
        shutil.copy(LOADED, file)
        file.with_name(f"lib{name}.so.1").symlink_to(file.name)
    return ["unshare", "--mount", "sh", "-c", textwrap.dedent(OWN_DEVICES), str(folder)]


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[axonp2p.Swarm]:
    base = tmp_path_factory.mktemp("gpu")
    with Processes(base) as running:
        running.start_peers("otter", inside=play_a_machine(base / "machine"))
        with axonp2p.Swarm(trackers=[running.tracker], home=base / "client") as swarm:
            yield swarm


def seen_by(swarm: axonp2p.Swarm, folder: Path, need: str = "") -> dict[str, object]:
    """What a job sees that needs this."""
    job = swarm.submit(write_command(folder, LOOK_AROUND, f'memory = "256 MB"\n{need}'))
    job.wait(120)
    found: dict[str, object] = json.loads((job.folder / "out/0/seen.txt").read_text())
    return found


def test_a_job_that_asks_for_a_card_has_that_card_and_its_driver(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    seen = seen_by(swarm, tmp_path / "job", 'gpu-memory = "8 GiB"\ngpu-capability = "8.0"')
    assert seen["AXON_DEVICE"] == "cuda"
    assert seen["CUDA_VISIBLE_DEVICES"] == "GPU-played"
    assert seen["nodes"] == ["ctl", "-uvm", "1"]
    libraries = [f"lib{name}.so" for name in ("cuda", "nvidia-ml", "nvidia-ptxjitcompiler")]
    assert seen["driver"] == [*sorted(f"{one}.{end}" for one in libraries for end in ("1", "999.1")), "thread-names.so"]


def test_a_job_that_asks_for_none_sees_nothing_of_it(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    assert seen_by(swarm, tmp_path / "job") == {"nodes": [], "driver": []}


@pytest.mark.parametrize(
    ("need", "why"),
    [
        ('gpu-memory = "9 GiB"', "has no GPU with 9216 MiB"),
        ('gpu-capability = "9.0"', "has no GPU with capability 9.0"),
    ],
)
def test_a_card_that_would_not_do_is_said_to_be_none(swarm: axonp2p.Swarm, tmp_path: Path, need: str, why: str) -> None:
    with pytest.raises(NobodyFits) as caught:
        seen_by(swarm, tmp_path / "job", need)
    assert why in caught.value.cause
