"""The source text of a task that stands in a script or a notebook: what is in it, and what of it can travel. Pure."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Mapping
from typing import Any

LONGEST_VALUE = 100_000
"""Characters of a value that is written into a task's text; more belongs into a file."""

_TAIL = '''

_AsWritten = {name}


class Task(_AsWritten):
    """`{name}` with the values that the submitted object held."""

    def __init__(self):
        self.__dict__.update({values})
'''


def definition(text: str, name: str) -> str:
    """The class or function of that name that stands at the top level, decorators included; empty when none does."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [node for node in ast.parse(text).body if isinstance(node, kinds) and node.name == name]
    if not found:
        return ""
    node = found[-1]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "".join(line + "\n" for line in text.splitlines()[first - 1 : node.end_lineno])


def is_guarded(text: str, line: int) -> bool:
    """Whether that line stands below `if __name__ == "__main__":`, and does not run where the text is imported."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and node.lineno < line <= (node.body[-1].end_lineno or 0):
            names = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
            values = {part.value for part in ast.walk(node.test) if isinstance(part, ast.Constant)}
            if "__name__" in names and "__main__" in values:
                return True
    return False


def free_names(text: str) -> list[str]:
    """The names that it reads and does not define: globals of the module that it was written in, in their order."""
    top = symtable.symtable(text, "task", "exec")
    own = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    found: dict[str, None] = {}
    waiting = [top]
    while waiting:
        table = waiting.pop(0)
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                found[symbol.get_name()] = None
        waiting += table.get_children()
    return [name for name in found if name not in own and not hasattr(builtins, name)]


def imported_modules(text: str) -> list[str]:
    """The first parts of the modules that it imports anywhere, such as `torch`; `.` for one beside it in a package."""
    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0]: None for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found["." if node.level else str(node.module).partition(".")[0]] = None
    return list(found)


def literal(value: Any) -> str | None:
    """The value as Python text: a number, text, None, or lists, tuples and dicts of these; None for all else."""
    text = repr(value)
    if len(text) > LONGEST_VALUE:
        return None
    try:
        read = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return text if type(read) is type(value) and read == value else None


def with_name(text: str, name: str, values: Mapping[str, Any] | None) -> str:
    """The text, in which the class `name` is called `Task` as peers look for it.

    `values`: of an object of it, all literals; None when it was the class that was submitted.
    """
    text = text if text.endswith("\n") else f"{text}\n"
    if values is not None:
        return text + _TAIL.format(name=name, values=dict(values))
    return text if name == "Task" else f"{text}\n\nTask = {name}\n"


def together(imports: Iterable[str], pieces: Iterable[str]) -> str:
    """One text of import lines and definitions."""
    parts = ["\n".join(dict.fromkeys(imports)), *(piece.strip("\n") for piece in pieces)]
    return "\n\n\n".join(part for part in parts if part) + "\n"
