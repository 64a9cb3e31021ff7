"""The fields that job.json keeps of a job of this kind beside what it keeps of every job."""

from __future__ import annotations

from typing import Any

import msgspec

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.spec import JobSpec
from axonp2p.kinds.run.results import CopyResult
from axonp2p.kinds.run.section import RunJob
from axonp2p.ledger.receipt import MOST_AMOUNT, Amount, Work
from axonp2p.wire.json_form import ready_to_decode
from axonp2p.wire.quantities import Count
from axonp2p.wire.ranks import Rank


class UnpaidWork(msgspec.Struct, frozen=True, kw_only=True):
    """Copies of one peer that have their result, and no receipt."""

    index: Count
    """The last one of them."""
    flops: Amount = 0
    milliseconds: Count = 0

    def and_also(self, index: int, flops: int, milliseconds: int) -> UnpaidWork:
        """One more copy."""
        flops = min(self.flops + flops, MOST_AMOUNT)  # the speed is what a stranger's row tells
        return UnpaidWork(index=index, flops=flops, milliseconds=self.milliseconds + milliseconds)

    @property
    def work(self) -> Work:
        """As a receipt has it."""
        return Work(unit=self.index, flops=self.flops, samples=0, milliseconds=self.milliseconds)


class RunRecord(JobRecord, frozen=True, kw_only=True):
    """The whole of job.json. Which indices have their result stands in results.csv."""

    copies: Count
    results: Count = 0
    """How many of them have their result."""
    failed: Count = 0
    """Those among them whose result is that they failed."""
    unpaid: dict[Rank, UnpaidWork] = {}
    """By rank."""
    accepted: CopyResult | None = None
    """The last one that is paid for: a crash may have kept its line out of results.csv."""

    @property
    def done(self) -> int:
        """Copies."""
        return self.results

    @property
    def units(self) -> int:
        """Copies."""
        return self.copies

    @classmethod
    def counts(cls, spec: JobSpec) -> dict[str, Any]:
        """As `JobRecord` has it."""
        assert isinstance(spec, RunJob)
        return {"copies": spec.run.copies}


ready_to_decode(RunRecord)
