"""Short runs of `scripts/fuzz`: every door of a real tracker and a real peer, some seconds each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.fuzzing import fuzz, table


def test_what_is_nearly_right_ends_nothing(tmp_path: Path) -> None:
    doors = ["tracker", "sessions", "peer", "leases", "datagrams", "channel", "relay"]
    results = fuzz(tmp_path, doors, seconds=18, seed=1)
    assert all(one.sound for one in results), table(results)
    assert all(one.inputs > 5 for one in results), table(results)


@pytest.mark.sandbox
@pytest.mark.timeout(600)
@pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here")
def test_liars_and_broken_homes_end_nothing() -> None:
    script = Path(__file__).parent.parent.parent / "scripts" / "fuzz"
    options = ["--minutes", "0.5", "--seed", "1", "--json", "--doors", "true-leases,homes,answers"]
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert all(door["inputs"] for door in json.loads(done.stdout))
