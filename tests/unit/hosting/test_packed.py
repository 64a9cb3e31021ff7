"""Results of calls that a host has: packed when nothing works on the job, and results of the client's own when they
have come."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.client.hosted.hosted_copy import HostedCopy
from axonp2p.client.hosted.hosted_mark import HostedMark, has_all
from axonp2p.client.hosted.how_far import kept_here
from axonp2p.client.hosted_run import end_as
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import MalformedMessage
from axonp2p.hosting.folder_files import packed_name
from axonp2p.hosting.hosted_folder import packed_in
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import read_spec
from axonp2p.kinds.map.results.packed_results import pack
from axonp2p.kinds.map.results.results_store import ItemResult, ResultsStore
from tests.unit.hosting.conftest import ADA, JOB, Hosting, Worked


@pytest.fixture
async def process(hosting: Hosting, tmp_path: Path) -> Worked:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "work.py").write_text("")
    (folder / "job.toml").write_text('name = "line"\nkind = "map"\n[map]\nfn = "work.py:work"\nitems = 9\n')
    bundle: Bundle = collect(folder, read_spec(folder))
    await hosting.give(bundle)
    return await hosting.process()


def comes(folder: JobFolder, *items: int, value: bytes = b"\x01") -> None:
    store = ResultsStore(folder.path / "results.sqlite")
    store.keep([ItemResult(item, "value", value, "otter") for item in items], [])
    store.close()


def items_in(folder: JobFolder) -> list[int]:
    store = ResultsStore(folder.path / "results.sqlite")
    try:
        return store.finished()
    finally:
        store.close()


async def over(hosting: Hosting, process: Worked, state: JobState, results: int, updated: float) -> None:
    process.become(state, results=results, updated=updated)
    process.over.set()
    await hosting.nobody_works()


async def look(hosting: Hosting, here: JobFolder, *, result: bool = True, most_bytes: int | None = None) -> HostedMark:
    async with await hosting.line() as line:
        return await HostedCopy(here, line, hosting.clock, result=result, most_bytes=most_bytes).look()


async def test_they_come_once_nothing_works_on_the_job_and_anew_after_it_has_gone_on(
    hosting: Hosting, process: Worked, here: JobFolder
) -> None:
    comes(process.folder, 0, 3)
    await look(hosting, here)
    assert not (here.path / "results.sqlite").exists()
    assert kept_here(here) is None
    pack(process.folder.path)
    await over(hosting, process, JobState.PAUSED, 2, 5.0)
    await look(hosting, here, result=False)
    assert not (here.path / "results.sqlite").exists()
    mark = await look(hosting, here)
    assert (items_in(here), kept_here(here), mark.kept) == ([0, 3], 2, 2)
    assert not packed_in(here.path)

    comes(process.folder, *range(9))
    pack(process.folder.path)
    process.become(JobState.FINISHED, results=9, updated=6.0)
    await look(hosting, here, result=False)
    assert not has_all(here), "those that are here are not the last ones"
    await look(hosting, here)
    assert has_all(here)
    assert items_in(here) == list(range(9))


async def test_a_host_that_keeps_a_copy_gives_them_on_as_they_came(
    hosting: Hosting, process: Worked, here: JobFolder
) -> None:
    comes(process.folder, 1)
    pack(process.folder.path)
    await over(hosting, process, JobState.FINISHED, 1, 5.0)
    await look(hosting, here, most_bytes=10**6)
    assert items_in(here) == [1]
    assert [file.name for file in packed_in(here.path)] == [file.name for file in packed_in(process.folder.path)]


async def test_results_that_cannot_be_are_none(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    (process.folder.path / packed_name("0" * 64)).write_bytes(b"something else")
    await over(hosting, process, JobState.FINISHED, 1, 5.0)
    with pytest.raises(Exception, match="does not have its hash"):
        await look(hosting, here)
    packed_in(process.folder.path)[0].unlink()
    with pytest.raises(MalformedMessage, match="gives no results"):
        await look(hosting, here)
    assert not (here.path / "results.sqlite").exists()


async def test_a_process_that_was_killed_while_it_packed_is_made_up_for(hosting: Hosting, process: Worked) -> None:
    comes(process.folder, 1)
    await over(hosting, process, JobState.FINISHED, 1, 5.0)
    assert hosting.stage.ended == [("paused", "")]
    (tending,) = hosting.keeper.of(ADA.peer_id)
    assert tending.record.job == JOB
    process.become(JobState.FINISHED)
    end_as(process.folder, JobState.PAUSED, "")
    assert process.folder.read().state is JobState.FINISHED
    assert packed_in(process.folder.path)
