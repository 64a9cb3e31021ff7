"""The author's file, imported from the bundle, and its `class Task` made."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from axonp2p.errors import TaskMistake
from axonp2p.training.trainer.mistakes import TaskCode

_NEEDED = {"model": "model(self)", "data": "data(self, split, shard, shards)"}


def load_task(folder: Path, file: str) -> Any:
    """The author's own object of `class Task`. Raises `TaskMistake`."""
    path = folder / file
    doing = f"loading {file}"
    # The bundle is read-only in the sandbox, and nobody wants a __pycache__ in their job's folder.
    sys.dont_write_bytecode = True
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("axon_task", path)
    if spec is None or spec.loader is None:
        raise mistake_in(doing, f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["axon_task"] = module  # dataclasses and pickle look their module up
    with TaskCode(doing, folder):
        spec.loader.exec_module(module)
    kind = getattr(module, "Task", None)
    if not isinstance(kind, type):
        raise mistake_in(doing, f"{file} has no class Task")
    for name, signature in _NEEDED.items():
        if not callable(getattr(kind, name, None)):
            raise mistake_in(doing, f"class Task has no method {signature}")
    if not callable(getattr(kind, "loss", None)) and not callable(getattr(kind, "step", None)):
        raise mistake_in(doing, "class Task has no method loss(self, model, batch)")
    with TaskCode("Task()", folder):
        return kind()


def mistake_in(doing: str, sentence: str) -> TaskMistake:
    """What is raised where a task's code gives what it must not."""
    return TaskMistake(doing, cause=f"{doing}: {sentence}.")
