"""The record of a job for which nothing is done yet."""

from __future__ import annotations

import msgspec

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import JobSpec


def new_record(job: str, spec: JobSpec, folder: str, now: float, bundle: bytes = b"") -> JobRecord:
    """`folder` is where people find what was submitted; `now` is Unix time; `bundle` is what its manifest hashes to."""
    return JobRecord(
        id=job,
        name=spec.name,
        folder=folder,
        spec=msgspec.to_builtins(spec),
        state=JobState.WAITING,
        created=now,
        updated=now,
        peers_wanted=spec.need.peers,
        rounds=spec.train.rounds,
        bundle=bundle.hex(),
    )
