"""A hosted job at its owner's: found, copied while it grows, whole at the end, and nothing that a host invents."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from axonp2p.blobs.pieces import book_of
from axonp2p.client.events.events import Event, JobGoesOn
from axonp2p.client.hosted import hosted_jobs
from axonp2p.client.hosted.hosted_copy import STATE_EVERY_S, HostedCopy
from axonp2p.client.hosted.hosted_jobs import ClientHostedJobs
from axonp2p.client.hosted.hosted_mark import HostedMark, is_at_work, read_mark, write_mark
from axonp2p.client.storage.job_record import new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import MalformedMessage, PeerMisbehaved, Unreachable
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.messages import FolderFile, FolderState
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.kinds.train.section import TrainJob
from axonp2p.tensors.checkpoint_file import Model
from tests.fakes import NOW
from tests.unit.hosting.conftest import ADA, JOB, Hosting, Worked
from tests.unit.kinds.train.test_round_commits import bytes_after, state_after

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
    assert here.read().state is JobState.RUNNING
    there.add_event(JobGoesOn(at=1.0))
    MetricsFile(there.metrics).add({"round": 1, "loss": 0.5})
    there.add_log("otter", b"hello\n")
    process.become(JobState.RUNNING, round=1)
    await look(hosting, here)
    assert here.events.read_bytes() == there.events.read_bytes()
    assert here.metrics.read_bytes() == there.metrics.read_bytes()
    assert (here.logs / "otter.log").read_text() == "hello\n"
    assert here.read().round == 1
    assert not here.bundle.exists()


async def test_what_was_written_anew_is_copied_anew(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    there = process.folder
    MetricsFile(there.metrics).add({"round": 1, "loss": 0.5})
    await look(hosting, here)
    MetricsFile(there.metrics).add({"round": 2, "loss": 0.5, "held_out_error": 0.1})
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
    here.write(new_record(JOB, TrainJob(name="line"), "/home/ada/line", NOW))
    await look(hosting, here)
    assert here.read().folder == "/home/ada/line"
    assert here.read().state is JobState.RUNNING


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


async def test_the_newest_state_comes_before_the_host_may_be_gone(
    hosting: Hosting, process: Worked, here: JobFolder
) -> None:
    def keep(rounds: int) -> None:
        room = process.folder.checkpoints(2).room(rounds, state_after(rounds), Model(10, 10))
        room.data[:] = bytes_after(rounds)
        room.put()
        process.become(JobState.RUNNING, round=rounds, kept_round=rounds, kept_state=state_after(rounds).hex())

    keep(7)
    keep(9)
    frozen = b"frozen" * 99
    room = process.folder.checkpoints(2).frozen_room(book_of(frozen).name, len(frozen))
    assert room
    room.data[:] = frozen
    room.put()
    async with await hosting.line(ADA) as line:
        copy = HostedCopy(here, line, hosting.clock, result=False)
        assert (await copy.look()).at_work
        (one,) = here.checkpoints(2).all()
        assert (one.rounds, one.fits()) == (9, True)
        beside = here.checkpoints(2).frozen(book_of(frozen).name)
        assert beside
        assert bytes(beside.file) == frozen
        keep(10)
        await copy.look()
        assert [one.rounds for one in here.checkpoints(2).all()] == [9]  # not in every look
        for rounds in (11, 12):
            keep(rounds)
            hosting.clock.time += STATE_EVERY_S
            await copy.look()
    assert [one.rounds for one in here.checkpoints(2).all()] == [12, 11]


async def test_a_host_that_is_gone_is_told_after_seconds_with_what_goes_on(
    hosting: Hosting, process: Worked, here: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted_jobs, "CALL_AGAIN_S", 0.0)
    here.write(new_record(JOB, TrainJob(name="line"), "/home/ada/line", NOW))
    here.bundle.mkdir()
    write_mark(here, HostedMark(tracker=str(hosting.place.address), host=hosting.place.peer))
    await hosting.listener.stop()
    told: list[Unreachable] = []

    def silent(error: Unreachable) -> None:
        told.append(error)
        hosting.clock.time += hosted_jobs.SILENT_S + 1

    means: Any = SimpleNamespace(key=ADA, clock=hosting.clock)
    jobs = ClientHostedJobs(means, JobStore(here.path.parent.parent))
    with pytest.raises(Unreachable) as caught:
        await jobs.follow(here, lambda event: None, silent)
    assert len(told) == 1
    for error in (told[0], caught.value):
        assert error.fix.startswith(f"axon resume {JOB} --here ")
    await jobs.take_back(here)  # goes on without it
    assert read_mark(here) is None


def test_a_mark_outlives_the_program(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    assert read_mark(folder) is None
    mark = HostedMark(tracker="https://127.0.0.1:7070#" + "a" * 52, host=ADA.peer_id, trouble="it died")
    write_mark(folder, mark)
    assert read_mark(folder) == mark
    assert mark.place.called == "host 127.0.0.1:7070"


async def test_no_event_comes_that_is_newer_than_the_record_beside_it(
    hosting: Hosting, process: Worked, here: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.folder.add_event(JobGoesOn(at=1.0))
    listing = HostLine.folder

    async def and_goes_on(self: HostLine, job: str, record: bytes) -> tuple[FolderState, bytes]:
        told = await listing(self, job, record)
        process.folder.add_event(JobGoesOn(at=2.0))
        return told

    monkeypatch.setattr(HostLine, "folder", and_goes_on)
    await look(hosting, here)
    assert [event.at for event in here.read_events()] == [1.0]
    await look(hosting, here)
    assert [event.at for event in here.read_events()] == [1.0, 2.0]


async def test_a_record_that_says_what_no_job_is_does_not_come(
    hosting: Hosting, process: Worked, here: JobFolder
) -> None:
    record = process.folder.read()
    process.folder.write(msgspec.structs.replace(record, spec=record.spec | {"train": {"rounds": "many"}}))
    with pytest.raises(MalformedMessage, match="as the record"):
        await look(hosting, here)
    assert not (here.path / "job.json").exists()
