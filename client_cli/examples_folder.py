"""The job that ships with the program: examples/digits, a part of this package through a link in the repository."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from axonp2p.errors import NotFound


def digits_folder() -> Path:
    """The job of handwritten digits. Raises `NotFound` when the installation lacks it."""
    folder = Path(str(resources.files("client_cli") / "examples" / "digits")).resolve()
    if not (folder / "job.toml").is_file():
        raise NotFound(f"the example job is missing: {folder}", fix="install Axon again")
    return folder
