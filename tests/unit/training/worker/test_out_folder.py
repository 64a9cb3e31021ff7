"""/out is a member's own, and while steps of another are taken again it is theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from axonp2p.training.worker.out_folder import OutFolder


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OutFolder:
    monkeypatch.setenv("AXON_OUT", "")
    made = OutFolder(tmp_path)
    made.make()
    return made


def write(name: str) -> None:
    (Path(os.environ["AXON_OUT"]) / name).write_text(name)


def test_what_is_written_meanwhile_lies_elsewhere(out: OutFolder, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    write("before")
    with out.elsewhere(theirs):
        write("meanwhile")
    write("after")
    assert {path.name for path in out.own.iterdir()} == {"before", "after"}
    assert [path.name for path in theirs.iterdir()] == ["meanwhile"]


def test_it_leads_back_also_after_an_error(out: OutFolder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"), out.elsewhere(tmp_path / "gone"):
        raise ValueError("x")
    write("after")
    assert [path.name for path in out.own.iterdir()] == ["after"]


def test_a_task_that_has_a_folder_there_keeps_it(out: OutFolder, tmp_path: Path) -> None:
    link = tmp_path / "out"
    link.unlink()
    link.mkdir()
    with out.elsewhere(tmp_path):
        write("its own")
    assert [path.name for path in link.iterdir()] == ["its own"]
