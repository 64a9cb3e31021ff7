"""Bundles: what is collected from a folder, and what a peer lets in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from axonp2p.blobs.manifest import Blob, BlobFile, Manifest
from axonp2p.blobs.pieces import book_of
from axonp2p.errors import JobFileWrong, MalformedMessage, MessageTooLarge
from axonp2p.jobs.bundle import admit, collect
from axonp2p.jobs.spec import JobSpec
from axonp2p.kinds.train.section import TrainJob


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
    return TrainJob(name="my-job", task=task, data=list(data))


# --- collecting ---


def test_job_file_task_and_data_are_collected_with_their_hashes(folder: Path) -> None:
    bundle = collect(folder, spec("data/a.csv"))
    assert [file.path for file in bundle.files] == ["job.toml", "task.py", "data/a.csv"]
    assert bundle.files[2].hashes == book_of(b"1").hashes
    assert bundle.size == 16 + 16 + 1
    assert bundle.blob.files[2] == BlobFile(path="data/a.csv", size=1, blake3=bundle.files[2].hashes)


def test_a_pattern_takes_what_fits_in_order_without_hidden_files_and_twins(folder: Path) -> None:
    bundle = collect(folder, spec("data/b.csv", "data/*", "task.py"))
    assert [file.path for file in bundle.files] == ["job.toml", "task.py", "data/b.csv", "data/a.csv"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("data/c.csv", "no such file"),
        ("data", "it is a folder, and data names files"),
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


def test_all_files_that_cannot_be_sent_are_named_at_once(folder: Path) -> None:
    with pytest.raises(JobFileWrong, match="2 files cannot be sent") as caught:
        collect(folder, spec("data/c.csv", "data/a.csv", "more.csv"))
    assert "'data/c.csv': there is no such file" in caught.value.cause
    assert "'more.csv': there is no such file" in caught.value.cause
    with pytest.raises(JobFileWrong, match="9 files cannot be sent") as caught:
        collect(folder, spec(*(f"{number}.csv" for number in range(9))))
    assert "'4.csv'" in caught.value.cause
    assert caught.value.cause.endswith("; and 4 more")


def test_a_folder_leads_to_its_files(folder: Path) -> None:
    with pytest.raises(JobFileWrong) as caught:
        collect(folder, spec("data"))
    assert caught.value.fix == 'data = ["data/*"]'


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
    with pytest.raises(JobFileWrong, match=r"3\.1 MB together; a job may have at most 2\.1 MB"):
        collect(folder, spec("big.bin"), limit=2 * 2**20)


def test_too_many_files_are_refused(folder: Path) -> None:
    for number in range(255):
        (folder / "data" / f"{number}.bin").write_bytes(b"")
    with pytest.raises(JobFileWrong, match="259 files; a job may have at most 256"):
        collect(folder, spec("data/*"))


# --- what a peer lets in ---


def blob(*files: tuple[str, bytes]) -> Blob:
    named = [BlobFile(path=path, size=len(data), blake3=book_of(data).hashes) for path, data in files]
    return Blob(Manifest(files=named))


def test_a_sound_bundle_is_let_in() -> None:
    admit(blob(("task.py", b"x"), ("data/a", b""), ("data/b", b"yz")), limit=3)


@pytest.mark.parametrize("path", ["../x", "/x", "a\\b", "a/../b", "a\0", "a//b", "fu\u0308r"])
def test_a_manifest_with_a_bad_name_is_refused(path: str) -> None:
    with pytest.raises(MalformedMessage):
        admit(blob(("ok", b""), (path, b"")), limit=10)


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "a/b"), ("a/b", "a")])
def test_a_manifest_with_names_that_collide_is_refused(paths: tuple[str, str]) -> None:
    with pytest.raises(MalformedMessage):
        admit(blob(*((path, b"") for path in paths)), limit=10)


def test_a_manifest_above_the_limit_is_refused() -> None:
    with pytest.raises(MessageTooLarge):
        admit(blob(("a", b"12"), ("b", b"34")), limit=3)
