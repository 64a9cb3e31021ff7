"""What a job's program left, read without following links, and no more of it than may come home."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from pathlib import Path

from axonp2p.jobs.messages import PART_BYTES
from axonp2p.jobs.output_files import EVERY_FILE, words_of_files
from axonp2p.jobs.output_messages import OutputBounds, OutputFile, OutputPart, OutputsSent, file_name_hash


def said(
    folder: Path, have: Collection[bytes] = (), files: int = 9, size: int = 2**30
) -> tuple[dict[str, bytes], OutputsSent]:
    """The files that are sent, by name, and the last word."""
    found, content = dict[str, bytes](), b""
    for message, payload in words_of_files(folder, 7, EVERY_FILE, OutputBounds(files, size), have):
        assert message.request == 7
        match message:
            case OutputPart(offset=offset):
                content = content[:offset] + payload
            case OutputFile():
                assert (message.size, message.sha256) == (len(content), hashlib.sha256(content).digest())
                found[message.path], content = content, b""
            case OutputsSent():
                return found, message
    raise AssertionError("there is no last word")


def test_all_files_come_each_with_its_hash(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "large").write_bytes(bytes(PART_BYTES + 5))
    (tmp_path / "empty").touch()
    assert said(tmp_path) == (
        {"empty": b"", "deep/large": bytes(PART_BYTES + 5)},
        OutputsSent(request=7, files=2),
    )


def test_links_and_pipes_do_not_come(tmp_path: Path) -> None:
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    (tmp_path / "etc").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    assert said(tmp_path) == ({}, OutputsSent(request=7, files=0))


def test_what_is_too_many_or_too_large_is_counted(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"1234")
    assert said(tmp_path, files=2) == ({"a": b"1234", "b": b"1234"}, OutputsSent(request=7, files=2, left_out=1))
    assert said(tmp_path, size=7) == ({"a": b"1234"}, OutputsSent(request=7, files=1, left_out=2))


def test_what_is_there_already_does_not_come_again_under_that_name(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"same")
    have = {file_name_hash("a", hashlib.sha256(b"same").digest())}
    assert said(tmp_path, have) == ({"b": b"same"}, OutputsSent(request=7, files=1))


def test_a_file_that_has_grown_beyond_what_may_come_is_broken_off(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"123")
    words = words_of_files(tmp_path, 7, EVERY_FILE, OutputBounds(9, 6))
    told = [next(words)[0]]
    (tmp_path / "b").write_bytes(b"12345678")
    told += [message for message, _ in words]
    assert [type(message) for message in told] == [OutputPart, OutputFile, OutputsSent]
    assert told[-1] == OutputsSent(request=7, files=1, left_out=1)


def test_no_folder_has_no_files(tmp_path: Path) -> None:
    assert said(tmp_path / "none") == ({}, OutputsSent(request=7, files=0))
