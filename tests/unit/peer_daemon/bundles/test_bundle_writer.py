from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import LimitReached, MalformedMessage, MessageTooLarge, Refused
from peer_daemon.bundles import bundle_writer
from peer_daemon.bundles.bundle_writer import BundleWriter
from peer_daemon.wheels.unpacking import UnpackingFor
from peer_daemon.wheels.wheel_cache import WheelCache
from peer_daemon.wheels.wheel_policy import WheelPolicy


def no_wheels(folder):
    return WheelCache(folder / "wheels", WheelPolicy("none"), 0)


def blob(**files: bytes) -> Blob:
    return Blob(
        Manifest(
            files=[
                BlobFile(path=path.replace("__", "/"), size=len(content), blake3=book_of(content).hashes)
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


# Packages that earlier jobs brought are lent to the folder of a lease, and never written into.

WHEEL = b"not unpacked here" * 20_000
NAME = "gull-1.0-py3-none-any.whl"


def wheel_path(content: bytes = WHEEL) -> str:
    return f".wheels/{hashlib.sha256(content).hexdigest()}/{NAME}"


async def kept_wheel(tmp_path, policy: str = "any") -> WheelCache:
    """A cache that has it, from a job before."""

    async def unpack(folder, title, into, most_bytes, lease) -> int:
        (into / "gull.py").write_text("")
        return 0

    cache = WheelCache(tmp_path / "wheels", WheelPolicy(policy), 2**30, unpack)
    first = BundleWriter(tmp_path / "first", 2**30, cache)
    first.make()
    first.open(Blob(Manifest(files=[BlobFile(path=wheel_path(), size=len(WHEEL), blake3=book_of(WHEEL).hashes)])))
    for number, start in enumerate(range(0, len(WHEEL), PIECE_BYTES)):
        first.write(number, WHEEL[start : start + PIECE_BYTES])
    await cache.place(first.wheels, first.bundle, UnpackingFor())
    return cache


async def test_a_wheel_of_an_earlier_job_need_not_come_again(tmp_path):
    cache = await kept_wheel(tmp_path)
    later = BundleWriter(tmp_path / "later", 2**30, cache)
    later.make()
    blob = Blob(Manifest(files=[BlobFile(path=wheel_path(), size=len(WHEEL), blake3=book_of(WHEEL).hashes)]))
    assert later.open(blob) == set(range(blob.count))
    await cache.place(later.wheels, later.bundle, UnpackingFor())
    assert (later.bundle / later.wheels[0].unpacked / "gull.py").exists()
    later.remove()
    assert cache.lend_packed(later.wheels[0], tmp_path / "first" / "bundle") is False  # it lies there already
    assert (tmp_path / "first" / "bundle" / wheel_path()).read_bytes() == WHEEL


async def test_a_job_leaves_its_links_to_an_unpacked_package_to_the_next_one(tmp_path):
    cache = await kept_wheel(tmp_path)
    blob = Blob(Manifest(files=[BlobFile(path=wheel_path(), size=len(WHEEL), blake3=book_of(WHEEL).hashes)]))

    async def unpacked(folder: str) -> BundleWriter:
        writer = BundleWriter(tmp_path / folder, 2**30, cache)
        writer.make()
        writer.open(blob)
        await writer.unpack(UnpackingFor())
        return writer

    def links(writer: BundleWriter) -> Path:
        return writer.bundle / writer.wheels[0].unpacked

    first, beside = await unpacked("first-lease"), await unpacked("beside")
    number = links(first).stat().st_ino
    first.remove()
    beside.remove()  # one spare is enough
    assert not (tmp_path / "beside").exists()
    second = await unpacked("second")
    assert links(second).stat().st_ino == number
    assert [file.name for file in links(second).iterdir()] == ["gull.py"]


async def test_a_manifest_that_lies_about_a_kept_wheel_changes_no_kept_wheel(tmp_path):
    cache = await kept_wheel(tmp_path)
    liar = BundleWriter(tmp_path / "liar", 2**30, cache)
    liar.make()
    false = WHEEL[:-1] + b"!"
    blob = Blob(Manifest(files=[BlobFile(path=wheel_path(), size=len(false), blake3=book_of(false).hashes)]))
    assert liar.open(blob) == set()
    for number, start in enumerate(range(0, len(false), PIECE_BYTES)):
        liar.write(number, false[start : start + PIECE_BYTES])
    assert (liar.bundle / wheel_path()).read_bytes() == false
    kept = tmp_path / "wheels" / hashlib.sha256(WHEEL).hexdigest() / "packed" / NAME
    assert kept.read_bytes() == WHEEL


def test_what_the_owner_does_not_take_is_refused_before_a_byte_comes(tmp_path):
    writer = BundleWriter(tmp_path / "lease", 2**30, no_wheels(tmp_path))
    writer.make()
    with pytest.raises(Refused, match="this peer takes no packages"):
        writer.open(Blob(Manifest(files=[BlobFile(path=wheel_path(), size=1, blake3=book_of(b"x").hashes)])))
