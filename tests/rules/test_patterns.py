"""Patterns of what travels: none lets a line end pass behind what it allows, as `$` does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("axonp2p", "peer_daemon", "tracker", "client_cli")


def _patterns() -> Iterator[tuple[str, str]]:
    """(place, pattern) of each `msgspec.Meta(pattern=...)`; a name stands for the text that its file gives it."""
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        source = path.read_text()
        if "pattern" not in source:
            continue
        tree = ast.parse(source)
        texts = {
            target.id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "pattern":
                value = node.value
                if isinstance(value, ast.JoinedStr):  # its first and last parts are what matters
                    parts = [part for part in value.values if isinstance(part, ast.Constant)]
                    text = f"{parts[0].value}{parts[-1].value}"
                else:
                    text = texts.get(value.id) if isinstance(value, ast.Name) else getattr(value, "value", None)
                yield f"{path.relative_to(ROOT)}:{value.lineno}", str(text)


def test_every_pattern_of_a_message_is_bound_at_both_ends() -> None:
    found = dict(_patterns())
    assert len(found) > 10
    loose = {place: text for place, text in found.items() if not (text.startswith("^") and text.endswith(r"\Z"))}
    assert not loose
