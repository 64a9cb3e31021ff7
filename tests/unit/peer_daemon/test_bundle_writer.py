from __future__ import annotations

import hashlib
import os
import stat
from types import SimpleNamespace

import pytest

from axonp2p.errors import LimitReached, MalformedMessage, MessageTooLarge
from axonp2p.jobs.messages import BundleFile, BundleManifest, BundlePart
from peer_daemon import bundle_writer
from peer_daemon.bundle_writer import BundleWriter


def manifest(**files: bytes) -> BundleManifest:
    return BundleManifest(
        files=[
            BundleFile(path=path.replace("__", "/"), size=len(content), sha256=hashlib.sha256(content).digest())
            for path, content in files.items()
        ]
    )


@pytest.fixture
def writer(tmp_path):
    writer = BundleWriter(tmp_path / "lease", limit_bytes=1000)
    writer.make()
    return writer


def test_files_arrive_in_parts(writer):
    assert writer.manifest(manifest(a=b"0123456789", sub__b=b"", sub__c=b"xyz")) is False
    assert writer.part(BundlePart(file=0, offset=0), memoryview(b"01234")) is False
    assert writer.part(BundlePart(file=0, offset=5), memoryview(b"56789")) is False
    assert writer.part(BundlePart(file=2, offset=0), memoryview(b"xyz")) is True
    found = {name: (writer.bundle / name).read_bytes() for name in ("a", "sub/b", "sub/c")}
    assert found == {"a": b"0123456789", "sub/b": b"", "sub/c": b"xyz"}


def test_only_the_owner_gets_to_a_bundle_which_the_worker_of_another_user_may_read(tmp_path):
    usual = os.umask(0o077)
    try:
        writer = BundleWriter(tmp_path / "lease", limit_bytes=1000)
        writer.make()
        writer.manifest(manifest(a=b"", sub__b=b""))
    finally:
        os.umask(usual)
    modes = {"": 0o700, "bundle": 0o755, "bundle/a": 0o644, "bundle/sub": 0o755, "bundle/sub/b": 0o644}
    assert {path: stat.S_IMODE((tmp_path / "lease" / path).stat().st_mode) for path in modes} == modes


def test_a_bundle_of_empty_files_is_complete_at_once(writer):
    assert writer.manifest(manifest(a=b"")) is True


@pytest.mark.parametrize("name", ["..__a", "__etc__passwd", "a__..__b", "."])
def test_no_file_leaves_the_folder(writer, tmp_path, name):
    with pytest.raises(MalformedMessage):
        writer.manifest(manifest(**{name: b"x"}))
    assert [path.name for path in tmp_path.iterdir()] == ["lease"]


def test_more_than_the_volunteer_lends_is_refused(writer):
    with pytest.raises(MessageTooLarge):
        writer.manifest(manifest(a=b"x" * 1001))


def test_a_full_disk_is_said_so(writer, monkeypatch):
    monkeypatch.setattr(bundle_writer.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(LimitReached, match="no room"):
        writer.manifest(manifest(a=b"x"))


def test_a_wrong_hash_is_found(writer):
    writer.manifest(manifest(a=b"right"))
    with pytest.raises(MalformedMessage):
        writer.part(BundlePart(file=0, offset=0), memoryview(b"wrong"))


def test_nothing_is_left_and_nothing_is_written_any_more(writer, tmp_path):
    writer.manifest(manifest(a=b"0123456789"))
    writer.remove()
    assert writer.part(BundlePart(file=0, offset=0), memoryview(b"0123456789")) is False
    assert list(tmp_path.iterdir()) == []
