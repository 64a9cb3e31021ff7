"""A folder as one run of bytes: whatever part of it is asked for, and whatever a stranger sends instead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from axonp2p.errors import MalformedMessage
from axonp2p.hosting.packed_folder import HEAD_LIMIT, read_head, read_packed, unpack

FILES = {"a.txt": b"abc", "deep/er/b.bin": bytes(range(256)) * 3, "empty": b"", "z é.txt": b"line\nline\n"}
SIZE = sum(map(len, FILES.values()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "3"
    for name, content in FILES.items():
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_bytes(content)
    return found


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("most", [1, 7, 100, 2**20])
def test_in_parts_of_any_size_it_comes_to_the_same_files(folder: Path, tmp_path: Path, most: int) -> None:
    content = b""
    while part := read_packed(folder, len(content), most):
        assert len(part) <= most
        content += part
    assert content == read_packed(folder, 0, 2**30)
    packed = tmp_path / "packed"
    packed.write_bytes(content)
    unpack(packed, tmp_path / "unpacked", SIZE)
    assert files_in(tmp_path / "unpacked") == FILES


def test_a_folder_without_files_is_one_as_well(tmp_path: Path) -> None:
    (tmp_path / "3").mkdir()
    (tmp_path / "packed").write_bytes(read_packed(tmp_path / "3", 0, 100))
    unpack(tmp_path / "packed", tmp_path / "unpacked", 0)
    assert list((tmp_path / "unpacked").iterdir()) == []
    with pytest.raises(FileNotFoundError):
        read_packed(tmp_path / "4", 0, 100)


def test_what_is_no_plain_file_is_left_out(folder: Path, tmp_path: Path) -> None:
    before = read_packed(folder, 0, 2**20)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "elsewhere").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    assert read_packed(folder, 0, 2**20) == before


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b'[["../a",3]]\nabc', "must not have"),
        (b'[["/etc/passwd",3]]\nabc', "relative"),
        (b'[["a",1],["a",2]]\nabc', "twice"),
        (b'[["a",1],["a/b",2]]\nabc', "file and a folder"),
        (b'[["a\\u202e",3]]\nabc', "invisible"),
        (b'[["a",4]]\nabcd', "files of 4 bytes"),
        (b'[["a",2]]\nab', "files of 2 bytes"),
        (b'[["a",-1],["b",4]]\nabc', "not named as they should be"),
        (b'[["a",3,"link"]', "another number of bytes"),
        (b'{"a":3}\nabc', "not named as they should be"),
        (b"\xff\nabc", "not named as they should be"),
        (b"\nabc", "not named as they should be"),
        (b"[" * 5000 + b"\nabc", "not named as they should be"),
        (b'[["a",3]]\nabcd', "another number of bytes"),
        (b'[["a",3]]\nab', "another number of bytes"),
        (b" " * HEAD_LIMIT + b'[["a",3]]\nabc', "within their bounds"),
        (b"", "another number of bytes"),
    ],
)
def test_what_a_stranger_makes_up_is_not_unpacked(tmp_path: Path, packed: bytes, reason: str) -> None:
    (tmp_path / "packed").write_bytes(packed)
    with pytest.raises(MalformedMessage, match=reason):
        unpack(tmp_path / "packed", tmp_path / "unpacked", 3)
    assert [path.name for path in tmp_path.iterdir()] == ["packed"]


def test_the_names_may_come_in_parts(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(b'[["a"')
    assert read_head(tmp_path / "packed", 3) is None
