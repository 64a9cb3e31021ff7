"""The one rule for names in a bundle."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.jobs.file_names import why_bad_name, why_bad_together


@pytest.mark.parametrize(
    "path", ["task.py", "data/train.csv.gz", "a b.txt", "für/Elise.mid", ".hidden", "a..b", "数据.bin"]
)
def test_ordinary_names_are_allowed(path: str) -> None:
    assert why_bad_name(path) == ""


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "1 to 200"),
        ("x" * 201, "1 to 200"),
        ("/etc/passwd", "relative"),
        ("../x", ".."),
        ("a/../../x", ".."),
        ("./x", ".."),
        ("a//b", "empty parts"),
        ("a/", "empty parts"),
        ("..", ".."),
        ("a\\..\\b", "backslash"),
        ("a\0b", "invisible"),
        ("a\nb", "invisible"),
        ("csv.\u202egnp", "invisible"),
        ("a\u200bb", "invisible"),
        ("\ud800", "invisible"),
        ("fu\u0308r", "normal form"),
        ("数" * 100, "255 bytes"),
    ],
)
def test_names_that_may_do_harm_are_refused(path: str, reason: str) -> None:
    assert reason in why_bad_name(path)


@given(st.text(max_size=220))
def test_what_is_allowed_stays_below_its_folder(path: str) -> None:
    if not why_bad_name(path):
        parts = PurePosixPath("/job", path).parts
        assert parts[:2] == ("/", "job")
        assert ".." not in parts
        assert len(parts) == 2 + path.count("/") + 1
        path.encode()


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        (["a", "b", "a"], "twice"),
        (["a/b", "a"], "a file and a folder"),
        (["a", "a/b/c"], "a file and a folder"),
        (["a", "../b"], ".."),
    ],
)
def test_names_that_do_not_go_together(paths: list[str], reason: str) -> None:
    assert reason in why_bad_together(paths)


def test_names_that_go_together() -> None:
    assert why_bad_together(["task.py", "data/a", "data/b", "data2"]) == ""
