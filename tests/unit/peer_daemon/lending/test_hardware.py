from __future__ import annotations

import json
import sys

from peer_daemon.lending.hardware import look_at_machine
from peer_daemon.lending.offer import LendingLimits

WISHES = LendingLimits(cores=1, memory_mb=0, disk_mb=512, slots=1)


async def test_the_speed_is_measured_once(tmp_path):
    machine = await look_at_machine(tmp_path, WISHES)
    assert machine.cores >= 1
    assert machine.memory_mb > 100
    assert machine.gflops > 0.1
    assert list(machine.packages)[:3] == ["torch", "numpy", "safetensors"]
    cache = tmp_path / "hardware.json"
    known = json.loads(cache.read_text())
    cache.write_text(json.dumps({**known, "gflops": 12.34}))
    assert (await look_at_machine(tmp_path, WISHES)).gflops == 12.34
    cache.write_text("rubbish")
    assert (await look_at_machine(tmp_path, WISHES)).gflops != 12.34


def test_measuring_loads_no_torch_and_looking_loads_no_numpy():
    import subprocess

    code = "import peer_daemon.app, sys; print([m for m in ('torch', 'numpy', 'safetensors') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
