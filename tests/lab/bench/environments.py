"""The baselines' own Python environments, made once with the interpreter that Axon's was made with.

The same interpreter, because `examples/text` reads that interpreter's standard library; the same torch.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

FOLDER = Path("~/.cache/axon-bench").expanduser()
PACKAGES = {
    "hivemind": ["hivemind==1.1.12", "numpy<2.4"],  # its 8-bit codec fails with a newer NumPy
    "flower": ["flwr==1.41.0"],
    "torchft": ["torchft-nightly==2026.10.26"],
    "loky": ["loky==3.7.0"],
    "dask": ["distributed==2026.8.0"],
    "ray": ["ray==2.60.0"],
}
WITHOUT_TORCH = {"loky", "dask", "ray"}


def python_of(name: str) -> Path:
    """The interpreter of a baseline's environment, which is made when it is not there."""
    home = FOLDER / name
    python = home / "bin" / "python"
    torch = [] if name in WITHOUT_TORCH else [f"torch=={version('torch').partition('+')[0]}"]
    packages = [*torch, *PACKAGES[name]]
    made = home / "made"
    if not made.exists() or made.read_text() != " ".join(packages):
        print(f"making {home} with {' '.join(packages)} ...", file=sys.stderr)
        interpreter = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        subprocess.run([str(interpreter), "-m", "venv", str(home)], check=True)
        for package in packages:  # torch first and alone: nothing that comes after may choose another build of it
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
            subprocess.run(pip, check=True)
        made.write_text(" ".join(packages))
    return python
