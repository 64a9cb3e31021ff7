"""Our programs without the modules that Python has on Unix alone, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from axonp2p.errors import SettingsError, WrongSystem

ROOT = Path(__file__).parents[2]


def run(home: Path, system: str, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.laboratory.other_system", system, program, *words]
    environment = {**os.environ, "AXON_HOME": str(home), "AXON_CLIENT_LAN": "false"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_a_client_starts_asks_and_locks(tmp_path: Path, system: str) -> None:
    """The client's whole library is loaded, its key is made and read; what is missing is a tracker."""
    listed = run(tmp_path, system, "client_cli.main", "jobs")
    assert (listed.returncode, listed.stderr) == (0, "")
    # Nothing listens on port 1.
    asked = run(tmp_path, system, "client_cli.main", "peers", "--tracker", "https://127.0.0.1:1#" + "a" * 52)
    assert "this is a bug" not in asked.stderr
    assert asked.returncode in (3, SettingsError.exit_code), asked.stderr


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_the_daemon_says_where_it_runs(tmp_path: Path, system: str) -> None:
    done = run(tmp_path, system, "peer_daemon.main", "setup")
    assert done.returncode == WrongSystem.exit_code
    assert done.stderr.splitlines() == [
        "error AX-608: axon-peer runs on Linux only",
        "fix: on Windows use WSL2: docs/windows-macos.md",
    ]


def test_a_tracker_says_where_it_runs(tmp_path: Path) -> None:
    done = run(tmp_path, "win32", "tracker.program", "run")
    assert done.stderr.splitlines()[0] == "error AX-608: axon-tracker runs on Linux and macOS only"


def test_a_command_that_needs_a_sandbox_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "win32", "client_cli.main", "demo")
    assert done.returncode == WrongSystem.exit_code
    assert done.stderr.splitlines()[-1] == "fix: on Windows use WSL2: docs/windows-macos.md"
