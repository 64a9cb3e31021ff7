from __future__ import annotations

import os
import stat
from types import SimpleNamespace

import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import LimitReached, MalformedMessage, MessageTooLarge
from peer_daemon.bundles import bundle_writer
from peer_daemon.bundles.bundle_writer import BundleWriter
from peer_daemon.wheels.wheel_cache import WheelCache
from peer_daemon.wheels.wheel_policy import WheelPolicy


def no_wheels(folder):
    return WheelCache(folder / "wheels", WheelPolicy("none"), 0)


def blob(**files: bytes) -> Blob:
    return Blob(
        Manifest(
            files=[
                BlobFile(path=path.replace("__", "/"), size=len(content), hashes=book_of(content).hashes)
                for path, content in files.items()
            ]
        )
    )


@pytest.fixture
def writer(tmp_path):
    writer = BundleWriter(tmp_path / "lease", wheels=no_wheels(tmp_path), limit_bytes=PIECE_BYTES + 1000)
    writer.make()
    return writer


def test_files_arrive_in_pieces_of_any_order(writer):
    long = bytes(PIECE_BYTES) + b"the end"
    assert writer.open(blob(a=long, sub__b=b"", sub__c=b"xyz")) == set()
    writer.write(2, memoryview(b"xyz"))
    writer.write(1, memoryview(b"the end"))
    writer.write(0, memoryview(bytes(PIECE_BYTES)))
    found = {name: (writer.bundle / name).read_bytes() for name in ("a", "sub/b", "sub/c")}
    assert found == {"a": long, "sub/b": b"", "sub/c": b"xyz"}
    assert writer.read(1) == b"the end"


def test_only_the_owner_gets_to_a_bundle_which_the_worker_of_another_user_may_read(tmp_path):
    usual = os.umask(0o077)
    try:
        writer = BundleWriter(tmp_path / "lease", wheels=no_wheels(tmp_path), limit_bytes=1000)
        writer.make()
        writer.open(blob(a=b"", sub__b=b""))
    finally:
        os.umask(usual)
    modes = {"": 0o700, "bundle": 0o755, "bundle/a": 0o644, "bundle/sub": 0o755, "bundle/sub/b": 0o644}
    assert {path: stat.S_IMODE((tmp_path / "lease" / path).stat().st_mode) for path in modes} == modes


def test_files_of_a_job_that_executes_its_programs_may_be_executed(tmp_path):
    writer = BundleWriter(tmp_path / "lease", wheels=no_wheels(tmp_path), limit_bytes=1000, executes=True)
    writer.make()
    writer.open(blob(a=b""))
    assert stat.S_IMODE((writer.bundle / "a").stat().st_mode) == 0o755


@pytest.mark.parametrize("name", ["..__a", "__etc__passwd", "a__..__b", "."])
def test_no_file_leaves_the_folder(writer, tmp_path, name):
    with pytest.raises(MalformedMessage):
        writer.open(blob(**{name: b"x"}))
    assert [path.name for path in tmp_path.iterdir()] == ["lease"]


def test_more_than_the_volunteer_lends_is_refused(writer):
    with pytest.raises(MessageTooLarge):
        writer.open(blob(a=bytes(PIECE_BYTES + 1001)))


def test_a_full_disk_is_said_so(writer, monkeypatch):
    monkeypatch.setattr(bundle_writer.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(LimitReached, match="no room for 1 B"):
        writer.open(blob(a=b"x"))


def test_what_was_kept_is_hashed_before_it_is_believed(writer, tmp_path):
    content = blob(a=b"a" * PIECE_BYTES + b"bb", sub__c=b"cc", d=b"d")
    writer.open(content)
    for number, piece in ((0, b"a" * PIECE_BYTES), (1, b"bb"), (2, b"cc")):
        writer.write(number, piece)
    writer.leave(tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    (tmp_path / "kept" / "sub" / "c").write_bytes(b"cx")

    again = BundleWriter(tmp_path / "again", wheels=no_wheels(tmp_path), limit_bytes=PIECE_BYTES + 1000)
    again.make()
    assert again.open(content, tmp_path / "kept") == {0, 1}
    assert [path.name for path in tmp_path.iterdir()] == ["again"]
    assert again.read(1) == b"bb"


def test_nothing_is_left_and_nothing_is_written_any_more(writer, tmp_path):
    writer.open(blob(a=b"0123456789"))
    writer.remove()
    writer.write(0, memoryview(b"0123456789"))
    assert writer.read(0) == b""
    assert list(tmp_path.iterdir()) == []


def test_no_link_is_followed_where_a_bundles_files_are_written_and_read(writer, tmp_path):
    (tmp_path / "secret").write_bytes(b"xyz")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "a").symlink_to(tmp_path / "secret")
    with pytest.raises(LimitReached, match="cannot write the bundle"):
        writer.open(blob(a=b"xyz"), kept)
    assert (tmp_path / "secret").read_bytes() == b"xyz"


def test_a_link_that_takes_the_place_of_a_file_meanwhile_is_not_followed_either(writer, tmp_path):
    (tmp_path / "secret").write_bytes(b"mine")
    writer.open(blob(a=b"xyz"))
    (writer.bundle / "a").unlink()
    (writer.bundle / "a").symlink_to(tmp_path / "secret")
    with pytest.raises(LimitReached):
        writer.write(0, b"xyz")
    assert writer.read(0) == b""
    assert (tmp_path / "secret").read_bytes() == b"mine"


def test_a_link_in_the_place_of_a_leases_folder_is_not_written_into(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lease").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        BundleWriter(tmp_path / "lease", wheels=no_wheels(tmp_path), limit_bytes=1000).make()
    assert not list((tmp_path / "elsewhere").iterdir())
