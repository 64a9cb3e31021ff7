"""Files of strangers on their way to this disk: bounded, verified, and beside what lies there already."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from axonp2p.client.storage.arriving_files import ArrivingFiles, files_below
from axonp2p.errors import PeerMisbehaved
from axonp2p.jobs.output_files import EVERY_FILE
from axonp2p.jobs.output_messages import OutputBounds, OutputFile, OutputPart, OutputsSent

BOUNDS = OutputBounds(files=3, bytes=10)


def arriving(folder: Path, there: Mapping[str, int] | None = None, request: int = 1) -> ArrivingFiles:
    place = folder / "otter"
    return ArrivingFiles(place, folder / "part", request, patterns=EVERY_FILE, bounds=BOUNDS, there=there)


def send(files: ArrivingFiles, number: int, path: str, content: bytes) -> None:
    if content:
        files.take(OutputPart(request=files.request, number=number, offset=0), content)
    sha256 = hashlib.sha256(content).digest()
    files.take(OutputFile(request=files.request, number=number, path=path, size=len(content), sha256=sha256))


def test_each_file_is_there_as_soon_as_it_is_whole(tmp_path: Path) -> None:
    files = arriving(tmp_path)
    send(files, 0, "deep/a.csv", b"one")
    assert files_below(tmp_path / "otter") == {"deep/a.csv": 3}
    files.take(OutputPart(request=1, number=1, offset=0), b"lost")
    files.drop_part()
    assert files_below(tmp_path) == {"otter/deep/a.csv": 3}


def test_a_newer_file_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    first = arriving(tmp_path)
    send(first, 0, "a", b"123456")
    second = arriving(tmp_path, first.there, request=2)
    send(second, 0, "a", b"12345678")
    second.take(OutputsSent(request=2, files=1))
    assert (tmp_path / "otter" / "a").read_bytes() == b"12345678"
    assert (second.there, second.complete, second.left_out) == ({"a": 8}, True, 0)


@pytest.mark.parametrize("path", ["b", "a/b"])
def test_what_has_no_room_beside_earlier_files_is_left_out_and_nobody_is_to_blame(tmp_path: Path, path: str) -> None:
    files = arriving(tmp_path, {"a": 6})
    send(files, 0, path, b"12345" if path == "b" else b"1")
    files.take(OutputsSent(request=1, files=1, left_out=2))
    assert (files.left_out, files.files, files.there) == (3, 0, {"a": 6})
    assert path in files.hashes
    assert not (tmp_path / "otter").exists()


def test_more_files_than_may_lie_there_are_left_out(tmp_path: Path) -> None:
    files = arriving(tmp_path, {"a": 1, "b": 1, "c": 1})
    send(files, 0, "d", b"")
    assert files.left_out == 1


def test_more_bytes_than_one_request_may_bring_are_misbehaviour_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    files = arriving(tmp_path)
    files.take(OutputPart(request=1, number=0, offset=0), b"123456")
    with pytest.raises(PeerMisbehaved, match="more than 10 bytes"):
        files.take(OutputPart(request=1, number=1, offset=0), b"12345")


@pytest.mark.parametrize("path", ["../job.json", "/etc/passwd", "a\nb", "a//b"])
def test_a_name_that_no_file_may_have_is_misbehaviour(tmp_path: Path, path: str) -> None:
    with pytest.raises(PeerMisbehaved):
        send(arriving(tmp_path), 0, path, b"1")


def test_words_of_another_request_change_nothing(tmp_path: Path) -> None:
    files = arriving(tmp_path)
    files.take(OutputPart(request=9, number=0, offset=5), b"late")
    files.take(OutputsSent(request=9, files=7))
    assert not files.complete
    assert files_below(tmp_path) == {}
