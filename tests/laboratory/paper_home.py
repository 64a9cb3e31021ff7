"""A home with jobs on paper in several states, for pages that list them; no machine is touched."""

from __future__ import annotations

from pathlib import Path

from axonp2p.client.storage.job_record import new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.kinds.run.section import RunJob, RunSection
from tests.laboratory.paper_job import CREW, HOSTILE, NOON, PaperJob

DAY_S = 86_400.0
RUNNING, FINISHED, FAILED, DAMAGED = "net-1111", "digits-7f3a", "words-2222", "torn-3333"


def running(home: Path, job: str = RUNNING) -> PaperJob:
    """The newest one; it runs while a test holds its folder."""
    one = PaperJob(home, job=job, began=NOON + 5 * DAY_S)
    one.begin(CREW)
    one.train(13)
    return one


def finished(home: Path, job: str = FINISHED) -> PaperJob:
    one = PaperJob(home, job=job, began=NOON + 3 * DAY_S)
    one.begin(CREW)
    one.train(20)
    one.finish()
    return one


def failed(home: Path, job: str = FAILED, words: str = HOSTILE) -> PaperJob:
    """With what strangers said of it."""
    one = PaperJob(home, job=job, began=NOON + 2 * DAY_S)
    one.begin([CREW[0], words])
    one.train(2)
    one.fail("AX-102", f"only 1 of at least 2 peers is left: {words}", words, f"axon resume {job}")
    return one


def damaged(home: Path, job: str = DAMAGED) -> JobFolder:
    """Neither its record nor the copy of it can be read."""
    one = PaperJob(home, job=job, began=NOON + 1 * DAY_S)
    for file in (one.folder.record_file, one.folder.record_file.with_name("job.json.bak")):
        file.write_bytes(file.read_bytes()[:100])
    return one.folder


def copies(home: Path, job: str = "sums-4444", began: float = NOON) -> JobFolder:
    """Copies of a command, before anything is done for them."""
    spec = RunJob(name="sums", kind="run", run=RunSection(command="python sum.py", copies=8))
    return JobStore(home).create(new_record(job, spec, "/home/ada/sums", began))


def all_of(home: Path) -> PaperJob:
    """One of each; gives the one that runs."""
    copies(home)
    damaged(home)
    failed(home)
    finished(home)
    return running(home)
