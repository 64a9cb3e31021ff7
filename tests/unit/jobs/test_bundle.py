"""Bundles: what is collected from a folder, and what a peer lets in."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import JobFileWrong, MalformedMessage, MessageTooLarge, PeerMisbehaved
from axonp2p.jobs.bundle import Bundle, BundleReceiver, SourceFile, collect
from axonp2p.jobs.messages import PART_BYTES, BundleFile, BundleManifest, BundlePart
from axonp2p.jobs.spec import JobSpec


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    job = tmp_path / "my-job"
    (job / "data").mkdir(parents=True)
    (job / "job.toml").write_text('name = "my-job"\n')
    (job / "task.py").write_text("class Task: ...\n")
    (job / "data" / "b.csv").write_text("2")
    (job / "data" / "a.csv").write_text("1")
    (job / "data" / ".secret").write_text("key")
    return job


def spec(*data: str, task: str = "task.py") -> JobSpec:
    return JobSpec(name="my-job", task=task, data=list(data))


# --- collecting ---


def test_job_file_task_and_data_are_collected_with_their_hashes(folder: Path) -> None:
    bundle = collect(folder, spec("data/a.csv"))
    assert [file.path for file in bundle.files] == ["job.toml", "task.py", "data/a.csv"]
    assert bundle.files[2].sha256 == hashlib.sha256(b"1").digest()
    assert bundle.size == 16 + 16 + 1
    assert bundle.manifest().files[2] == BundleFile(path="data/a.csv", size=1, sha256=bundle.files[2].sha256)


def test_a_pattern_takes_what_fits_in_order_without_hidden_files_and_twins(folder: Path) -> None:
    bundle = collect(folder, spec("data/b.csv", "data/*", "task.py"))
    assert [file.path for file in bundle.files] == ["job.toml", "task.py", "data/b.csv", "data/a.csv"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("data/c.csv", "no such file"),
        ("data", 'write "data/*"'),
        ("*.parquet", "no file of"),
        ("../my-job/task.py", ".."),
        ("/etc/passwd", "relative"),
    ],
)
def test_data_that_cannot_be_sent_is_named(folder: Path, entry: str, reason: str) -> None:
    with pytest.raises(JobFileWrong) as caught:
        collect(folder, spec(entry))
    assert str(folder / "job.toml") in caught.value.message
    assert reason in caught.value.message


def test_a_task_that_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(JobFileWrong, match=r"'model\.py'"):
        collect(folder, spec(task="model.py"))


def test_a_link_may_stay_inside_and_must_not_lead_out(folder: Path, tmp_path: Path) -> None:
    (folder / "inner.csv").symlink_to("data/a.csv")
    assert collect(folder, spec("inner.csv")).files[2].size == 1
    (tmp_path / "private.txt").write_text("mine")
    (folder / "outer.csv").symlink_to(tmp_path / "private.txt")
    with pytest.raises(JobFileWrong, match="leads out of the job's folder"):
        collect(folder, spec("outer.csv"))
    (folder / "round.csv").symlink_to("round.csv")
    with pytest.raises(JobFileWrong, match=r"round\.csv"):
        collect(folder, spec("round.csv"))


def test_a_job_folder_may_itself_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(folder)
    assert len(collect(tmp_path / "alias", spec()).files) == 2


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(JobFileWrong, match="not a plain file"):
        collect(folder, spec("pipe"))


def test_too_much_data_is_refused_with_both_sizes(folder: Path) -> None:
    (folder / "big.bin").write_bytes(bytes(3 * 2**20))
    with pytest.raises(JobFileWrong, match=r"3\.0 MiB together; a job may have at most 2\.0 MiB"):
        collect(folder, spec("big.bin"), limit=2 * 2**20)


def test_too_many_files_are_refused(folder: Path) -> None:
    for number in range(255):
        (folder / "data" / f"{number}.bin").write_bytes(b"")
    with pytest.raises(JobFileWrong, match="259 files; a job may have at most 256"):
        collect(folder, spec("data/*"))


# --- sending and receiving ---


def bundle_of(**contents: bytes) -> tuple[Bundle, dict[str, bytes]]:
    files = [
        SourceFile(path=path, source=Path(path), size=len(content), sha256=hashlib.sha256(content).digest())
        for path, content in contents.items()
    ]
    return Bundle(files), contents


@given(st.lists(st.sampled_from([0, 1, 5, PART_BYTES, PART_BYTES + 1]), min_size=1, max_size=5))
def test_what_is_sent_is_received(sizes: list[int]) -> None:
    bundle, contents = bundle_of(**{f"f{number}": bytes([number]) * size for number, size in enumerate(sizes)})
    receiver = BundleReceiver()
    disk = {path: bytearray() for path in receiver.heard_manifest(bundle.manifest())}
    for part, file, length in bundle.parts():
        assert not receiver.complete
        payload = contents[file.path][part.offset : part.offset + length]
        write = receiver.heard_part(part, payload)
        assert write.offset == len(disk[write.path])
        disk[write.path] += payload
    assert receiver.complete
    assert disk == contents


def manifest(*files: tuple[str, bytes]) -> BundleManifest:
    return BundleManifest(
        files=[BundleFile(path=path, size=len(data), sha256=hashlib.sha256(data).digest()) for path, data in files]
    )


@pytest.mark.parametrize("path", ["../x", "/x", "a\\b", "a/../b", "a\0", "a//b", "fu\u0308r"])
def test_a_manifest_with_a_bad_name_is_refused(path: str) -> None:
    with pytest.raises(MalformedMessage):
        BundleReceiver().heard_manifest(manifest(("ok", b""), (path, b"")))


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "a/b"), ("a/b", "a")])
def test_a_manifest_with_names_that_collide_is_refused(paths: tuple[str, str]) -> None:
    with pytest.raises(MalformedMessage):
        BundleReceiver().heard_manifest(manifest(*((path, b"") for path in paths)))


def test_a_manifest_above_the_limit_is_refused() -> None:
    with pytest.raises(MessageTooLarge):
        BundleReceiver(limit=3).heard_manifest(manifest(("a", b"12"), ("b", b"34")))


def test_an_empty_file_needs_no_part_and_still_its_hash() -> None:
    receiver = BundleReceiver()
    assert receiver.heard_manifest(manifest(("a", b""), ("b", b""))) == ["a", "b"]
    assert receiver.complete
    with pytest.raises(MalformedMessage, match="hash"):
        BundleReceiver().heard_manifest(BundleManifest(files=[BundleFile(path="a", size=0, sha256=bytes(32))]))


@pytest.mark.parametrize(
    ("file", "offset", "payload"),
    [(1, 0, b"xy"), (0, 1, b"bc"), (0, 0, b""), (0, 0, b"abcd"), (0, 0, b"xyz"), (5, 0, b"a"), (0, 2**40, b"a")],
)
def test_parts_in_any_other_order_or_size_are_refused(file: int, offset: int, payload: bytes) -> None:
    receiver = BundleReceiver()
    receiver.heard_manifest(manifest(("a", b"abc"), ("b", b"xy")))
    with pytest.raises(MalformedMessage):
        receiver.heard_part(BundlePart(file=file, offset=offset), payload)


def test_parts_before_the_manifest_after_the_end_and_a_second_manifest_are_refused() -> None:
    receiver = BundleReceiver()
    with pytest.raises(MalformedMessage):
        receiver.heard_part(BundlePart(file=0, offset=0), b"a")
    receiver.heard_manifest(manifest(("a", b"a")))
    with pytest.raises(MalformedMessage):
        receiver.heard_manifest(manifest(("a", b"a")))
    receiver.heard_part(BundlePart(file=0, offset=0), b"a")
    with pytest.raises(MalformedMessage):
        receiver.heard_part(BundlePart(file=0, offset=0), b"a")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.binary(max_size=6)), max_size=12),
)
def test_whatever_comes_nothing_is_complete_without_its_bytes(parts: list[tuple[int, int, bytes]]) -> None:
    wanted = {"a": b"abc", "b": b"", "c": b"xy"}
    receiver = BundleReceiver()
    disk = {path: bytearray() for path in receiver.heard_manifest(manifest(*wanted.items()))}
    for file, offset, payload in [*parts, (0, 0, b"ab"), (0, 2, b"c"), (2, 0, b"xy")]:
        try:
            write = receiver.heard_part(BundlePart(file=file, offset=offset), payload)
        except PeerMisbehaved:
            if receiver.complete:
                break
            continue
        disk[write.path][write.offset :] = payload
    if receiver.complete:
        assert disk == wanted
