"""The text of a task that was written in a script or a notebook."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.jobs.task_text import definition, free_names, imported_modules, is_guarded, literal, together, with_name

SCRIPT = """\
import torch
from . import beside

@torch.no_grad
def net(): return 1

class Task:
    size = SIZE
    def model(self, hidden=WIDTH):
        batch = torch.zeros(hidden)
        return [net(part) for part in batch]

if __name__ == "__main__":
    import axonp2p.events
    run()
run()
if True:
    run()
"""


def test_a_definition_comes_with_its_decorators() -> None:
    assert definition(SCRIPT, "net") == "@torch.no_grad\ndef net(): return 1\n"
    assert definition(SCRIPT, "Task").startswith("class Task:")
    assert definition(SCRIPT, "model") == ""
    assert definition("class A: a = 1\nclass A: a = 2\n", "A") == "class A: a = 2\n"


def test_only_what_stands_below_the_guard_is_not_run_at_peers() -> None:
    lines = SCRIPT.splitlines()
    guarded = {number for number in range(1, len(lines) + 1) if is_guarded(SCRIPT, number)}
    assert guarded == {lines.index("    import axonp2p.events") + 1, lines.index("    import axonp2p.events") + 2}


def test_names_that_a_class_needs_from_around_it() -> None:
    assert set(free_names(definition(SCRIPT, "Task"))) == {"SIZE", "WIDTH", "torch", "net"}
    assert free_names("class T(Base):\n    x = 1\n    def f(self, x):\n        y = x\n        return len(y)\n") == [
        "Base"
    ]


def test_modules_that_a_text_imports() -> None:
    assert imported_modules(SCRIPT) == ["torch", ".", "axonp2p"]


@pytest.mark.parametrize("value", [1, 0.1, "text", None, True, [1, (2, "x")], {"a": [1.5]}, {1, 2}])
def test_plain_values_are_text(value: Any) -> None:
    text = literal(value)
    assert text is not None
    assert eval(text) == value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), object(), range(3), "x" * 200_000, type("I", (int,), {})(3)]
)
def test_other_values_are_not(value: Any) -> None:
    assert literal(value) is None


def test_a_class_of_any_name_with_its_values_is_the_task() -> None:
    text = "class Mine:\n    def __init__(self, rate): self.rate = rate\n    def model(self): return self.rate"
    around: dict[str, Any] = {}
    exec(with_name(text, "Mine", {"rate": 0.1}), around)
    assert around["Task"]().model() == 0.1
    exec(with_name(text, "Mine", None), around)
    assert around["Task"] is around["Mine"]
    assert with_name("class Task: pass\n", "Task", None) == "class Task: pass\n"


def test_imports_stand_once_and_first() -> None:
    assert together(["import a", "import b", "import a"], ["X = 1", "class T: pass\n"]) == (
        "import a\nimport b\n\n\nX = 1\n\n\nclass T: pass\n"
    )
