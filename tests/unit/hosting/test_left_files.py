"""What the task of a hosted training left at its peers: copied when nothing works on the job any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.client.hosted.hosted_copy import HostedCopy
from axonp2p.client.hosted.hosted_mark import HostedMark, has_all
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import PeerMisbehaved
from axonp2p.hosting.caller import HostLine
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.output_messages import TASK_FILES
from axonp2p.jobs.spec import read_spec
from axonp2p.kinds.train.events import TaskFilesKept
from tests.unit.hosting.conftest import Hosting, Worked
from tests.unit.hosting.test_packed_folder import files_in


@pytest.fixture
async def process(hosting: Hosting, tmp_path: Path) -> Worked:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "task.py").write_text("")
    (folder / "job.toml").write_text('name = "line"\n')
    bundle: Bundle = collect(folder, read_spec(folder))
    await hosting.give(bundle)
    return await hosting.process()


def leaves(process: Worked, peer: str, **files: str) -> None:
    """Files of a peer are home, as a driver writes them down."""
    out = process.folder.path / "out" / peer
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (out / name).write_text(content)
    process.folder.add_event(TaskFilesKept(peer=peer, files=len(files), bytes=1, left_out=0))


async def over(hosting: Hosting, process: Worked, state: JobState, updated: float) -> None:
    process.become(state, updated=updated)
    process.over.set()
    await hosting.nobody_works()


async def look(hosting: Hosting, here: JobFolder, *, result: bool = True) -> HostedMark:
    async with await hosting.line() as line:
        return await HostedCopy(here, line, hosting.clock, result=result).look()


async def test_they_come_once_nothing_works_on_the_job(hosting: Hosting, process: Worked, here: JobFolder) -> None:
    leaves(process, "otter", log="first")
    await look(hosting, here)
    assert not (here.path / "out").exists()
    leaves(process, "otter", log="second")
    leaves(process, "wren", picture="wren's")
    await over(hosting, process, JobState.PAUSED, 5.0)
    await look(hosting, here, result=False)
    assert not (here.path / "out").exists()
    assert (await look(hosting, here)).left_files_of == 5.0
    assert files_in(here.path / "out") == {"otter/log": b"second", "wren/picture": b"wren's"}


async def test_they_come_again_when_the_job_went_on(
    hosting: Hosting, process: Worked, here: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves(process, "otter", log="as long")
    await over(hosting, process, JobState.PAUSED, 5.0)
    await look(hosting, here)
    (process.folder.path / "out" / "otter" / "log").write_text("another")
    await look(hosting, here)
    assert files_in(here.path / "out") == {"otter/log": b"as long"}, "it says that nothing happened"
    process.folder.model.write_bytes(b"weights")
    (here.path / "model.safetensors").write_bytes(b"weights")
    process.become(JobState.FINISHED, updated=6.0)
    await look(hosting, here, result=False)
    assert here.read().state is JobState.FINISHED
    assert not has_all(here)
    monkeypatch.setattr("axonp2p.client.hosted.hosted_copy._is_right", lambda *_: True)
    await look(hosting, here)
    assert files_in(here.path / "out") == {"otter/log": b"another"}
    assert has_all(here)


async def test_what_the_hosts_disk_did_not_take_keeps_no_other_from_coming(
    hosting: Hosting, process: Worked, here: JobFolder
) -> None:
    process.folder.add_event(TaskFilesKept(peer="otter", files=3, bytes=1, left_out=0))
    leaves(process, "wren", log="wren's")
    await over(hosting, process, JobState.PAUSED, 5.0)
    await look(hosting, here)
    assert files_in(here.path / "out") == {"wren/log": b"wren's"}


@pytest.mark.parametrize("peer", ["../../otter", ".hidden", "a/b", ""])
async def test_no_name_leads_out_of_the_folder(hosting: Hosting, process: Worked, here: JobFolder, peer: str) -> None:
    process.folder.add_event(TaskFilesKept(peer=peer, files=1, bytes=1, left_out=0))
    await over(hosting, process, JobState.PAUSED, 5.0)
    with pytest.raises(PeerMisbehaved, match="tells of files in"):
        await look(hosting, here)


async def test_a_peer_has_no_more_than_it_may(
    hosting: Hosting, process: Worked, here: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves(process, "otter", log="first")
    await over(hosting, process, JobState.PAUSED, 5.0)
    part = HostLine.part

    async def invented(self: HostLine, job: str, name: str, offset: int, before: bytes = b"") -> tuple[int, bytes]:
        if not name.startswith("out/"):
            return await part(self, job, name, offset, before)
        return offset, b'[["log",%d]]\n' % (TASK_FILES.bytes + 1)

    monkeypatch.setattr(HostLine, "part", invented)
    with pytest.raises(PeerMisbehaved, match="gives other files of out/otter"):
        await look(hosting, here)
    assert not (here.path / "out").exists()
