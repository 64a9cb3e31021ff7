"""docs/architecture.md marks each file: it decides, does, computes, or wires. The marks must be true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("axonp2p", "peer_daemon", "tracker", "client_cli")
MARKS = {"decides", "does", "computes", "wires"}

TOUCHES_THE_WORLD = {
    "aiohttp", "asyncio", "http", "multiprocessing", "os", "psutil", "secrets", "select", "selectors", "shutil",
    "signal", "socket", "sqlite3", "sqlite_utils", "ssl", "subprocess", "tempfile", "threading", "time",
}  # fmt: skip


def source_files() -> dict[str, Path]:
    """Every file of the house by its path, packages' own `__init__` aside: they speak, they do not act."""
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {str(file.relative_to(ROOT)): file for file in files if file.name != "__init__.py"}


def marks() -> dict[str, str]:
    page = (ROOT / "docs" / "architecture.md").read_text()
    return dict(re.findall(r"^\| `([\w/]+\.py)` \| (\w+) \|", page, flags=re.MULTILINE))


def imported_modules(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def test_each_file_is_marked_and_no_mark_is_left_over() -> None:
    assert set(marks()) == set(source_files())
    assert set(marks().values()) <= MARKS


def test_torch_is_imported_only_by_files_that_compute() -> None:
    for path, file in source_files().items():
        if any(name.split(".")[0] in ("torch", "safetensors") for name in imported_modules(file)):
            assert marks()[path] == "computes", path


@pytest.mark.parametrize("path", sorted(path for path, mark in marks().items() if mark == "decides"))
def test_a_file_that_decides_stays_away_from_the_world(path: str) -> None:
    file = source_files()[path]
    names = imported_modules(file)
    assert not {name.split(".")[0] for name in names} & TOUCHES_THE_WORLD
    ours = {f"{name.replace('.', '/')}.py" for name in names if name.split(".")[0] in PACKAGES}
    impure = {other for other in ours & set(marks()) if marks()[other] != "decides"}
    assert not impure, f"{path} decides, but imports {impure}"


@pytest.mark.parametrize("path", sorted(path for path, mark in marks().items() if mark == "decides"))
def test_a_file_that_decides_neither_waits_nor_throws_dice_of_its_own(path: str) -> None:
    tree = ast.parse(source_files()[path].read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {ast.unparse(call.func) for call in calls}
    assert "open" not in names
    dice = {name for name in names if name.startswith("random.") and name != "random.Random"}
    assert not dice, "chance is passed in, or drawn from a seeded random.Random"
