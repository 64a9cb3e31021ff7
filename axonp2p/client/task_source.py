"""The source of a task's class, found while the program that wrote it runs: in its file, or in a notebook's cells.

Of a script the whole file travels, as it would if it were the `task.py` of a job's folder. Of a notebook the class
travels with what it names: imports, functions and classes of other cells, and plain values. Nothing is pickled:
whatever cannot be written as text is refused by its name.
"""

from __future__ import annotations

import importlib
import inspect
import linecache
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from axonp2p.errors import JobFileWrong
from axonp2p.jobs.task_text import definition, free_names, is_guarded, literal, together, with_name

IN_A_NOTEBOOK = "task.py"
"""The name in the bundle of the file of a class that has none."""


@dataclass(frozen=True)
class TaskSource:
    """A task as text."""

    file: str
    """Its name in the bundle."""
    text: str
    folder: Path
    """Where the files lie that its job may name in `data`."""
    called: str
    """Its part of the job's name."""


def source_of(task: object) -> TaskSource:
    """The text of the class, or of the object's class with the values that the object holds.

    Call it in the thread that submits. Raises `JobFileWrong` for a class that cannot be sent as text.
    """
    kind = task if isinstance(task, type) else type(task)
    name = kind.__name__
    if "<locals>" in kind.__qualname__ or "." in kind.__qualname__:
        raise JobFileWrong(
            f"class {name} is inside of {kind.__qualname__.rpartition('.')[0]}", fix="move it to the top level"
        )
    values = None if isinstance(task, type) else _values_of(task)
    wants = _wants(kind)
    if values is None and wants:
        raise JobFileWrong(f"class {name} wants arguments: {wants}", fix=f"submit an object: {name}(...)")
    if not values and not wants:
        values = None
    place = _place_of(kind)
    path = Path(place)
    if not path.is_file():
        return TaskSource(IN_A_NOTEBOOK, with_name(_of_cells(kind), name, values), Path.cwd(), name)
    linecache.checkcache(place)
    text = "".join(linecache.getlines(place))
    if not definition(text, name):
        raise JobFileWrong(f"{path} has no class {name} at its top level", fix="move it there")
    _must_be_guarded(path, text)
    return TaskSource(path.name, with_name(text, name, values), path.resolve().parent, path.stem)


def _values_of(task: object) -> dict[str, Any]:
    found = dict(getattr(task, "__dict__", {}))
    for name, value in found.items():
        if literal(value) is None:
            raise JobFileWrong(
                f"self.{name} is of type {type(value).__name__}, which cannot be sent as text",
                fix=f"make it in {type(task).__name__}.model() or .data(), or save it to a file and name that in data",
            )
    return found


def _wants(kind: type) -> str:
    """Which arguments it cannot be made without; empty when it can."""
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        return str(error)
    except ValueError:  # it does not say
        return ""
    return ""


def _place_of(kind: type) -> str:
    """The file in which its methods were written, or the name of a notebook's cell."""
    for value in vars(kind).values():
        function = inspect.unwrap(getattr(value, "__func__", value))
        if isinstance(function, FunctionType):
            return function.__code__.co_filename
    raise JobFileWrong(f"class {kind.__name__} has no methods of its own", fix="name the folder of a job instead")


def _must_be_guarded(path: Path, text: str) -> None:
    """Peers run the whole file: whatever submits the job must not run there too."""
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        code = frame.f_code
        if code.co_name == "<module>" and Path(code.co_filename) == path and not is_guarded(text, frame.f_lineno):
            raise JobFileWrong(
                f"{path}, line {frame.f_lineno}: peers load this whole file, and would run this line too",
                fix='put what submits the job below: if __name__ == "__main__":',
            )


# --- a notebook ---


def _of_cells(kind: type) -> str:
    gathered = _Gathered(kind.__module__)
    gathered.define(kind.__name__, kind)
    return together(gathered.imports, gathered.pieces.values())


@dataclass
class _Gathered:
    """The pieces that a class needs, found name by name; a piece that another one stands on comes before it."""

    module: str
    imports: list[str] = field(default_factory=list)
    pieces: dict[str, str] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    def define(self, name: str, value: Any) -> None:
        """A class or a function of the notebook, after all that it names."""
        if name in self.begun:
            return
        self.begun.add(name)
        text = definition("".join(linecache.getlines(_where(value))), value.__name__)
        if not text:
            raise JobFileWrong(
                f"the source of {name} cannot be found",
                fix="write it at the top level of a cell with class or def, or into a file",
            )
        around = vars(sys.modules[self.module])
        for needed in free_names(text):
            if needed in around:
                self._take(needed, around[needed], by=name)
        self.pieces[name] = text if value.__name__ == name else f"{text}\n{name} = {value.__name__}\n"

    def _take(self, name: str, value: Any, *, by: str) -> None:
        if isinstance(value, type | FunctionType) and value.__module__ == self.module:
            self.define(name, value)
        elif line := _import_line(name, value):
            self.imports.append(line)
        elif (text := literal(value)) is not None:
            self.pieces[name] = f"{name} = {text}"
        else:
            raise JobFileWrong(
                f"{by} names {name}, of type {type(value).__name__}, which cannot be sent as text",
                fix=f"make it inside of {by}, or save it to a file and name that in data",
            )


def _where(value: Any) -> str:
    return _place_of(value) if isinstance(value, type) else str(inspect.unwrap(value).__code__.co_filename)


def _import_line(name: str, value: Any) -> str:
    """The line that imports the value under that name; empty when no module has it."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__}" if value.__name__ == name else f"import {value.__name__} as {name}"
    home = getattr(value, "__module__", None) or type(value).__module__
    for module in dict.fromkeys((str(home), str(home).partition(".")[0])):
        for called in (getattr(value, "__name__", name), name):
            if module not in ("__main__", "builtins") and _has(module, called, value):
                return f"from {module} import {called}" + ("" if called == name else f" as {name}")
    return ""


def _has(module: str, name: str, value: Any) -> bool:
    try:
        return getattr(importlib.import_module(module), name, None) is value
    except ImportError:
        return False
