"""NVIDIA's management library: which cards there are, and who uses them. The one place that talks to it (a door)."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from axonp2p.logs import get_logger
from axonp2p.sandbox.gpu_driver import find_driver
from peer_daemon.gpus.gpu_use import power_limit_mw
from peer_daemon.gpus.other_vendors import other_cards
from peer_daemon.gpus.seen_gpus import GpuLook, GpuProcess, SeenGpu, SeenGpus
from peer_daemon.gpus.torch_build import torch_cuda

log = get_logger(__name__)

_MIB = 2**20
_MOST_CARDS = 16
_OF_THE_CARD = 0
"""NVML_TEMPERATURE_GPU"""
INSTALL = "pip install 'axonp2p[gpu]'    (into the environment of axon-peer)"


def see_gpus() -> SeenGpus:
    """The GPUs that there are. Blocks some milliseconds, and loads the library only where a driver is."""
    others = other_cards()
    library, trouble, fix = _open()
    if library is None:
        return SeenGpus(unseen=trouble, unseen_fix=fix, others=others)
    try:
        driver = _text(library.nvmlSystemGetDriverVersion())
        cuda = library.nvmlSystemGetCudaDriverVersion_v2()
        cards = tuple(_cards(library))
        return SeenGpus(
            cards=cards,
            driver=driver,
            driver_cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
            unseen="" if cards else "NVIDIA's driver finds no card",
            torch_cuda=torch_cuda(),
            machine=os.uname().machine,
            files=find_driver(driver),
            others=others,
        )
    except library.NVMLError as error:
        return SeenGpus(unseen=f"NVIDIA's driver does not answer: {error}", unseen_fix="nvidia-smi", others=others)
    finally:
        library.nvmlShutdown()


class NvmlLook:
    """Looks at some cards again and again; `close` lets go of the library."""

    def __init__(self, uuids: Iterable[str]) -> None:
        """No card, or no driver any more: every look finds nothing."""
        self._library = _open()[0] if (wanted := list(uuids)) else None
        self._handles: dict[str, Any] = {}
        self._last_us: dict[str, int] = {}
        self._power_before: dict[str, int] = {}
        if self._library is not None:
            for uuid in wanted:
                with suppress(self._library.NVMLError):
                    self._handles[uuid] = self._library.nvmlDeviceGetHandleByUUID(uuid)
                    self._last_us[uuid] = int(time.time() * 1e6)

    def look(self) -> dict[str, GpuLook]:
        """Each card that answers, by UUID. Blocks some milliseconds."""
        looks = {}
        for uuid, handle in self._handles.items():
            try:
                looks[uuid] = self._look(uuid, handle)
            except self._library.NVMLError as error:  # type: ignore[union-attr]
                log.warning("gpu not looked at", gpu=uuid, reason=str(error))
        return looks

    def hold_power(self, uuid: str, percent: int) -> str:
        """Let a card draw so many percent of what it usually may, until `free_power`; gives back why not."""
        library, handle = self._library, self._handles.get(uuid)
        if library is None or handle is None:
            return "the driver does not answer"
        try:
            before = int(library.nvmlDeviceGetPowerManagementLimit(handle))
            usual = int(library.nvmlDeviceGetPowerManagementDefaultLimit(handle))
            least, most = library.nvmlDeviceGetPowerManagementLimitConstraints(handle)
            library.nvmlDeviceSetPowerManagementLimit(handle, power_limit_mw(usual, least, most, percent))
        except library.NVMLError as error:
            return str(error)
        self._power_before.setdefault(uuid, before)
        return ""

    def free_power(self, uuid: str) -> None:
        """Let the card draw again what it did before."""
        before = self._power_before.pop(uuid, None)
        if before is not None and self._library is not None:
            _or(self._library, None, self._library.nvmlDeviceSetPowerManagementLimit, self._handles[uuid], before)

    def close(self) -> None:
        """Look no more; each card draws what it did before."""
        if self._library is not None:
            for uuid in list(self._power_before):
                self.free_power(uuid)
            self._handles.clear()
            self._library.nvmlShutdown()
            self._library = None

    def _look(self, uuid: str, handle: Any) -> GpuLook:
        library = self._library
        assert library is not None
        found: dict[int, GpuProcess] = {}
        for computes, ask in (
            (False, library.nvmlDeviceGetGraphicsRunningProcesses),
            (True, library.nvmlDeviceGetComputeRunningProcesses),
        ):
            for one in _or(library, [], ask, handle):
                used = (one.usedGpuMemory or 0) // _MIB
                found[one.pid] = GpuProcess(one.pid, _name_of(one.pid), used, computes)
        busy = self._busy(uuid, handle)
        temperature = _or(library, None, library.nvmlDeviceGetTemperature, handle, _OF_THE_CARD)
        return GpuLook(uuid, temperature, tuple(replace(one, busy=busy.get(one.pid, 0)) for one in found.values()))

    def _busy(self, uuid: str, handle: Any) -> dict[int, int]:
        """Percent by process since the last look: the most of computing, drawing and films."""
        library = self._library
        assert library is not None
        samples = _or(library, [], library.nvmlDeviceGetProcessUtilization, handle, self._last_us[uuid])
        busy: dict[int, int] = {}
        for sample in samples:
            self._last_us[uuid] = max(self._last_us[uuid], int(sample.timeStamp))
            busy[sample.pid] = max(busy.get(sample.pid, 0), sample.smUtil, sample.encUtil, sample.decUtil)
        return busy


def _open() -> tuple[Any, str, str]:
    """The library, initialised; or None, why not, and what mends it."""
    try:
        # Before the package, which takes 2 MB only to find that there is no driver.
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None, "no NVIDIA driver is installed, so no GPU is seen", ""
    try:
        import pynvml
    except ImportError:
        return None, "there is a driver of NVIDIA's, but nvidia-ml-py is not installed", INSTALL
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, f"NVIDIA's driver does not answer: {error}", "nvidia-smi    (says more)"
    return pynvml, "", ""


def _cards(library: Any) -> Iterable[SeenGpu]:
    for index in range(min(library.nvmlDeviceGetCount(), _MOST_CARDS)):
        try:
            handle = library.nvmlDeviceGetHandleByIndex(index)
            major, minor = library.nvmlDeviceGetCudaComputeCapability(handle)
            mode = _or(library, 0, library.nvmlDeviceGetVirtualizationMode, handle)
            yield SeenGpu(
                uuid=_text(library.nvmlDeviceGetUUID(handle)),
                name=_text(library.nvmlDeviceGetName(handle))[:64],
                memory_mb=int(library.nvmlDeviceGetMemoryInfo(handle).total) // _MIB,
                capability=f"{major}.{minor}",
                minor=int(library.nvmlDeviceGetMinorNumber(handle)),
                sliced=bool(_or(library, [0], library.nvmlDeviceGetMigMode, handle)[0]),
                virtual=mode == library.NVML_GPU_VIRTUALIZATION_MODE_VGPU,
            )
        except library.NVMLError as error:
            log.warning("gpu not usable", number=index, reason=str(error))


def _or(library: Any, otherwise: Any, ask: Callable[..., Any], *arguments: Any) -> Any:
    """The driver's answer; `otherwise` where this card does not know the question, or has nothing to tell."""
    try:
        return ask(*arguments)
    except library.NVMLError:
        return otherwise


def _name_of(pid: int) -> str:
    """Empty for a process that cannot be seen from here."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()[:32]
    except OSError:
        return ""


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
