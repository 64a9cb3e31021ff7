"""The doors to what a machine has: played libraries, files of a made-up machine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from peer_daemon.gpus import nvml
from peer_daemon.gpus.other_vendors import other_cards
from peer_daemon.gpus.torch_build import cuda_in, torch_cuda

MIB = 2**20


class PlayedNvml:
    """A driver with one card; what it does not know it says so, as the library does."""

    NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.processes: list[Any] = []
        self.samples: list[Any] = []
        self.open = 0
        self.may_set = True
        self.limits: list[int] = []

    def nvmlDeviceSetPowerManagementLimit(self, handle: str, milliwatts: int) -> None:  # noqa: N802
        if not self.may_set:
            raise self.NVMLError("Insufficient Permissions")
        self.limits.append(milliwatts)

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlSystemGetDriverVersion": b"580.159.04",
            "nvmlSystemGetCudaDriverVersion_v2": 13010,
            "nvmlDeviceGetCount": 1,
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlDeviceGetHandleByUUID": "handle",
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetUUID": "GPU-1",
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=143_771 * MIB),
            "nvmlDeviceGetMinorNumber": 3,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerManagementLimit": 400_000,
            "nvmlDeviceGetPowerManagementDefaultLimit": 450_000,
            "nvmlDeviceGetPowerManagementLimitConstraints": [150_000, 600_000],
        }

        def ask(*arguments: Any) -> Any:
            if name not in answers:
                raise self.NVMLError("Not Supported")
            return answers[name]

        return ask

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return self.processes

    def nvmlDeviceGetProcessUtilization(self, handle: str, since: int) -> list[Any]:  # noqa: N802
        if not self.samples:
            raise self.NVMLError("Not Found")
        return self.samples

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedNvml:
    library = PlayedNvml()

    def opened() -> tuple[Any, str, str]:
        library.open += 1
        return library, "", ""

    monkeypatch.setattr(nvml, "_open", opened)
    return library


def test_a_card_is_seen_with_all_that_bears_on_lending_it(played: PlayedNvml) -> None:
    seen = nvml.see_gpus()
    (card,) = seen.cards
    assert (card.uuid, card.name, card.memory_mb, card.capability) == ("GPU-1", "NVIDIA H200", 143_771, "9.0")
    assert (card.minor, card.sliced, card.virtual) == (3, False, False)
    assert (seen.driver, seen.driver_cuda) == ("580.159.04", "13.1")
    assert not played.open


def test_a_machine_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(nvml.ctypes, "CDLL", none)
    seen = nvml.see_gpus()
    assert seen.cards == ()
    assert seen.unseen


def test_a_look_names_who_uses_a_card(played: PlayedNvml) -> None:
    import os

    played.processes = [SimpleNamespace(pid=os.getpid(), usedGpuMemory=300 * MIB)]
    played.processes.append(SimpleNamespace(pid=2**22 + 1, usedGpuMemory=None))
    looking = nvml.NvmlLook(["GPU-1"])
    one, hidden = looking.look()["GPU-1"].processes
    assert (one.memory_mb, one.computes, one.busy) == (300, True, 0)
    assert one.name
    assert (hidden.name, hidden.memory_mb) == ("", 0)
    played.samples = [SimpleNamespace(pid=os.getpid(), timeStamp=5, smUtil=30, encUtil=0, decUtil=70)]
    found = looking.look()["GPU-1"]
    assert found.processes[0].busy == 70
    assert found.temperature_c == 41
    looking.close()
    assert not played.open


def test_looking_at_no_card_opens_nothing(played: PlayedNvml) -> None:
    assert nvml.NvmlLook([]).look() == {}
    assert not played.open


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        (
            "__version__ = '2.13.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n",
            "13.0",
        ),
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", ""),
        ("cuda = '12.8'\n", "12.8"),
        ("# cuda = '12.8'\n", ""),
        ("", ""),
    ],
)
def test_the_file_of_torch_says_for_which_cuda_it_was_built(text: str, cuda: str) -> None:
    assert cuda_in(text) == cuda


def test_the_installed_torch_is_read_and_not_imported() -> None:
    import subprocess
    import sys

    code = (
        "from peer_daemon.gpus.torch_build import torch_cuda; torch_cuda(); import sys; print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    assert all(part.isdecimal() for part in torch_cuda().split(".") if part)


def test_cards_of_other_vendors_are_found_by_their_files(tmp_path: Path) -> None:
    assert other_cards(tmp_path, "Linux") == ()
    vendor = tmp_path / "sys/class/drm/card0/device/vendor"
    vendor.parent.mkdir(parents=True)
    vendor.write_text("0x8086\n")
    assert other_cards(tmp_path, "Linux") == ()
    vendor.write_text("0x1002\n")
    assert other_cards(tmp_path, "Linux") == ("an AMD card (ROCm)",)
    assert other_cards(tmp_path, "Darwin") == ("Apple's GPU (Metal)",)


def test_power_is_limited_and_given_back_as_it_was(played: PlayedNvml) -> None:
    looking = nvml.NvmlLook(["GPU-1"])
    assert looking.hold_power("GPU-1", 50) == ""
    looking.free_power("GPU-1")
    looking.free_power("GPU-1")
    assert looking.hold_power("GPU-1", 20) == ""
    looking.close()
    assert played.limits == [225_000, 400_000, 150_000, 400_000]
    assert looking.hold_power("GPU-1", 50) == "the driver does not answer"


def test_who_is_not_root_hears_why_not(played: PlayedNvml) -> None:
    played.may_set = False
    looking = nvml.NvmlLook(["GPU-1"])
    assert looking.hold_power("GPU-1", 50) == "Insufficient Permissions"
    looking.close()
    assert played.limits == []
