"""A function of the bundle, by the name of its file: `task.py:work`. It is the client's own code."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def load_own(fn: str, bundle: Path) -> Callable[..., Any]:
    """The function that `task.py:work` names. Raises whatever the module raises, and `AttributeError`."""
    file, _, name = fn.partition(":")
    module_name = file.removesuffix(".py").replace("/", ".")
    spec = importlib.util.spec_from_file_location(module_name, bundle / file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{name} of {file} is no function")
    function: Callable[..., Any] = found
    return function
