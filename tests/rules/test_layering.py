"""The floors, the torch line and the independence of the programs, as setup.cfg's contracts have them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_imports_only_go_down() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_room_descriptions_speak_and_import_nothing() -> None:
    for package in ("axonp2p", "peer_daemon", "tracker", "client_cli"):
        for init in (ROOT / package).rglob("__init__.py"):
            text = init.read_text()
            assert text.startswith('"""'), f"{init} does not say what its room is for"
            lines = [
                line for line in text.splitlines() if line.startswith(("import ", "from ")) and "__future__" not in line
            ]
            allowed = init == ROOT / "axonp2p" / "__init__.py"  # the library's face, loaded when it is asked for
            assert allowed or not lines, f"{init} imports"


def test_a_room_can_be_taken_in_at_a_glance() -> None:
    # The library's public modules have the names by which people import them, so they can be in no other room.
    public = {ROOT / "axonp2p" / f"{name}.py" for name in ("events", "joblib", "tasks")}
    rooms = {
        str(init.parent.relative_to(ROOT)): sum(
            file.name != "__init__.py" and file not in public for file in init.parent.glob("*.py")
        )
        for package in ("axonp2p", "peer_daemon", "tracker", "client_cli")
        for init in (ROOT / package).rglob("__init__.py")
    }
    assert {room: files for room, files in rooms.items() if files > 20} == {}


def test_training_is_imported_by_its_kind_and_by_the_public_names_alone() -> None:
    found = set()
    for package in ("axonp2p", "peer_daemon", "tracker", "client_cli"):
        for file in (ROOT / package).rglob("*.py"):
            name = file.relative_to(ROOT).as_posix()
            if name.startswith(("axonp2p/training/", "axonp2p/kinds/train/")):
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                named = []
                if isinstance(node, ast.Import):
                    named = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    named = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
                found.update(name for one in named if f"{one}.".startswith("axonp2p.training."))
    assert found == {"axonp2p/__init__.py", "axonp2p/tasks.py"}


def test_a_class_name_stands_for_one_thing() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for package in ("axonp2p", "peer_daemon", "tracker", "client_cli"):
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
