"""For which CUDA the installed torch was built, read out of its own file: the daemon never imports torch."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

_LARGEST = 64 * 1024
_CUDA = re.compile(r"^cuda\s*(?::[^=\n]*)?=\s*['\"]([0-9]{1,3}(?:\.[0-9]{1,3})*)['\"]", re.MULTILINE)


def torch_cuda() -> str:
    """ "13.0"; empty where there is no torch, or one that computes on processors alone."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return ""
    try:
        with Path(found.origin).with_name("version.py").open(encoding="utf-8", errors="replace") as file:
            return cuda_in(file.read(_LARGEST))
    except OSError:
        return ""


def cuda_in(version_file: str) -> str:
    """The same from the text of torch/version.py."""
    found = _CUDA.search(version_file)
    return found[1] if found else ""
