"""`axon-peer doctor` on this machine: it tries the wall for real."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.sandbox
def test_the_wall_of_this_machine_holds_and_the_doctor_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "peer_daemon.main", "doctor", "--json", "--verbose", "--home", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    walls = [check for name, check in checks.items() if name.startswith("wall, ")]
    assert len(walls) == 18
    assert [check for check in walls if check["state"] != "ok"] == []
    assert checks["sandbox"]["state"] == checks["seccomp"]["state"] == "ok"
