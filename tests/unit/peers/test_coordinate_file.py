from __future__ import annotations

import random

import pytest

from axonp2p.peers.coordinate_file import CoordinateFile
from axonp2p.peers.coordinates import ORIGIN, write_coordinate


def test_it_is_kept_over_a_restart(tmp_path):
    file = tmp_path / "coordinate"
    place = CoordinateFile(file, random.Random(1))
    place.keep()
    assert not file.exists()
    for number in range(10):
        place.heard(0.05, write_coordinate(ORIGIN), f"192.0.2.{number}:7071")
    assert len(place.told) == 12
    place.keep()
    assert CoordinateFile(file, random.Random(2)).told == place.told


@pytest.mark.parametrize("content", ["", "nonsense", "00" * 11, "ff" * 12])
def test_a_damaged_file_is_none(tmp_path, content):
    (tmp_path / "coordinate").write_text(content)
    assert CoordinateFile(tmp_path / "coordinate", random.Random(1)).told == b""


def test_a_full_disk_is_no_bug(tmp_path):
    place = CoordinateFile(tmp_path / "missing" / "coordinate", random.Random(1))
    for number in range(10):
        place.heard(0.05, b"", f"192.0.2.{number}:7071")
    place.keep()
