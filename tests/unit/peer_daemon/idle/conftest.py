"""A machine made of files: a root folder with /proc, /sys and /dev as a kernel would show them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")


class FakeRoot:
    """Two cores. `passes` lets time go by, with so many seconds of processor time used in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 1000.0
        self._user = self._niced = self._idle = 0.0
        self.write("proc/meminfo", "MemTotal:  16384000 kB\nMemFree:   1024000 kB\nMemAvailable:    8192000 kB\n")
        self.write("proc/pressure/memory", "some avg10=3.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00\n")
        self.passes(1.0)

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def passes(self, seconds: float, user: float = 0.0, niced: float = 0.0) -> None:
        self.now += seconds
        self._user += user
        self._niced += niced
        self._idle += 2 * seconds - user - niced
        fields = [round(value * TICKS) for value in (self._user, self._niced, 0, self._idle, 0, 0, 0, 0, 0, 0)]
        self.write("proc/stat", f"cpu  {' '.join(map(str, fields))}\ncpu0 0\n")

    def process(self, pid: int, name: str, cpu_s: float, parent: int = 1) -> None:
        numbers = ["S", str(parent), *["0"] * 9, str(round(cpu_s * TICKS)), "0", *["0"] * 20]
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) {' '.join(numbers)}\n")


@pytest.fixture
def machine(tmp_path: Path) -> FakeRoot:
    return FakeRoot(tmp_path)
