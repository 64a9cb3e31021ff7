"""A hosted job at its owner's: found, copied while it grows, whole at the end, and nothing that a host invents."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import msgspec
import pytest

from axonp2p.client.events import Event, JobGoesOn
from axonp2p.client.hosted_copy import HostedCopy
from axonp2p.client.hosted_mark import HostedMark, is_at_work, read_mark, write_mark
from axonp2p.client.job_store import JobFolder, JobStore
from axonp2p.client.new_job import new_record
from axonp2p.errors import MalformedMessage, PeerMisbehaved
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.messages import FolderFile, FolderState
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import JobSpec
from tests.fakes import NOW
from tests.unit.hosting.conftest import ADA, JOB, Hosting, Worked

MODEL = b"weights" * 300_000


@pytest.fixture
async def process(hosting: Hosting, bundle: Bundle) -> Worked:
    await hosting.give(bundle)
    return await hosting.process()


@pytest.fixture
def here(tmp_path: Path) -> JobFolder:
    """Where it is copied to."""
    folder = JobStore(tmp_path / "laptop").place_of(JOB)
    folder.path.mkdir(parents=True)
    return folder


async def look(hosting: Hosting, here: JobFolder, *, result: bool = False) -> HostedMark:
    async with await hosting.line(ADA) as line:
        return await HostedCopy(here, line, hosting.clock, result=result).look()


async def test_what_grows_is_followed(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    there = process.folder
    there.add_event(JobGoesOn())
    mark = await look(hosting, here)
    assert mark.at_work
    assert mark.asked == NOW
    assert is_at_work(here)
    assert here.read_events() == [JobGoesOn()]
    assert here.read().state is JobState.TRAINING
    there.add_event(JobGoesOn(at=1.0))
    there.metrics_file.add({"round": 1, "loss": 0.5})
    there.add_log("otter", b"hello\n")
    process.become(JobState.TRAINING, round=1)
    await look(hosting, here)
    assert here.events.read_bytes() == there.events.read_bytes()
    assert here.metrics.read_bytes() == there.metrics.read_bytes()
    assert (here.logs / "otter.log").read_text() == "hello\n"
    assert here.read().round == 1
    assert not here.bundle.exists()


async def test_what_was_written_anew_is_copied_anew(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    there = process.folder
    there.metrics_file.add({"round": 1, "loss": 0.5})
    await look(hosting, here)
    there.metrics_file.add({"round": 2, "loss": 0.5, "held_out_error": 0.1})
    await look(hosting, here)
    assert here.metrics.read_bytes() == there.metrics.read_bytes()


async def test_the_end_is_told_when_all_is_there(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    there = process.folder
    there.model.write_bytes(MODEL)
    process.become(JobState.FINISHED, model_sha256=hashlib.sha256(MODEL).hexdigest())
    assert (await look(hosting, here, result=True)).at_work
    assert not (here.path / "job.json").exists()  # its process may still write
    process.over.set()
    await hosting.nobody_works()
    assert not (await look(hosting, here)).at_work
    assert here.read().state is JobState.FINISHED
    assert not here.model.exists()
    assert not is_at_work(here)
    await look(hosting, here, result=True)
    assert here.model.read_bytes() == MODEL


async def test_weights_go_on_where_they_were_cut(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    process.folder.model.write_bytes(MODEL)
    process.become(JobState.FINISHED, model_sha256=hashlib.sha256(MODEL).hexdigest())
    process.over.set()
    await hosting.nobody_works()
    (here.path / ".model.safetensors.part").write_bytes(MODEL[:1_500_000])
    await look(hosting, here, result=True)
    assert here.model.read_bytes() == MODEL
    here.model.unlink()
    (here.path / ".model.safetensors.part").write_bytes(b"x" * 1_500_000)  # a disk that forgot
    with pytest.raises(PeerMisbehaved, match="does not have its hash"):
        await look(hosting, here, result=True)
    await look(hosting, here, result=True)
    assert here.model.read_bytes() == MODEL


async def test_where_it_was_submitted_from_is_not_forgotten(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    here.write(new_record(JOB, JobSpec(name="line"), "/home/ada/line", NOW))
    await look(hosting, here)
    assert here.read().folder == "/home/ada/line"
    assert here.read().state is JobState.TRAINING


async def test_a_host_that_invents_files_or_records_is_not_believed(
    hosting: Hosting, process: Worked, here: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.folder.write(msgspec.structs.replace(process.folder.read(), id="line-ffff"))
    with pytest.raises(MalformedMessage, match="another job"):
        await look(hosting, here)

    async def listing(self: HostLine, job: str, record: bytes) -> tuple[FolderState, bytes]:
        files = [FolderFile(name="model.safetensors", size=10)]
        return FolderState(job=job, at_work=False, trouble="", files=files), b""

    async def part(self: HostLine, job: str, name: str, offset: int, before: bytes = b"") -> tuple[int, bytes]:
        return offset, b"more than was named"

    monkeypatch.setattr(HostLine, "folder", listing)
    monkeypatch.setattr(HostLine, "part", part)
    with pytest.raises(MalformedMessage, match="other bytes"):
        await look(hosting, here, result=True)
    assert not here.model.exists()


async def test_two_programs_copy_in_turn(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    for number in range(50):
        process.folder.add_event(JobGoesOn(at=float(number)))
    await asyncio.gather(*(look(hosting, here) for _ in range(5)))
    events: list[Event] = here.read_events()
    assert [event.at for event in events] == [float(number) for number in range(50)]


def test_a_mark_outlives_the_program(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    assert read_mark(folder) is None
    mark = HostedMark(tracker="https://127.0.0.1:7070#" + "a" * 52, host=ADA.peer_id, trouble="it died")
    write_mark(folder, mark)
    assert read_mark(folder) == mark
    assert mark.place.called == "host 127.0.0.1:7070"
