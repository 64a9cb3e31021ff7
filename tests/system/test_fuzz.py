"""A short run of `scripts/fuzz`: every door of a real tracker and a real peer, some seconds each."""

from __future__ import annotations

from pathlib import Path

from tests.laboratory.fuzzing import fuzz, table


def test_what_is_nearly_right_ends_nothing(tmp_path: Path) -> None:
    doors = ["tracker", "sessions", "peer", "leases", "datagrams", "channel"]
    results = fuzz(tmp_path, doors, seconds=18, seed=1)
    assert all(one.sound for one in results), table(results)
    assert all(one.inputs > 5 for one in results), table(results)
