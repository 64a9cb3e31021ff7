"""What job.toml says of it, what job.json keeps of it, its events, and its driver."""

import asyncio
from functools import partial
from typing import Any

import msgspec

from axonp2p.client.events.event import Event
from axonp2p.client.events.events import JobFinished
from axonp2p.client.run.crew import WorkListener
from axonp2p.client.run.driver import Driver, JobContext
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.job_file_keys import whole
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.section import Section
from axonp2p.jobs.spec import JobSpec
from axonp2p.ledger.receipt import Work
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

from .worker import Square


class ToySection(msgspec.Struct, frozen=True, kw_only=True):
    number: int = 2


class ToyJob(JobSpec, frozen=True, kw_only=True):
    toy: ToySection = ToySection()


RULES = {"number": whole(0, 1000, 2)}
SECTION = Section("toy", ToyJob, ToySection, RULES, {}, {}, lambda spec: None, lambda spec: [])


class ToyRecord(JobRecord, frozen=True, kw_only=True):
    square: int | None = None
    units = 1

    @property
    def done(self) -> int:
        return int(self.square is not None)

    @classmethod
    def counts(cls, spec: JobSpec) -> dict[str, Any]:
        return {}


class ToySquared(Event, frozen=True):
    square: int


class ToyDriver(Driver, WorkListener):
    def __init__(self, context: JobContext) -> None:
        self.journal, self.spec = context.journal, context.spec
        self.heard_words: asyncio.Queue[tuple[int, Square]] = asyncio.Queue()

    async def heard(self, rank: int, payload: memoryview, *, signed: SignedFrame | None) -> None:
        self.heard_words.put_nowait((rank, decode(split_frame(payload).header, Square, HEADER_LIMIT)))

    async def run(self, settlement: JobSettlement) -> Event | None:
        crew, record = settlement.crew, self.journal.record
        crew.work_for(self)
        for rank in crew.present:
            crew.tell(rank, pack_frame(Square(number=self.spec.toy.number)))
        rank, word = await self.heard_words.get()
        work = Work(unit=0, flops=10**9, samples=0, milliseconds=0)
        done = partial(self.journal.change, lasting=True, square=word.number)
        settlement.pay({rank: work}, lambda credits, receipts: done(credits=credits, receipts=receipts))
        self.journal.tell(ToySquared(square=word.number))
        kept = await settlement.settle()
        self.journal.enter(JobState.FINISHED)
        usual = {"rounds": 1, "seconds": 0.0, "wire_bytes": 0, "peers": list(crew.present.values()), "lost": []}
        return JobFinished(job=record.id, folder=record.folder, credits=settlement.credits(), receipts=kept, **usual)
