"""Which build of torch `scripts/install` takes: a machine with a card needs another one than all others."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HERE = Path("/proc/driver/nvidia/version")


def program(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the script in a folder where every program that it starts only tells how it was started."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "install", tmp_path / "scripts")
    for name in ("setup.cfg", "pyproject.toml"):
        (tmp_path / name).write_text("")
    program(tmp_path / ".venv/bin/pip", f'echo "$@" >>{tmp_path}/asked')
    program(tmp_path / ".venv/bin/python")
    for name in ("python3", "bwrap", "chromium", "nft"):
        program(tmp_path / "programs" / name)
    return tmp_path


def torch_asked(house: Path) -> list[str]:
    """What pip was asked for, of torch."""
    path = f"{house}/programs:/usr/bin:/bin"
    subprocess.run([str(house / "scripts/install")], env={"PATH": path}, check=True, capture_output=True)
    asked = house / "asked"
    lines = asked.read_text().splitlines() if asked.exists() else []
    asked.unlink(missing_ok=True)
    return [line.split()[-1] for line in lines if "torch" in line]


@pytest.mark.skipif(HERE.exists(), reason="this machine has an NVIDIA card")
def test_without_a_card_any_build_of_the_version_will_do(house: Path) -> None:
    program(house / "programs/nvidia-smi", "exit 9")  # the program is there, and finds no driver
    assert torch_asked(house) == ["torch==2.13.0"]
    assert torch_asked(house) == []  # installed


def test_with_a_card_no_build_for_processors_only_will_do(house: Path) -> None:
    program(house / "programs/nvidia-smi", 'echo "GPU 0: a card"')
    assert torch_asked(house) == ["torch===2.13.0"]


@pytest.mark.skipif(HERE.exists(), reason="this machine has an NVIDIA card")
def test_a_card_that_comes_later_is_found(house: Path) -> None:
    program(house / "programs/nvidia-smi", "exit 9")
    torch_asked(house)
    program(house / "programs/nvidia-smi", 'echo "GPU 0: a card"')
    assert torch_asked(house) == ["torch===2.13.0"]
