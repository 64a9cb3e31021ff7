"""The library that opens /dev/null where CUDA names its threads: the loader takes it, and other files are opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from axonp2p.sandbox.thread_names import MACHINES, thread_names_library

OPEN = """
import ctypes, sys
own = ctypes.CDLL(None, use_errno=True)
for name in ("fopen", "fopen64"):
    open_file = getattr(own, name)
    open_file.restype = ctypes.c_void_p
    for path in sys.argv[1:]:
        file = open_file(path.encode(), b"w")
        print(name, path, bool(file))
        if file:
            own.fputs(b"cuda", ctypes.c_void_p(file))
            own.fclose(ctypes.c_void_p(file))
print(sum("[stack]" in line and "x" in line.split()[1] for line in open("/proc/self/maps")))
"""

pytestmark = pytest.mark.skipif(os.uname().machine not in MACHINES, reason="it is for another kind of processor")


def opened(paths: list[str], variables: dict[str, str]) -> list[bool]:
    command = [sys.executable, "-I", "-S", "-c", OPEN, *paths]
    said = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said.pop() == "0", "the stack became executable"
    return [line.endswith("True") for line in said]


def test_a_thread_that_is_not_there_has_its_name_written_and_no_other_path_is_changed(tmp_path: Path) -> None:
    library, file = tmp_path / "names.so", tmp_path / "file"
    library.write_bytes(thread_names_library())
    paths = ["/proc/self/task/4194305/comm", "/proc/self/tas", "", str(tmp_path / "none/file"), str(file)]
    assert opened(paths, {}) == 2 * [False, False, False, False, True]
    assert opened(paths, {"LD_PRELOAD": str(library)}) == 2 * [True, False, False, False, True]
    assert file.read_text() == "cuda"
