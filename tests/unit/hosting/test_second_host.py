"""A second host keeps a copy of what the first has, and goes on with it on the owner's word alone: two real hosts."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from axonp2p.client.hosted.hosted_jobs import ClientHostedJobs
from axonp2p.client.hosted.hosted_mark import HostedMark, OtherHost, read_mark, write_mark
from axonp2p.client.hosted.hosts import FoundJob, FoundJobs, carried
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import LimitReached, Refused, Unreachable
from axonp2p.hosting.copying import Copying
from axonp2p.hosting.folder_files import EVENTS
from axonp2p.hosting.host import Host, job_key
from axonp2p.hosting.messages import HostedJob, HostRole
from axonp2p.hosting.tending import Tending
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.lifecycle import JobState
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.transport.address import PinnedAddress
from tests.fakes import key_of
from tests.unit.hosting.conftest import ADA, HOST, JOB, Hosting, Worked
from tests.unit.kinds.train.test_round_commits import bytes_after, state_after

SECOND = key_of("second host")


@pytest.fixture
async def second(hosting: Hosting, bundle: Bundle, tmp_path: Path) -> AsyncIterator[Hosting]:
    """The job runs at `hosting`, and this one keeps a copy."""
    home = tmp_path / "second"
    home.mkdir()
    running = Hosting(home, own_key=SECOND)
    await running.start()
    running.keeper.copies.find_host = {HOST.peer_id: hosting.place}.get
    await hosting.give(bundle)
    await running.give(bundle, copies=HOST.peer_id)
    yield running
    await running.stop()


@pytest.fixture
async def process(hosting: Hosting, second: Hosting) -> Worked:
    return await hosting.process()


@pytest.fixture
def here(tmp_path: Path, hosting: Hosting, second: Hosting) -> JobFolder:
    """At the owner's."""
    folder = JobStore(tmp_path / "laptop").place_of(JOB)
    folder.path.mkdir(parents=True)
    standby = OtherHost(tracker=str(second.place.address), host=SECOND.peer_id)
    write_mark(folder, HostedMark(tracker=str(hosting.place.address), host=HOST.peer_id, standby=standby))
    return folder


@pytest.fixture
def jobs(here: JobFolder, hosting: Hosting) -> ClientHostedJobs:
    means: Any = SimpleNamespace(key=ADA, clock=hosting.clock)
    return ClientHostedJobs(means, JobStore(here.path.parent.parent))


def keep(process: Worked, rounds: int) -> None:
    """A round is accepted."""
    room = process.folder.checkpoints(2).room(rounds, state_after(rounds), Model(10, 10))
    room.data[:] = bytes_after(rounds)
    room.put()
    process.become(JobState.RUNNING, round=rounds, kept_round=rounds, kept_state=state_after(rounds).hex())


def kept_at(second: Hosting) -> Tending:
    (tending,) = second.keeper.of(ADA.peer_id)
    return tending


async def copy(second: Hosting) -> bool:
    """As its task does after a pause."""
    tending = kept_at(second)
    copying: Copying = tending._new_copying()
    return await copying.copy()


def copied(second: Hosting) -> JobFolder:
    return JobFolder(kept_at(second).folder.job)


async def test_a_copy_is_kept_and_does_not_begin(second: Hosting, process: Worked) -> None:
    keep(process, 7)
    assert await copy(second)
    for rounds in (9, 10, 12):
        keep(process, rounds)
        assert await copy(second)
    assert [one.rounds for one in copied(second).checkpoints(2).all()] == [12, 10]
    assert copied(second).read().kept_round == 12
    assert not second.stage.processes
    async with await second.line() as line:
        assert await line.jobs() == [HostedJob(job=JOB, at_work=False, role="copy")]
    assert await second.keeper.free() == 3  # no job's place is taken


async def test_the_jobs_key_reads_and_does_nothing_else(hosting: Hosting, process: Worked) -> None:
    process.folder.events.write_bytes(b"one\n")
    key = job_key(ADA, JOB)
    async with await hosting.line(key) as line:
        assert await line.jobs() == []
        assert (await line.folder(JOB, b""))[0].at_work
        assert (await line.part(JOB, EVENTS, 0)) == (0, b"one\n")
        with pytest.raises(Refused, match="holds no job"):
            await line.tell(JOB, "cancel")
    for other in (job_key(ADA, "line-0000"), job_key(key_of("bob"), JOB)):
        async with await hosting.line(other) as line:
            with pytest.raises(Refused, match="holds no job"):
                await line.folder(JOB, b"")


async def test_nobody_is_dialled_whom_the_operator_does_not_trust(second: Hosting, bundle: Bundle) -> None:
    with pytest.raises(Refused, match="its operator trusts"):
        await second.give(bundle, job="line-0001", copies=key_of("a stranger").peer_id)
    second.keeper.copies.find_host = lambda peer: None  # not any more
    assert not await copy(second)
    assert not second.stage.copied_from


async def test_what_takes_more_than_a_job_may_is_not_copied(second: Hosting, process: Worked) -> None:
    keep(process, 1)
    process.folder.events.write_bytes(b"x" * 2**20)
    assert not await copy(second)
    (error,) = second.stage.not_copied
    assert isinstance(error, LimitReached)
    assert not copied(second).events.exists()


async def test_the_owner_has_it_go_on_at_the_second_when_the_first_is_gone(
    hosting: Hosting, second: Hosting, process: Worked, here: JobFolder, jobs: ClientHostedJobs
) -> None:
    keep(process, 9)
    assert await copy(second)
    await hosting.listener.stop()
    with pytest.raises(Unreachable) as caught:
        await jobs.look(here)
    assert caught.value.fix.startswith(f"axon resume {JOB}  ")
    assert f"continues at {second.place.called}, which keeps a copy, after 9 rounds" in caught.value.fix
    assert [one.rounds for one in here.checkpoints(1).all()] == [9]  # taken from there, for `--here`
    assert hosting.place.called in await jobs.resume(here)
    again = await second.process()
    assert [one.rounds for one in again.folder.checkpoints(1).all()] == [9]
    mark = read_mark(here)
    assert mark is not None
    assert (mark.host, mark.at_work, mark.role) == (SECOND.peer_id, True, "took over")
    assert mark.former is not None
    await jobs.look(here)  # the first is silent still
    assert not process.said


async def test_the_first_is_told_to_leave_the_job_when_it_comes_back(
    hosting: Hosting, second: Hosting, process: Worked, here: JobFolder, jobs: ClientHostedJobs
) -> None:
    keep(process, 9)
    assert await copy(second)
    second.keeper.copies.find_host = lambda peer: None  # it does not reach the first, nor does the owner
    former = OtherHost(tracker=str(hosting.place.address), host=HOST.peer_id)
    async with await second.line() as line:
        await line.tell(JOB, "resume")
    write_mark(here, HostedMark(tracker=str(second.place.address), host=SECOND.peer_id, former=former))
    mark = await jobs.look(here)
    assert process.said == ["leave"]
    assert mark.former is None
    assert mark.at_work


async def test_two_hosts_do_not_work_while_the_second_hears_the_first(
    hosting: Hosting, second: Hosting, process: Worked
) -> None:
    keep(process, 9)
    assert await copy(second)
    async with await second.line() as line:
        with pytest.raises(Refused, match="there must not be two"):
            await line.tell(JOB, "resume")
    assert not second.stage.processes
    process.become(JobState.PAUSED)
    process.over.set()
    await hosting.nobody_works()
    async with await second.line() as line:
        await line.tell(JOB, "resume")
    assert await second.process()


async def test_weights_are_taken_from_the_copy_when_the_host_is_gone(
    hosting: Hosting, second: Hosting, process: Worked, here: JobFolder, jobs: ClientHostedJobs
) -> None:
    keep(process, 9)
    assert await copy(second)
    process.folder.model.write_bytes(b"weights")
    process.become(JobState.FINISHED, model_sha256=hashlib.sha256(b"weights").hexdigest())
    process.over.set()
    await hosting.nobody_works()
    assert await copy(second)
    assert not copied(second).checkpoints(1).all()
    await hosting.listener.stop()
    with pytest.raises(Unreachable):
        await jobs.look(here, result=True)
    assert here.model.read_bytes() == b"weights"
    with pytest.raises(Refused, match="the job is over"):
        await jobs.resume(here)


async def test_another_computer_finds_the_copy_while_the_host_is_silent_and_then_the_host(
    hosting: Hosting, second: Hosting, process: Worked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(process, 9)
    assert await copy(second)
    kept = FoundJob(second.place, HostedJob(job=JOB, at_work=False, role="copy"))
    runs = FoundJob(hosting.place, HostedJob(job=JOB, at_work=True))
    means: Any = SimpleNamespace(key=ADA, clock=hosting.clock)
    jobs, store = ClientHostedJobs(means, JobStore(tmp_path / "other")), JobStore(tmp_path / "other")

    async def settled(*found: FoundJob) -> HostedMark:
        monkeypatch.setattr(
            "axonp2p.client.hosted.hosted_jobs.find_jobs", AsyncMock(return_value=FoundJobs(carried(found), []))
        )
        assert await jobs.find_all() == []
        mark = read_mark(store.find(JOB))
        assert mark is not None
        return mark

    mark = await settled(kept)
    assert (mark.host, mark.role, mark.kept, mark.at_work) == (SECOND.peer_id, "copy", 9, False)
    mark = await settled(kept, runs)
    assert mark.standby is not None
    assert (mark.host, mark.standby.host, mark.standby.kept, mark.at_work) == (HOST.peer_id, SECOND.peer_id, 9, True)
    mark = await settled(kept)  # the host is silent again: it is still the one that is asked
    assert mark.host == HOST.peer_id
    over = FoundJob(second.place, HostedJob(job=JOB, at_work=True, role="took over"))
    shutil.rmtree(store.find(JOB).path)
    mark = await settled(over, runs)
    assert (mark.host, mark.former) == (SECOND.peer_id, None)
    assert process.said == ["leave"]  # two worked, and the owner's command has ended that


async def test_a_copy_that_is_kept_outlives_the_second_hosts_restart(second: Hosting, process: Worked) -> None:
    await second.stop()
    await second.start()
    assert kept_at(second).record.copies == HOST.peer_id
    assert not second.stage.processes


async def test_the_copy_is_let_go_with_the_job(
    hosting: Hosting, second: Hosting, process: Worked, here: JobFolder, jobs: ClientHostedJobs
) -> None:
    keep(process, 9)
    process.become(JobState.CANCELLED)
    process.over.set()
    await hosting.nobody_works()
    assert await copy(second)
    assert kept_at(second).held().state is JobState.CANCELLED
    here.bundle.mkdir()
    await jobs.take_back(here)
    assert kept_at(second).record.fetched


def found(host: str, role: HostRole) -> FoundJob:
    place = Host(PinnedAddress("127.0.0.1", 1, None), key_of(host).peer_id)
    return FoundJob(place, HostedJob(job=JOB, at_work=False, role=role))


def test_one_of_several_hosts_carries_the_job_on() -> None:
    first, kept, over = found("a", "host"), found("b", "copy"), found("b", "took over")
    (one,) = carried([kept, first])
    assert (one.host, one.copy_at) == (first.host, kept.host)
    assert carried([kept]) == [kept]
    (one,) = carried([first, over])
    assert (one.host, one.former) == (over.host, first.host)
    assert len(carried([first, found("c", "host")])) == 2  # which one lies is for people to find
