"""What a sandbox shows of a GPU: one card, one driver, and nothing beside them."""

from __future__ import annotations

from pathlib import Path

from axonp2p.sandbox.gpu_access import (
    DriverFiles,
    driver_libraries,
    gpu_access,
    gpu_arguments,
    gpu_variables,
    missing_libraries,
    missing_nodes,
)
from axonp2p.sandbox.gpu_driver import find_driver, library_folder

DRIVER = "580.159.04"
LIBRARIES = (
    *((f"libcuda.so{end}", f"/usr/lib/libcuda.so.{DRIVER}") for end in ("", ".1", f".{DRIVER}")),
    ("libcuda.so.535.1.1", "/usr/lib/libcuda.so.535.1.1"),
    ("libnvidia-ml.so.1", f"/usr/lib/libnvidia-ml.so.{DRIVER}"),
    ("libnvidia-ptxjitcompiler.so.1", f"/usr/lib/libnvidia-ptxjitcompiler.so.{DRIVER}"),
    ("libnvidia-nvvm.so.4", f"/usr/lib/libnvidia-nvvm.so.{DRIVER}"),
    ("libnvidia-glcore.so.1", f"/usr/lib/libnvidia-glcore.so.{DRIVER}"),
    ("libnvidia-encode.so.1", f"/usr/lib/libnvidia-encode.so.{DRIVER}"),
    ("libc.so.6", "/usr/lib/libc.so.6"),
)
NODES = frozenset(f"/dev/nvidia{name}" for name in ("0", "1", "ctl", "-uvm", "-uvm-tools", "-modeset", "-caps"))
FILES = DriverFiles(DRIVER, NODES, LIBRARIES, told=("/proc/devices",))


def test_the_libraries_are_those_of_the_running_driver_and_only_those_that_compute() -> None:
    assert {inside: outside for outside, inside in driver_libraries(FILES)} == {
        "/nvidia/libcuda.so": f"/usr/lib/libcuda.so.{DRIVER}",
        "/nvidia/libcuda.so.1": f"/usr/lib/libcuda.so.{DRIVER}",
        f"/nvidia/libcuda.so.{DRIVER}": f"/usr/lib/libcuda.so.{DRIVER}",
        "/nvidia/libnvidia-ml.so.1": f"/usr/lib/libnvidia-ml.so.{DRIVER}",
        "/nvidia/libnvidia-nvvm.so.4": f"/usr/lib/libnvidia-nvvm.so.{DRIVER}",
        "/nvidia/libnvidia-ptxjitcompiler.so.1": f"/usr/lib/libnvidia-ptxjitcompiler.so.{DRIVER}",
    }


def test_one_card_has_its_own_node_and_the_two_that_all_share() -> None:
    access = gpu_access(FILES, "GPU-1", minor=1, memory_mb=8192)
    words = gpu_arguments(access)
    shown = [words[place + 2] for place, word in enumerate(words) if word == "--dev-bind"]
    assert shown == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1"]
    assert set(words) & NODES == set(shown)
    assert [words[place + 2] for place, word in enumerate(words) if word == "--ro-bind"][-1] == "/proc/devices"


def test_a_job_knows_its_card_and_leaves_nothing_for_the_next() -> None:
    variables = gpu_variables(gpu_access(FILES, "GPU-1", minor=1, memory_mb=8192))
    assert variables["AXON_DEVICE"] == "cuda"
    assert variables["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert variables["CUDA_CACHE_PATH"].startswith("/tmp/")


def test_what_a_driver_lacks_is_named() -> None:
    assert missing_nodes(FILES, 1) == missing_libraries(FILES) == []
    assert missing_nodes(FILES, 2) == ["/dev/nvidia2"]
    assert missing_libraries(DriverFiles(DRIVER, NODES, LIBRARIES[:4])) == ["libnvidia-ptxjitcompiler.so.1"]
    assert missing_libraries(DriverFiles("999.1", NODES, LIBRARIES)) == [
        "libcuda.so.1",
        "libnvidia-ptxjitcompiler.so.1",
    ]


def test_the_libraries_are_looked_for_beside_the_one_that_this_process_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "opt/driver libs"
    for place in (folder, tmp_path / "dev", tmp_path / "proc/self"):
        place.mkdir(parents=True)
    (folder / f"libcuda.so.{DRIVER}").touch()
    (folder / "libcuda.so.1").symlink_to(f"libcuda.so.{DRIVER}")
    (folder / "README").touch()
    for name in ("nvidia0", "nvidiactl", "null"):
        (tmp_path / "dev" / name).touch()
    (tmp_path / "proc/devices").touch()
    maps = f"7f00-7f01 r-xp 0 08:01 5 /lib/libc.so.6\n7f02-7f03 r--p 0 08:01 9    {folder}/libnvidia-ml.so.{DRIVER}\n"
    (tmp_path / "proc/self/maps").write_text(maps)
    found = find_driver(DRIVER, tmp_path)
    assert found.nodes == {"/dev/nvidia0", "/dev/nvidiactl"}
    assert found.told == ("/proc/devices",)
    target = str(folder / f"libcuda.so.{DRIVER}")
    assert sorted(found.libraries) == [("libcuda.so.1", target), (f"libcuda.so.{DRIVER}", target)]


def test_without_a_driver_nothing_is_looked_for(tmp_path: Path) -> None:
    assert find_driver("", tmp_path) == DriverFiles()
    assert library_folder("7f00-7f01 r-xp 0 08:01 5 /lib/libc.so.6\n7f00-7f01 rw-p 0 00:00 0\n") is None
