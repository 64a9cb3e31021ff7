"""What `axon init` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.errors import JobFileWrong, SettingsError
from axonp2p.jobs.bundle import collect
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.spec import read_spec
from client_cli.job_template import digits_folder, write_job


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_is_a_job_of_that_name_and_kind(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "deep" / "down" / "my-own"
    files = write_job(folder, kind)
    assert sorted(files) == sorted(path.name for path in folder.iterdir())
    spec = read_spec(folder)
    assert (spec.name, spec.kind) == ("my-own", kind)
    assert collect(folder, spec).size > 0


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert write_job(tmp_path / "mine", "train")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("keep")
    with pytest.raises(SettingsError, match="not empty"):
        write_job(tmp_path / "mine", "train")
    (tmp_path / "file").write_text("keep")
    with pytest.raises(SettingsError, match="there already"):
        write_job(tmp_path / "file", "train")


@pytest.mark.parametrize("name", ["two words", "-x", "x" * 80])
def test_a_name_that_no_job_may_have_is_refused_and_nothing_is_made(tmp_path: Path, name: str) -> None:
    with pytest.raises(JobFileWrong):
        write_job(tmp_path / name, "train")
    assert list(tmp_path.iterdir()) == []


def test_the_demos_job_ships_with_the_program() -> None:
    folder = digits_folder()
    spec = read_spec(folder)
    assert {file.path for file in collect(folder, spec).files} == {"job.toml", "task.py", "digits.csv.gz"}
