"""Jobs on the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.client.events.events import JobPaused, PeerLost, as_line, from_line
from axonp2p.client.storage import job_store
from axonp2p.client.storage.job_record import JobRecord, PeerRecord
from axonp2p.client.storage.job_store import JobStore
from axonp2p.errors import AlreadyRunning, NotFound, SettingsError
from axonp2p.files import put_in_place, replacing
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import RoundProgress
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.kinds.train.record import TrainRecord


def record(job: str = "digits-11c0", **changes: Any) -> JobRecord:
    usual: dict[str, Any] = {
        "id": job, "name": "digits", "folder": "/tmp/digits", "spec": {"name": "digits"}, "state": JobState.SUBMITTED,
        "created": 1000.0, "updated": 1000.0, "peers_wanted": 4, "rounds": 20,
    }  # fmt: skip
    return TrainRecord(**(usual | changes))


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    folder = JobStore(tmp_path).create(record(metrics={"accuracy": 0.5}, credits={"otter": 1.5}))
    assert folder.read() == record(metrics={"accuracy": 0.5}, credits={"otter": 1.5})
    folder.write(record(state=JobState.FINDING))
    assert folder.read().state is JobState.FINDING
    assert sorted(path.name for path in folder.path.iterdir()) == ["job.json", "job.json.bak"]


def test_names_in_a_hosts_record_that_are_no_file_names_are_given_to_nobody() -> None:
    names = ["heron", "heron-6jfcin2p", "../heron", "/etc/heron", ".heron", "her on", "", "h" * 200]
    peers = [PeerRecord(name=name, peer=str(n), rank=n, reservation="r", rtt_s=0.0) for n, name in enumerate(names)]
    assert record(peers=peers).peer_names == {"0": "heron", "1": "heron-6jfcin2p"}


def test_jobs_are_found_by_a_clear_beginning(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    for job, created in (("digits-11c0", 3.0), ("digits-2222", 1.0), ("text-aaaa", 2.0)):
        store.create(record(job, created=created))
    assert store.find("digits-11c0").path.name == "digits-11c0"
    assert store.find("text").path.name == "text-aaaa"
    with pytest.raises(NotFound, match="digits matches"):
        store.find("digits")
    for job in ("", "nothing", "../digits-11c0"):
        with pytest.raises(NotFound):
            store.find(job)
    assert [found.id for found in store.records()] == ["digits-2222", "text-aaaa", "digits-11c0"]
    assert store.has("text-aaaa")
    assert not store.has("text")


def test_jobs_whose_programs_were_killed_at_the_very_end(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    for job, state, left in (
        ("done-1111", JobState.FINISHED, "states"),
        ("held-2222", JobState.FINISHED, "states"),
        ("left-3333", JobState.PAUSED, "leases.json"),
        ("runs-4444", JobState.RUNNING, "leases.json"),
        ("clean-5555", JobState.FINISHED, "logs"),
    ):
        (store.create(record(job, state=state)).path / left).mkdir()
    broken = store.create(record("broken-6666")).path
    for name in ("states/job.json", "job.json", "job.json.bak"):
        (broken / name).parent.mkdir(exist_ok=True)
        (broken / name).write_text("{")
    with store.find("held-2222").held():
        found = [(folder.path.name, record.id) for folder, record in store.killed_at_the_end()]
    assert sorted(found) == [("done-1111", "done-1111"), ("left-3333", "left-3333")]


def test_a_broken_record_is_named_and_hides_no_other(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    store.create(record("good-1111"))
    broken = store.create(record("broken-2222"))
    for name in ("job.json", "job.json.bak"):
        (broken.path / name).write_text("{")
    assert [found.id for found in store.records()] == ["good-1111"]
    (why,) = store.all()[1].values()
    assert list(store.all()[1]) == ["broken-2222"]
    assert why.fix
    with pytest.raises(SettingsError, match=r"job\.json cannot be read"):
        broken.read()


def test_events_are_kept_in_order_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    folder = JobStore(tmp_path).create(record())
    assert folder.read_events() == []
    events = [PeerLost(peer="otter", round=3, reason="gone", left=2), JobPaused(job="a", folder="b", round=4)]
    for event in events:
        folder.add_event(event)
    with folder.events.open("ab") as file:
        file.write(b'{"event":"peer_lo')
    assert folder.read_events() == events


def test_an_event_names_its_kind_in_json() -> None:
    event = RoundProgress(round=1, rounds=2, fraction=0.5, loss=1.0, samples_per_second={"otter": 2.0}, eta_s=None)
    assert msgspec.json.decode(as_line(event))["event"] == "round_progress"
    assert from_line(as_line(event)) == event


def test_metrics_have_a_column_for_each_name_that_ever_came(tmp_path: Path) -> None:
    folder = JobStore(tmp_path).create(record())
    cost = {"samples": 10, "seconds": 0.5, "bytes": 100}
    MetricsFile(folder.metrics).add({"round": 1, "loss": 2.0, **cost})
    MetricsFile(folder.metrics).add({"round": 2, "loss": 1.0, "accuracy": 0.5, **cost})
    MetricsFile(folder.metrics).add({"round": 3, "loss": 0.5, **cost})
    lines = folder.metrics.read_text().splitlines()
    assert lines[0] == "round,loss,accuracy,samples,seconds,bytes"
    assert lines[1:] == ["1,2.0,,10,0.5,100", "2,1.0,0.5,10,0.5,100", "3,0.5,,10,0.5,100"]


def test_rounds_that_were_not_kept_are_forgotten(tmp_path: Path) -> None:
    folder = JobStore(tmp_path).create(record())
    MetricsFile(folder.metrics).keep(0)
    for number in range(1, 6):
        MetricsFile(folder.metrics).add({"round": number, "loss": 1.0})
    MetricsFile(folder.metrics).keep(3)
    assert [row["round"] for row in MetricsFile(folder.metrics).rows()] == ["1", "2", "3"]
    MetricsFile(folder.metrics).keep(0)
    MetricsFile(folder.metrics).add({"round": 1, "loss": 1.0})
    assert [row["round"] for row in MetricsFile(folder.metrics).rows()] == ["1"]


def test_logs_of_a_resumed_job_follow_each_other(tmp_path: Path) -> None:
    folder = JobStore(tmp_path).create(record())
    folder.add_log("otter", b"one\n")
    folder.add_log("otter", b"two\n")
    assert (folder.logs / "otter.log").read_bytes() == b"one\ntwo\n"


def test_a_log_that_never_ends_takes_no_more_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_store, "MOST_LOG_BYTES", 10)
    folder = JobStore(tmp_path).create(record())
    for _ in range(4):
        folder.add_log("otter", b"123456")
    assert (folder.logs / "otter.log").read_bytes() == b"1234561234" + job_store.LOG_IS_FULL
    folder.add_log("heron", b"1234567890")
    folder.add_log("heron", b"x")
    assert (folder.logs / "heron.log").read_bytes() == b"1234567890" + job_store.LOG_IS_FULL


def test_the_bundle_is_copied_with_its_folders(tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(b"data")
    folder = JobStore(tmp_path).create(record())
    folder.keep_bundle([("task.py", source), ("deep/er/data.bin", source)], b"manifest")
    source.unlink()
    assert (folder.bundle / "deep/er/data.bin").read_bytes() == b"data"
    with pytest.raises(SettingsError, match="cannot write"):
        folder.keep_bundle([("gone", source)], b"")


HELD = """
import pathlib, sys
from axonp2p.client.storage.job_store import JobFolder
print(JobFolder(pathlib.Path(sys.argv[1])).is_held())
"""


def test_one_program_at_a_time_holds_a_job(tmp_path: Path) -> None:
    folder = JobStore(tmp_path).create(record())
    with folder.held():
        with pytest.raises(AlreadyRunning), folder.held():
            raise AssertionError
        other = subprocess.run(
            [sys.executable, "-c", HELD, str(folder.path)], capture_output=True, check=True, text=True
        )
        assert other.stdout.strip() == "True"
    assert not folder.is_held()


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half() -> None:
        with replacing(path) as file:
            file.write(b"half of the ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_file_takes_its_place(tmp_path: Path) -> None:
    fresh, path = tmp_path / ".part", tmp_path / "model"
    fresh.write_bytes(b"new")
    path.write_bytes(b"old")
    put_in_place(fresh, path)
    assert path.read_bytes() == b"new"
    assert not fresh.exists()
