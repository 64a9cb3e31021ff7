from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from axonp2p.errors import AlreadyRunning, SettingsError
from axonp2p.files import locked, put_aside, replacing, write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    for content in (b"a long first content", b"short"):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_nothing_of_a_damaged_database_is_lost_or_taken_for_a_part_of_the_next(tmp_path: Path) -> None:
    for name in ("book.db", "book.db-wal", "book.db-shm"):
        (tmp_path / name).write_text(name)
    aside = put_aside(tmp_path / "book.db")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        aside.name + end: f"book.db{end}" for end in ("", "-wal", "-shm")
    }


def test_what_fails_midway_changes_nothing(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", b"before")

    def fail_midway() -> None:
        with replacing(tmp_path / "file") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    assert (tmp_path / "file").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_lock_has_one_holder_at_a_time_and_names_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with (
        locked(lock, "taken", fix=""),
        pytest.raises(AlreadyRunning, match=rf"taken \(pid {os.getpid()}\)"),
        locked(lock, "taken", fix=""),
    ):
        pass
    with locked(lock, "taken", fix=""):
        pass


def test_a_holder_that_is_killed_lets_go(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib, time\n"
        "from axonp2p.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), 'taken', fix=''):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    lock = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", program, str(lock)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(AlreadyRunning), locked(lock, "taken", fix=""):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with locked(lock, "taken", fix=""):
        pass


def test_a_folder_that_is_not_there_is_no_bug(tmp_path: Path) -> None:
    with pytest.raises(SettingsError), locked(tmp_path / "none" / "lock", "taken", fix=""):
        pass


def test_a_link_at_the_name_of_what_is_being_written_is_not_followed(tmp_path: Path) -> None:
    """The name can be guessed, and a home may lie in a folder that others may write to."""
    (tmp_path / "secret").write_bytes(b"mine")
    (tmp_path / f".file.{os.getpid()}").symlink_to(tmp_path / "secret")
    write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "secret").read_bytes() == b"mine"
    assert (tmp_path / "file").read_bytes() == b"new"
    assert not (tmp_path / "file").is_symlink()


def test_a_link_at_the_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"mine")
    (tmp_path / "file").symlink_to(tmp_path / "secret")
    write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "secret").read_bytes() == b"mine"
