"""Giving back the slots of a job whose program died: its peers would otherwise wait for it until their grace ends."""

from __future__ import annotations

import asyncio

from axonp2p.client.leasing.kept_leases import KeptLease, kept_leases
from axonp2p.client.leasing.take_lease import LeaseRequest, take_lease
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.spec import JobSpec
from axonp2p.transport.dial_policy import DialPolicy

LONGEST_S = 15.0


async def release_leases(
    folder: JobFolder, record: JobRecord, spec: JobSpec, key: PrivateKey, dials: DialPolicy
) -> int:
    """End all leases that the job still holds, as far as their peers answer; how many did."""
    kept = kept_leases(folder.leases)
    wanted = LeaseRequest(record.id, spec.kind, spec.need.cores, spec.need.memory, tuple(spec.need.datasets))
    try:
        async with asyncio.timeout(LONGEST_S):
            ended = await asyncio.gather(*(_end(one, wanted, key, dials) for one in kept))
    except TimeoutError:
        return 0
    folder.leases.unlink(missing_ok=True)
    return sum(ended)


async def _end(kept: KeptLease, wanted: LeaseRequest, key: PrivateKey, dials: DialPolicy) -> bool:
    try:
        row, promise = kept.opened()
        lease = await take_lease(key, dials, row, promise, wanted, name=kept.name)
    except AxonError:
        return False
    await lease.end()
    return True
