"""Its driver: brings one file to all peers but one, then to the last one, and has each hash it."""

import asyncio
import hashlib
import os
from functools import partial
from typing import Any

import msgspec

from axonp2p.client.events.event import Event
from axonp2p.client.events.events import JobFinished
from axonp2p.client.run.crew import WorkListener
from axonp2p.client.run.driver import Driver, JobContext
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.bundle import alone
from axonp2p.jobs.job_file_keys import whole
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.section import Section
from axonp2p.jobs.spec import JobSpec
from axonp2p.ledger.receipt import Work
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

from .worker import BlobHashed, HashBlob


class BringingSection(msgspec.Struct, frozen=True, kw_only=True):
    bytes: int = 2**20


class BringingJob(JobSpec, frozen=True, kw_only=True):
    bringing: BringingSection = BringingSection()


RULES = {"bytes": whole(0, 2**30, 2**20)}
SECTION = Section("bringing", BringingJob, BringingSection, RULES, {}, {}, lambda spec: None, lambda spec: [])


class BringingRecord(JobRecord, frozen=True, kw_only=True):
    hashed: bool = False
    units = 1

    @property
    def done(self) -> int:
        return int(self.hashed)

    @classmethod
    def counts(cls, spec: JobSpec) -> dict[str, Any]:
        return {}


class AllHashed(Event, frozen=True):
    """What each worker's file hashes to, and what travelled for it."""

    sha256: str
    hashes: list[str]
    sent: int
    member_bytes: int


class BringingDriver(Driver, WorkListener):
    def __init__(self, context: JobContext) -> None:
        self.journal, self.spec = context.journal, context.spec
        self.answers: asyncio.Queue[str] = asyncio.Queue()

    async def heard(self, rank: int, payload: memoryview, *, signed: SignedFrame | None) -> None:
        word: BlobHashed = decode(split_frame(payload).header, BlobHashed, HEADER_LIMIT)
        self.answers.put_nowait(word.sha256)

    async def run(self, settlement: JobSettlement) -> Event | None:
        crew, record = settlement.crew, self.journal.record
        crew.work_for(self)
        data = os.urandom(self.spec.bringing.bytes)
        file = self.journal.folder.path / "content"
        file.write_bytes(data)
        content = await asyncio.to_thread(alone, file)
        *first, last = crew.present
        await asyncio.gather(*(crew.bring(rank, content) for rank in first))
        await crew.bring(last, content)
        for rank in crew.present:
            crew.tell(rank, pack_frame(HashBlob(name=content.blob.name.hex())))
        hashes = [await self.answers.get() for _ in crew.present]
        work = dict.fromkeys(crew.present, Work(unit=0, flops=10**9, samples=0, milliseconds=0))
        done = partial(self.journal.change, lasting=True, hashed=True)
        settlement.pay(work, lambda credits, receipts: done(credits=credits, receipts=receipts))
        blobs, sha256 = crew.blobs, hashlib.sha256(data).hexdigest()
        told = AllHashed(sha256=sha256, hashes=hashes, sent=blobs.sent_bytes, member_bytes=blobs.member_bytes)
        self.journal.tell(told)
        crew.drop(content.blob.name)
        kept = await settlement.settle()
        self.journal.enter(JobState.FINISHED)
        usual = {"rounds": 1, "seconds": 0.0, "wire_bytes": 0, "peers": list(crew.present.values()), "lost": []}
        return JobFinished(job=record.id, folder=record.folder, credits=settlement.credits(), receipts=kept, **usual)
