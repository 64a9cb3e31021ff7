"""Giving back the slots of a job whose program died: its peers would otherwise wait for it until their grace ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from axonp2p.client.leasing.hiring import GRACE_S
from axonp2p.client.leasing.kept_leases import KeptLease, kept_leases
from axonp2p.client.leasing.take_lease import LeaseRequest, take_lease
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.errors import AlreadyRunning, AxonError, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.lifecycle import JobState
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


async def finish_killed(store: JobStore, key: PrivateKey, dials: DialPolicy, now: float) -> None:
    """Of jobs whose programs were killed when all else was done: give slots back; of finished ones remove the states.

    `now` is in Unix seconds: no peer waits for longer than the grace that was asked for, so none is dialled after it.
    """
    killed = await asyncio.to_thread(store.killed_at_the_end)
    await asyncio.gather(
        *(_finish(folder, record, key, dials, late=now - record.updated > GRACE_S) for folder, record in killed)
    )


async def _finish(folder: JobFolder, record: JobRecord, key: PrivateKey, dials: DialPolicy, *, late: bool) -> None:
    with suppress(AlreadyRunning, SettingsError), folder.held():
        if late:
            folder.leases.unlink(missing_ok=True)
        else:
            await release_leases(folder, record, spec_of(record), key, dials)
        if record.state is JobState.FINISHED:
            folder.checkpoints(0).remove_all()


async def _end(kept: KeptLease, wanted: LeaseRequest, key: PrivateKey, dials: DialPolicy) -> bool:
    try:
        row, promise = kept.opened()
        lease = await take_lease(key, dials, row, promise, wanted, name=kept.name)
    except AxonError:
        return False
    await lease.end()
    return True
