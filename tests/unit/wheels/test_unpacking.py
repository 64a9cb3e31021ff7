"""What comes of a wheel, without the sandbox around it: every file checked by name and count, every bad wheel named."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.errors import LimitReached, MalformedMessage, PeerMisbehaved
from axonp2p.wheels.arrival import Arrival
from axonp2p.wheels.bundled import ENTRY_BYTES, MOST_UNPACKED_BYTES, MOST_UNPACKED_FILES
from axonp2p.wheels.messages import PART_BYTES, UnpackedFile
from axonp2p.wheels.unpacker import NoWheel, ToldFiles, unpack
from axonp2p.wheels.wheel_writer import WheelWriter
from tests.laboratory.wheel_files import hostile_wheels, write_wheel

HOSTILE = hostile_wheels()


def unpacked(wheel: Path, into: Path, most_bytes: int = 2**31) -> set[str]:
    """The names of its files."""
    into.mkdir()
    writer = WheelWriter("gull 1.0", into, most_bytes)
    try:
        unpack(wheel, ToldFiles(lambda message, payload=b"": writer.hear(message, payload)))
    finally:
        writer.close()
    return {str(one.relative_to(into)) for one in into.rglob("*") if one.is_file()}


def test_modules_come_out_and_commands_do_not(tmp_path: Path) -> None:
    files = {"gull/__init__.py": b"", "gull-1.0.data/platlib/tern.py": b"", "gull-1.0.data/scripts/gull": b""}
    found = unpacked(write_wheel(tmp_path, files), tmp_path / "site")
    info = {f"gull-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    assert found == {"gull/__init__.py", "tern.py"} | info


@pytest.mark.parametrize("wrong", HOSTILE)
def test_every_bad_wheel_is_named_and_writes_nothing_outside(wrong: str, tmp_path: Path) -> None:
    make, says = HOSTILE[wrong]
    made = tmp_path / "made"
    made.mkdir()
    wheel = make(made)
    most = 10 * 2**20 if wrong == "a bomb" else 2**31
    with pytest.raises((NoWheel, PeerMisbehaved, LimitReached), match=says):
        unpacked(wheel, tmp_path / "site", most)
    assert {one.name for one in tmp_path.iterdir()} == {"made", "site"}
    assert [one.name for one in made.iterdir()] == [wheel.name]
    assert not any(one.is_symlink() for one in (tmp_path / "site").rglob("*"))


# What a sandbox says that a wheel has taken over: the daemon believes none of it.


def arrival(most_bytes: int = 100_000) -> Arrival:
    return Arrival("gull 1.0", most_bytes)


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a//b", "a/./b", "a\\b", "a\n", "a/../../b", ".", ".."])
def test_no_name_leads_out(path: str) -> None:
    with pytest.raises(PeerMisbehaved, match=r"gull 1\.0 has a file"):
        arrival().begin(UnpackedFile(path=path, executable=False))


def test_a_file_is_no_folder_and_comes_once() -> None:
    came = arrival()
    came.begin(UnpackedFile(path="a/b", executable=False))
    for again in ("a/b", "a", "a/b/c"):
        with pytest.raises(PeerMisbehaved):
            came.begin(UnpackedFile(path=again, executable=False))


def test_bytes_and_files_are_counted() -> None:
    came = arrival(most_bytes=ENTRY_BYTES + 1000)
    with pytest.raises(MalformedMessage):
        came.part(1)  # of no file
    came.begin(UnpackedFile(path="a", executable=False))
    came.part(1000)
    with pytest.raises(LimitReached, match="unpacks to more than"):
        came.part(1)
    for wrong in (0, PART_BYTES + 1):
        with pytest.raises(MalformedMessage):
            arrival().part(wrong)
    with pytest.raises(MalformedMessage):
        came.end(2)
    many = arrival(MOST_UNPACKED_BYTES)
    for number in range(MOST_UNPACKED_FILES):
        many.begin(UnpackedFile(path=f"f{number}", executable=False))
    with pytest.raises(LimitReached, match="more than 40000 files"):
        many.begin(UnpackedFile(path="one-more", executable=False))


def test_each_file_and_each_new_folder_counts_what_it_takes_of_the_disk(tmp_path: Path) -> None:
    came = arrival(most_bytes=4 * ENTRY_BYTES + 5)
    came.begin(UnpackedFile(path="a/b/c", executable=False))
    came.part(5)
    assert came.bytes == 3 * ENTRY_BYTES + 5
    came.begin(UnpackedFile(path="a/b/d", executable=False))
    assert came.bytes == 4 * ENTRY_BYTES + 5
    with pytest.raises(LimitReached, match="unpacks to more than"):
        came.begin(UnpackedFile(path="e", executable=False))
    writer = WheelWriter("gull 1.0", tmp_path, MOST_UNPACKED_BYTES)
    writer.hear(UnpackedFile(path="a/b/c", executable=False), b"")
    writer.close()
    assert writer.size == 3 * ENTRY_BYTES
    assert (tmp_path / "a" / "b" / "c").is_file()
