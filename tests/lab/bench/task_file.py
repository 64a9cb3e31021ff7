"""A job's task, loaded as it is. Only the standard library."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def load_task(path: Path) -> Any:
    """The `Task` in a file."""
    spec = importlib.util.spec_from_file_location("task", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Task()
