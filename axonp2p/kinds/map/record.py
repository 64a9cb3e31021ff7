"""The fields that job.json keeps of a job of this kind beside what it keeps of every job."""

from __future__ import annotations

from typing import Any

import msgspec

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.spec import JobSpec
from axonp2p.kinds.map.section import MapJob
from axonp2p.ledger.receipt import Amount
from axonp2p.wire.json_form import ready_to_decode
from axonp2p.wire.quantities import Count


class PaidWork(msgspec.Struct, frozen=True, kw_only=True):
    """The work that receipts have been written for, of one peer in one reservation."""

    flops: Amount = 0
    milliseconds: Count = 0


class MapRecord(JobRecord, frozen=True, kw_only=True):
    """The whole of job.json. Which items have their result is in results.sqlite, as is the work that peers did."""

    items: Count = 0
    """How many there are; of a program's calls: so far."""
    results: Count = 0
    """How many of them have their result. The count in results.sqlite may be a second ahead."""
    failed: Count = 0
    """Those among them whose result is an error."""
    paid: dict[str, PaidWork] = {}
    """By reservation and peer, as in results.sqlite."""

    @property
    def done(self) -> int:
        """Calls."""
        return self.results

    @property
    def units(self) -> int:
        """Calls."""
        return self.items

    @classmethod
    def counts(cls, spec: JobSpec) -> dict[str, Any]:
        """As `JobRecord` has it."""
        assert isinstance(spec, MapJob)
        return {"items": spec.map.items if isinstance(spec.map.items, int) else 0}


ready_to_decode(MapRecord)
