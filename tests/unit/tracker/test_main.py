from __future__ import annotations

import os
from pathlib import Path

from click.testing import CliRunner

from tracker.main import main


def test_what_a_tracker_keeps_is_for_its_owner_alone(tmp_path: Path):
    usual = os.umask(0o022)
    try:
        CliRunner().invoke(main, ["status", "--home", str(tmp_path)])
        assert os.umask(0o022) == 0o077
    finally:
        os.umask(usual)
