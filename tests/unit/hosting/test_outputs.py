"""The files of results that a host has: copied with the result, whole or not at all, whatever the host sends."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from axonp2p.client.hosted.hosted_copy import HostedCopy
from axonp2p.client.hosted.hosted_jobs import ClientHostedJobs
from axonp2p.client.hosted.hosted_mark import ARRIVING, HostedMark, OtherHost, read_mark, write_mark
from axonp2p.client.hosted.how_far import has_result, kept_here, lacking_outputs
from axonp2p.client.hosted.second_host import without_host
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import PeerMisbehaved, Refused, Unreachable
from axonp2p.hosting.caller import HostLine
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.output_messages import MOST_OUTPUT_BYTES
from axonp2p.jobs.spec import read_spec
from axonp2p.kinds.run.results import CopyResult, ResultsFile
from axonp2p.wire.frame import PAYLOAD_LIMIT
from tests.fakes import key_of
from tests.unit.hosting.conftest import ADA, HOST, JOB, Hosting, Worked
from tests.unit.hosting.test_packed_folder import files_in

LARGE = b"0123456789" * 150_000
"""More than travels at once."""


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write_run(tmp_path / "job", 'outputs = ["*"]')


def write_run(folder: Path, outputs: str) -> Bundle:
    folder.mkdir()
    (folder / "work.py").write_text("")
    job_toml = f'name = "line"\nkind = "run"\n[run]\ncommand = "python work.py"\ncopies = 9\n{outputs}\n'
    (folder / "job.toml").write_text(job_toml)
    return collect(folder, read_spec(folder))


@pytest.fixture
async def process(hosting: Hosting, bundle: Bundle) -> Worked:
    await hosting.give(bundle)
    return await hosting.process()


@pytest.fixture
def jobs(here: JobFolder, hosting: Hosting) -> ClientHostedJobs:
    means: Any = SimpleNamespace(key=ADA, clock=hosting.clock)
    return ClientHostedJobs(means, JobStore(here.path.parent.parent))


def comes(process: Worked, index: int, files: dict[str, bytes], *, code: int = 0) -> None:
    """An index has its result, as a driver writes it down."""
    out = process.folder.path / "out" / str(index)
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    if not code:
        out.mkdir(parents=True, exist_ok=True)
    size = sum(map(len, files.values()))
    results = ResultsFile(process.folder.path / "results.csv", 9)
    results.add(CopyResult(index, "otter", code, 1.5, size))
    process.become(JobState.RUNNING, results=len(results.read()))


async def over(hosting: Hosting, process: Worked, state: JobState = JobState.FINISHED) -> None:
    process.become(state)
    process.over.set()
    await hosting.nobody_works()


async def look(hosting: Hosting, here: JobFolder, *, result: bool = True, most_bytes: int | None = None) -> HostedMark:
    async with await hosting.line() as line:
        return await HostedCopy(here, line, hosting.clock, result=result, most_bytes=most_bytes).look()


async def test_files_come_with_the_result_and_not_before(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    comes(process, 4, {"a.txt": b"abc", "deep/b.txt": b"", "large": LARGE})
    comes(process, 0, {})
    comes(process, 7, {}, code=5)
    mark = await look(hosting, here)
    assert mark.kept == 3
    assert (here.path / "results.csv").read_bytes() == (process.folder.path / "results.csv").read_bytes()
    assert list(lacking_outputs(here, here.read())) == ["out/4", "out/0"]  # as they came
    assert (kept_here(here), has_result(here)) == (1, False)
    await over(hosting, process)
    assert not has_result(here)
    await look(hosting, here)
    assert files_in(here.path / "out") == files_in(process.folder.path / "out")
    assert sorted(path.name for path in (here.path / "out").iterdir()) == ["0", "4"]
    assert (kept_here(here), has_result(here)) == (3, True)
    assert not (here.path / ARRIVING).exists()


async def test_a_job_without_outputs_asks_for_none(
    hosting: Hosting, here: JobFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hosting.give(write_run(tmp_path / "plain", ""))
    process = await hosting.process()
    comes(process, 4, {})
    await over(hosting, process)
    asked = asked_for(monkeypatch)
    await look(hosting, here)
    assert [name for name, _ in asked if name.startswith("out/")] == []
    assert has_result(here)


def asked_for(patch: pytest.MonkeyPatch, *, cut_at: int = -1) -> list[tuple[str, int]]:
    """What is asked for from now on, with its offset; the line is cut before that one."""
    asked: list[tuple[str, int]] = []
    part = HostLine.part

    async def asks(self: HostLine, job: str, name: str, offset: int, before: bytes = b"") -> tuple[int, bytes]:
        asked.append((name, offset))
        if len(asked) == cut_at:
            raise Unreachable("the line was cut")
        return await part(self, job, name, offset, before)

    patch.setattr(HostLine, "part", asks)
    return asked


async def test_what_was_cut_is_gone_on_with(
    hosting: Hosting, process: Worked, here: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes(process, 3, {"first": b"1"})
    comes(process, 4, {"large": LARGE})
    await over(hosting, process)
    with monkeypatch.context() as patch:
        asked = asked_for(patch, cut_at=4)
        with pytest.raises(Unreachable):
            await look(hosting, here)
    assert asked[1:] == [("out/3", 0), ("out/4", 0), ("out/4", PAYLOAD_LIMIT)]
    assert files_in(here.path / "out") == {"3/first": b"1"}
    asked = asked_for(monkeypatch)
    await look(hosting, here)
    assert asked == [("out/4", PAYLOAD_LIMIT)]
    assert (here.path / "out" / "4" / "large").read_bytes() == LARGE


async def test_what_came_of_another_host_is_not_gone_on_with(
    hosting: Hosting, process: Worked, here: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes(process, 4, {"a.txt": b"abc"})
    await over(hosting, process)
    (here.path / ARRIVING / "files" / "deep").mkdir(parents=True)  # and what was half unpacked
    (here.path / ARRIVING / f"out-4-{key_of('another').peer_id}").write_bytes(b'[["b.txt",3]]\nx')
    await look(hosting, here)
    assert files_in(here.path / "out") == {"4/a.txt": b"abc"}


@pytest.mark.parametrize(
    "sent",
    [
        b'[["../../../a.txt",3]]\nabc',
        b'[["a.txt",4]]\nabcd',
        b'[["a.txt",3]]\nab',
        b'[["a.txt",3]]\nabcd',
        b"x" * PAYLOAD_LIMIT,
        b" " * 1000,
    ],
)
async def test_a_host_that_invents_files_is_named_and_writes_nothing(
    hosting: Hosting, process: Worked, here: JobFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    comes(process, 4, {"a.txt": b"abc"})
    await over(hosting, process)
    part = HostLine.part

    async def invented(self: HostLine, job: str, name: str, offset: int, before: bytes = b"") -> tuple[int, bytes]:
        again = not sent.startswith(b"[") or not offset  # without end, where there is no end
        return (offset, sent if again else b"") if "out" in name else await part(self, job, name, offset, before)

    before = set(files_in(tmp_path / "laptop"))
    with monkeypatch.context() as patch:
        patch.setattr(HostLine, "part", invented)
        with pytest.raises(PeerMisbehaved, match=r"host 127\.0\.0\.1:\d+ gives other files of out/4"):
            await look(hosting, here)
    copied = {f"jobs/{JOB}/{name}" for name in ("results.csv", "hosted.json", ".copying")}
    assert set(files_in(tmp_path / "laptop")) <= before | copied
    await look(hosting, here)
    assert has_result(here)


async def test_a_result_of_more_than_may_be_is_none(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    comes(process, 4, {})
    with (process.folder.path / "results.csv").open("a") as file:
        file.write(f"5,otter,0,1.0,{MOST_OUTPUT_BYTES + 1}\r\n9,otter,0,1.0,1\r\n")
    await look(hosting, here)
    assert list(lacking_outputs(here, here.read())) == ["out/4"]


async def test_taken_back_the_files_are_here(
    hosting: Hosting, process: Worked, here: JobFolder, jobs: ClientHostedJobs
) -> None:
    here.bundle.mkdir()
    comes(process, 4, {"a.txt": b"abc"})
    await over(hosting, process, JobState.PAUSED)
    await jobs.take_back(here)
    assert read_mark(here) is None
    assert files_in(here.path / "out") == {"4/a.txt": b"abc"}
    assert here.read().done == 1


async def test_without_its_host_it_goes_on_after_the_results_whose_files_are_here(
    hosting: Hosting, process: Worked, here: JobFolder, jobs: ClientHostedJobs
) -> None:
    here.bundle.mkdir()
    comes(process, 4, {"a.txt": b"abc"})
    await look(hosting, here)
    assert without_host(here).endswith("continues from its beginning: nothing of it is kept here)")
    comes(process, 5, {}, code=1)
    comes(process, 6, {"b.txt": b"b"})
    await look(hosting, here)
    shutil.copytree(process.folder.path / "out" / "6", here.path / "out" / "6")
    assert without_host(here).endswith("continues after 2 copies, kept here)")
    await hosting.listener.stop()
    (here.path / ARRIVING).mkdir()
    await jobs.take_back(here)
    assert not (here.path / ARRIVING).exists()


async def test_a_file_that_the_host_has_not_is_no_other(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    comes(process, 4, {"a.txt": b"abc"})
    comes(process, 5, {"a.txt": b"abc"})
    await over(hosting, process)
    shutil.rmtree(process.folder.path / "out" / "5")
    with pytest.raises(Refused, match="there is no out/5 now"):
        await look(hosting, here)
    assert files_in(here.path / "out") == {"4/a.txt": b"abc"}  # what there was is here


async def test_the_host_counts_results_as_it_counts_rounds(hosting: Hosting, process: Worked) -> None:
    (tending,) = hosting.keeper.of(ADA.peer_id)
    assert tending.held().done == 0
    hosting.clock.time += 100
    comes(process, 4, {})
    held = tending.held()
    assert (held.done, held.stirred) == (1, hosting.clock.now())
    record = process.folder.path / "job.json"
    for damaged in (
        b"[]",
        b'{"spec":1,"state":"paused"}',
        b'{"spec":{"kind":"none"},"state":"paused"}',
        b'{"state":"paused"}',
    ):
        record.write_bytes(damaged)
        assert tending.folder.progress() is None


@pytest.fixture
async def second(hosting: Hosting, bundle: Bundle, tmp_path: Path) -> AsyncIterator[Hosting]:
    home = tmp_path / "second"
    home.mkdir()
    running = Hosting(home, own_key=key_of("second host"))
    await running.start()
    running.keeper.copies.find_host = {HOST.peer_id: hosting.place}.get
    yield running
    await running.stop()


async def test_a_second_host_copies_files_while_the_job_runs_as_far_as_there_is_room(
    hosting: Hosting, process: Worked, second: Hosting, bundle: Bundle, here: JobFolder, jobs: ClientHostedJobs
) -> None:
    await second.give(bundle, copies=HOST.peer_id)
    (kept,) = second.keeper.of(ADA.peer_id)
    standby = OtherHost(tracker=str(second.place.address), host=second.place.peer)
    write_mark(here, HostedMark(tracker=str(hosting.place.address), host=HOST.peer_id, standby=standby))
    comes(process, 4, {"a.txt": b"abc"})
    comes(process, 5, {"b.bin": b"b" * 300_000})  # twice that and the names: more than a MiB
    comes(process, 6, {"c.txt": b"abc"})
    assert await kept._new_copying().copy()
    assert files_in(kept.folder.job / "out") == {"4/a.txt": b"abc"}
    here.bundle.mkdir()
    await over(hosting, process)
    await hosting.listener.stop()
    with pytest.raises(Unreachable) as caught:
        await jobs.look(here)
    assert f"continues at {second.place.called}, which keeps a copy, after 3 copies" in caught.value.fix
    await jobs.take_back(here)
    assert files_in(here.path / "out") == {"4/a.txt": b"abc"}
