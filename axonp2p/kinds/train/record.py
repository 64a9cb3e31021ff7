"""The fields that job.json keeps of a training beside what it keeps of every job."""

from __future__ import annotations

from typing import Any

import msgspec

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.spec import JobSpec
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.kinds.train.kept.best_round import UNLESS_SAID, BestBy, BestRound
from axonp2p.kinds.train.section import TrainJob
from axonp2p.verification.claims import RoundDone
from axonp2p.wire.json_form import ready_to_decode
from axonp2p.wire.quantities import Count, Number
from axonp2p.wire.ranks import Rank


class AheadRound(msgspec.Struct, frozen=True, kw_only=True):
    """A round that all peers agree on, while its state is on the way to this disk."""

    finished: RoundFinished
    """The event that will be told of it."""
    state: str
    """The name of what it led to."""
    round_bytes: Count
    """On the wire, for it."""
    reports: dict[Rank, RoundDone]
    """By rank, for receipts."""


class TrainRecord(JobRecord, frozen=True, kw_only=True):
    """The whole of job.json."""

    rounds: Count
    round: Count = 0
    """How many rounds are accepted."""
    loss: Number | None = None
    metrics: dict[str, Number] = {}
    kept_state: str = ""
    """The name of the newest state in states/, when there is one to go on from."""
    kept_round: Count = 0
    """How many rounds are in it; a job without one begins anew."""
    state_name: str = ""
    """The name of the state after the last round in the books."""
    ahead: AheadRound | None = None
    """Accepted, but not in the books."""
    last: RoundFinished | None = None
    """The last round in the books: its line in events.jsonl may be missing after a crash."""
    best: BestRound | None = None
    """The best round whose state is kept."""
    stops_after: Count = 0
    """The job ends after so many rounds: its owner, or what they came to, said so; 0: after them all."""
    layout_sha256: str = ""
    """Of model.layout, once it is here."""

    @property
    def done(self) -> int:
        """Rounds."""
        return self.round

    @property
    def kept(self) -> int:
        """Those in the newest state on this disk."""
        return self.kept_round

    @property
    def units(self) -> int:
        """Rounds, as many as there will be."""
        return self.stops_after or self.rounds

    @property
    def best_by(self) -> BestBy:
        """By what its rounds are compared. Raises `ValueError`."""
        return BestBy.read(str(self.spec.get("train", {}).get("best", UNLESS_SAID)))

    @classmethod
    def counts(cls, spec: JobSpec) -> dict[str, Any]:
        """As `JobRecord` has it."""
        assert isinstance(spec, TrainJob)
        return {"rounds": spec.train.rounds}


ready_to_decode(TrainRecord)
