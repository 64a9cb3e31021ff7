"""A virtual environment with a wheel of Axon and what it asks for, and nothing else of the one that tests run in.

The libraries are hard links to those that are installed here, by what their metadata asks for: nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
_SOURCES = ("axonp2p", "client_cli", "peer_daemon", "tracker")


def build_wheel(folder: Path) -> Path:
    """The wheel of this source tree, which stays as it is."""
    source = folder / "source"
    source.mkdir()
    for name in _SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = ["wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True, capture_output=True, timeout=120)
    return next(folder.glob("axonp2p-*.whl"))


class CleanEnvironment:
    """The environment: made at once, with the wheel and those of its extras that are named."""

    def __init__(self, folder: Path, wheel: Path, extras: tuple[str, ...] = ()) -> None:
        self.folder = folder
        venv.create(folder, symlinks=True, with_pip=False)
        self.python = folder / "bin" / "python"
        self._site = next((folder / "lib").glob("python3*")) / "site-packages"
        target = ["--no-index", "--no-deps", "--no-compile", "--python", str(self.python)]
        command = [sys.executable, "-m", "pip", *target[3:], "install", "--quiet", *target[:3], str(wheel)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        self.libraries: set[str] = set()
        metadata = next(self._site.glob("axonp2p-*.dist-info"))
        for requirement in _asked_by(Distribution.at(metadata), frozenset(extras)):
            self._link(requirement)

    def program(self, name: str) -> Path:
        """One of the wheel's programs."""
        return self.folder / "bin" / name

    def _link(self, requirement: Requirement) -> None:
        found = distribution(requirement.name)
        assert found.version in requirement.specifier, requirement
        if found.name in self.libraries:
            return
        self.libraries.add(found.name)
        for file in found.files or ():
            source = Path(str(file.locate()))
            if source.suffix != ".pyc" and ".." not in file.parts and source.is_file():
                (self._site / file).parent.mkdir(parents=True, exist_ok=True)
                if not (self._site / file).exists():
                    os.link(source, self._site / file)
        for more in _asked_by(found, frozenset(requirement.extras)):
            self._link(more)


def _asked_by(found: Distribution, extras: frozenset[str]) -> list[Requirement]:
    asked = [Requirement(text) for text in found.requires or ()]
    return [one for one in asked if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras | {""})]
