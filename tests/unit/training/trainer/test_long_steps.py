"""What takes long in a task is told with the line of its file at which it is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from axonp2p.jobs.file_names import WHEELS_FOLDER
from axonp2p.training.trainer.long_steps import LongSteps, place_of

TASK = """
def data(look, library):
    return library(look)
"""
LIBRARY = """
def library(look):
    return look()
"""


class Time:
    now = 100.0


@pytest.fixture
def at(tmp_path: Path) -> FrameType:
    """The frame of a thread whose task calls a library, which calls what is here."""
    found: dict[str, Any] = {}
    for name, text in ((f"{WHEELS_FOLDER}/site/library.py", LIBRARY), ("task.py", TASK)):
        exec(compile(text, str(tmp_path / name), "exec"), found)
    frame: FrameType = found["data"](lambda: sys._getframe(), found["library"])
    return frame


def test_the_line_is_the_authors_own_and_no_librarys(at: FrameType, tmp_path: Path) -> None:
    assert place_of(at, tmp_path) == "it is at task.py, line 3, in data"
    assert place_of(at, tmp_path / "elsewhere") == "it is at no line of the task's own files"
    assert place_of(None, tmp_path) == "it is at no line of the task's own files"


def test_what_takes_long_is_told_again_after_twice_as_long(at: FrameType, tmp_path: Path) -> None:
    watch = LongSteps(tmp_path, lambda: Time.now)
    assert watch.due(at, 1000.0) == "", "nothing has begun"
    watch.begins()
    told = [second for second in range(60) if watch.due(at, 100.0 + second)]
    assert told == [10, 20, 40]
    watch.begins()
    assert watch.due(at, 105.0) == ""
    assert watch.due(at, 112.4) == "a piece of the task has taken 12 s: it is at task.py, line 3, in data"
    watch.ends()
    assert watch.due(at, 900.0) == ""
