"""The two walls behind the mounts, for a worker that has a GPU."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from axonp2p.sandbox.limits import GPU_DATA_MB, MIB, Limits, kernel_limits
from axonp2p.sandbox.messages import Start
from axonp2p.sandbox.walls import landlock
from axonp2p.sandbox.walls.landlock import device_rights, handled
from axonp2p.sandbox.walls.seccomp import filter_program
from axonp2p.sandbox.walls.syscalls import ABSENT, GPU_ALLOWED, LIMITED, REFUSED, names

MAP_HUGETLB = 0x40000
CALLS_OF_A_CARD = {"NV_ESC_RM_ALLOC": 0xC030462B, "NV_ESC_CARD_INFO": 0xC00846C8, "UVM_REGISTER_GPU": 37}
CALLS_OF_OTHERS = {
    "TIOCSTI": 0x5412,
    "KVM_RUN": 0xAE80,
    "DRM_IOCTL_VERSION": 0xC0406400,
    "FUSE_DEV_IOC_CLONE": 0x8004E500,
}


def allowed(request: int) -> bool:
    rules = [LIMITED["ioctl"], *(argument for name, argument in GPU_ALLOWED if name == "ioctl")]
    return any(request & rule.mask in rule.values for rule in rules)


@pytest.mark.parametrize("name", CALLS_OF_A_CARD)
def test_what_cuda_asks_of_its_driver_goes_through(name: str) -> None:
    assert allowed(CALLS_OF_A_CARD[name])


@pytest.mark.parametrize("name", CALLS_OF_OTHERS)
def test_what_is_asked_of_other_devices_does_not(name: str) -> None:
    assert not allowed(CALLS_OF_OTHERS[name])


def test_memory_that_is_shared_without_a_file_is_for_cuda_alone() -> None:
    shared = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS
    rules = [argument for name, argument in GPU_ALLOWED if name == "mmap"]
    assert any(shared & rule.mask in rule.values for rule in rules)
    assert shared & LIMITED["mmap"].mask not in LIMITED["mmap"].values


@pytest.mark.parametrize("kind", [mmap.MAP_PRIVATE, mmap.MAP_SHARED])
@pytest.mark.parametrize("size", [0, 21 << 26, 30 << 26], ids=["of the usual size", "of 2 MiB", "of 1 GiB"])
def test_memory_of_the_machines_huge_pages_is_for_nobody(kind: int, size: int) -> None:
    asked = kind | mmap.MAP_ANONYMOUS | MAP_HUGETLB | size
    rules = [LIMITED["mmap"], *(argument for name, argument in GPU_ALLOWED if name == "mmap")]
    assert not any(asked & rule.mask in rule.values for rule in rules)
    assert "memfd_create" in names(ABSENT)
    assert "shmget" in names(REFUSED)


def test_only_a_worker_with_a_gpu_has_the_wider_filter() -> None:
    assert len(filter_program(gpu=True)) > len(filter_program())


def test_its_nodes_may_be_opened_and_asked_and_nothing_else_changes() -> None:
    newest = device_rights(7)
    assert newest & landlock._IOCTL_DEVICE
    assert not newest & (landlock._EXECUTE | landlock._READ_FOLDER | landlock._MAKE_DEVICE)
    assert all(device_rights(version) & ~handled(version).files == 0 for version in range(1, 8))
    assert all(not rights & landlock._IOCTL_DEVICE for rights in landlock.PLACES.values())


WRITE = """
import sys
from axonp2p.sandbox.walls.landlock import write_only_below
folder, file, *devices = sys.argv[1:]
version = write_only_below(folder, devices)
for path in (f"{folder}/own", file, "/dev/zero"):
    try:
        open(path, "r+b" if path == "/dev/zero" else "wb").close()
        print("open")
    except PermissionError:
        print("refused" if version else "open")
"""


def test_who_writes_into_one_folder_alone_reaches_its_card_all_the_same(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()

    def opened(*devices: str) -> list[str]:
        command = [sys.executable, "-c", WRITE, str(own), str(tmp_path / "other"), *devices]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    other = "refused" if landlock.version() else "open"
    assert opened() == ["open", other, other]
    assert opened("/dev/zero", "/dev/none") == ["open", other, "open"]


@pytest.mark.parametrize(
    "path", ["/dev/sda", "/dev/nvidia-modeset", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps/x", "/dev/nvidia0\n"]
)
def test_a_start_names_no_other_nodes(path: str) -> None:
    start = msgspec.structs.replace(Limits(1, 1, 1).start(), devices=[path])
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(msgspec.to_builtins(start), Start)


def test_what_cuda_reserves_without_touching_it_is_no_offence() -> None:
    limits = Limits(cores=1, memory_mb=512, scratch_mb=8).start()
    with_gpu = msgspec.structs.replace(limits, devices=["/dev/nvidia0"])
    (_, plain), (_, more) = kernel_limits(limits, (6, 1))[0], kernel_limits(with_gpu, (6, 1))[0]
    assert more - plain == GPU_DATA_MB * MIB
