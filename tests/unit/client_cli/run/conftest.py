"""A job that runs copies of a command, as its client tells of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from axonp2p.client.events import events
from axonp2p.client.events.event import Event
from axonp2p.client.storage.job_record import new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.run import events as run_events
from axonp2p.kinds.run.record import RunRecord
from axonp2p.kinds.run.section import RunJob, RunSection

SPEC = RunJob(name="sweep", kind="run", run=RunSection(command="python w.py {index}", copies=3, outputs=["*.txt"]))
JOB = "sweep-7f3a"


def whole_story(folder: Path) -> list[Event]:
    """Three copies: one good, one that is killed after another was sooner, one that fails twice."""
    told: list[Event] = [
        events.JobSubmitted(job=JOB, folder="/s", peers=2, rounds=3, bundle_bytes=300),
        events.RttMeasured(seconds={"otter": 0.001, "wren": 0.002}, too_far=[], unreachable={}),
        events.PeerHired(peer="otter", rank=0, cores=1, memory_mb=512),
        events.PeerHired(peer="wren", rank=1, cores=1, memory_mb=512),
        events.BundleSent(peers=["otter", "wren"], bytes=300, seconds=0.1),
        run_events.CopyBegun(index=0, attempt=0, peer="otter"),
        run_events.CopyBegun(index=1, attempt=0, peer="wren"),
        run_events.CopyEnded(index=0, attempt=0, peer="otter", code=0, seconds=2.0),
        run_events.OutputsKept(index=0, peer="otter", files=2, bytes=1200, done=1, copies=3),
        run_events.CopyBegun(index=2, attempt=0, peer="otter"),
        run_events.CopyEnded(index=2, attempt=0, peer="otter", code=5, seconds=1.0),
        run_events.SpeculativeCopy(index=1, attempt=1, peer="otter", slow_peer="wren"),
        run_events.CopyEnded(index=1, attempt=1, peer="otter", code=0, seconds=1.0),
        run_events.OutputsKept(index=1, peer="otter", files=0, bytes=0, done=2, copies=3),
        run_events.CopyEnded(index=1, attempt=0, peer="wren", code=-9, seconds=6.0, reason="order"),
        run_events.CopyRetried(index=2, attempt=1, peer="wren"),
        run_events.CopyEnded(index=2, attempt=1, peer="wren", code=5, seconds=1.0),
        run_events.IndexFailed(index=2, peer="wren", code=5, reason="exit code 5", done=3, copies=3),
        run_events.JobResults(job=JOB, folder=str(folder), copies=3, failed=[2], seconds=9.0),
        events.JobFinished(
            job=JOB, folder=str(folder), rounds=3, seconds=9.0, wire_bytes=1000, credits={"otter": 0.5, "wren": 0.25},
            receipts=2, peers=["otter", "wren"], lost=[],
        ),
    ]  # fmt: skip
    return [msgspec.structs.replace(event, at=1000.0 + at) for at, event in enumerate(told)]


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    """It has finished."""
    folder = JobStore(tmp_path).create(new_record(JOB, SPEC, "/s", 1000.0))
    record = folder.read()
    assert isinstance(record, RunRecord)
    folder.write(msgspec.structs.replace(record, state=JobState.FINISHED, results=3, failed=1))
    for event in whole_story(folder.path):
        folder.add_event(event)
    return folder
