"""What members write into /out comes home to out/PEER, while the job goes on and at its end."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from axonp2p.errors import PeerMisbehaved
from axonp2p.jobs.output_messages import OutputFile, OutputMessage, OutputPart, OutputsSent
from axonp2p.kinds.train.events import TaskFilesKept, TaskFilesLost
from axonp2p.kinds.train.file_requests import EVERY_S
from axonp2p.kinds.train.task_files import TaskFiles
from axonp2p.training.messages import AskFiles
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame

REQUEST = (2 << 20) + 1


class Job:
    """A job of two peers, whose clock stands where it is put."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.asked: list[tuple[int, AskFiles]] = []
        self.told: list[Any] = []
        self.folder = folder
        peers = [SimpleNamespace(rank=rank, paused="", lost="") for rank in (0, 1)]
        journal: Any = SimpleNamespace(
            folder=SimpleNamespace(path=folder), record=SimpleNamespace(lives=2, peers=peers), tell=self.told.append
        )
        names = {0: "otter", 1: "heron"}
        self.present = dict(names)
        crew: Any = SimpleNamespace(
            leases={rank: SimpleNamespace(name=name) for rank, name in names.items()},
            present=self.present,
            tell=self._tell,
        )
        self.peers = peers
        clock: Any = SimpleNamespace(monotonic=lambda: self.now)
        self.files = TaskFiles(journal, crew, clock)
        for rank in names:
            self.files.built(rank)

    def _tell(self, rank: int, frame: bytes) -> None:
        order: AskFiles = decode(split_frame(frame).header, AskFiles, HEADER_LIMIT)
        self.asked.append((rank, order))

    async def says(self, rank: int, message: OutputMessage, payload: bytes = b"") -> None:
        await self.files.heard(rank, message, memoryview(payload))

    async def sends(self, rank: int, request: int, path: str, content: bytes, *, left_out: int = 0) -> None:
        sha256 = hashlib.sha256(content).digest()
        await self.says(rank, OutputPart(request=request, number=0, offset=0), content)
        await self.says(rank, OutputFile(request=request, number=0, path=path, size=len(content), sha256=sha256))
        await self.says(rank, OutputsSent(request=request, files=1, left_out=left_out))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


async def test_files_come_while_the_job_goes_on(job: Job) -> None:
    job.files.ask_those_due()
    assert job.asked == []
    job.now = EVERY_S
    job.files.ask_those_due()
    assert [rank for rank, _ in job.asked] == [0, 1]
    await job.sends(0, REQUEST, "steps.csv", b"1\n")
    assert (job.folder / "out" / "otter" / "steps.csv").read_bytes() == b"1\n"
    assert job.told == [TaskFilesKept(peer="otter", files=1, bytes=2, left_out=0)]
    job.now = 3 * EVERY_S
    job.files.ask_those_due()
    rank, order = job.asked[-1]
    assert (rank, len(order.have)) == (0, 1)
    await job.sends(0, order.request, "steps.csv", b"1\n2\n")
    assert (job.folder / "out" / "otter" / "steps.csv").read_bytes() == b"1\n2\n"
    assert len(job.told) == 1  # a file that grows is told of at the end


async def test_at_the_end_all_that_can_answer_are_waited_for(job: Job) -> None:
    job.peers[1].paused = "its owner is back"
    ending = asyncio.create_task(job.files.fetch_last())
    await asyncio.sleep(0)
    assert [rank for rank, _ in job.asked] == [0]
    assert not ending.done()
    await job.sends(0, REQUEST, "a", b"x", left_out=3)
    await asyncio.wait_for(ending, 10)
    assert job.told == [TaskFilesKept(peer="otter", files=1, bytes=1, left_out=3)]
    assert not (job.folder / ".arriving-files").exists()


async def test_of_a_peer_that_is_lost_what_came_stays(job: Job) -> None:
    ending = asyncio.create_task(job.files.fetch_last())
    await asyncio.sleep(0)
    request = job.asked[0][1].request
    sha256 = hashlib.sha256(b"").digest()
    await job.says(0, OutputFile(request=request, number=0, path="first", size=0, sha256=sha256))
    await job.says(0, OutputPart(request=request, number=1, offset=0), b"half")
    job.present.clear()
    await asyncio.wait_for(ending, 10)
    assert [path.name for path in (job.folder / "out" / "otter").iterdir()] == ["first"]


async def test_what_nobody_asked_for_is_passed_over_and_what_does_not_fit_is_misbehaviour(job: Job) -> None:
    await job.sends(0, REQUEST, "unasked", b"x")
    assert not (job.folder / "out").exists()
    job.now = EVERY_S
    job.files.ask_those_due()
    job.now = 2 * EVERY_S
    job.files.ask_those_due()
    with pytest.raises(PeerMisbehaved):
        await job.sends(job.asked[0][0], job.asked[0][1].request, "../job.json", b"x")


async def test_a_disk_that_takes_no_files_costs_the_files_only(job: Job) -> None:
    (job.folder / "out").write_text("a file in the way")
    job.now = EVERY_S
    job.files.ask_those_due()
    job.now = 2 * EVERY_S
    job.files.ask_those_due()
    await job.sends(*(job.asked[0][0], job.asked[0][1].request), "a", b"x")
    assert [type(event) for event in job.told] == [TaskFilesLost]
    await asyncio.wait_for(job.files.fetch_last(), 10)
