"""Looks which jobs of this home hold leases, and whether a program works on them."""

from __future__ import annotations

from contextlib import suppress

from axonp2p.client.leasing.hiring import GRACE_S
from axonp2p.client.leasing.kept_leases import kept_leases
from axonp2p.client.leasing.slot_holders import SlotHolder
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import AxonError
from axonp2p.jobs.lifecycle import is_over


def slot_holders(store: JobStore, now: float, without: str) -> list[SlotHolder]:
    """All but the job `without`. `now` is in Unix seconds. Blocks.

    A job whose program is dead is left out once it has given no sign of life for longer than its peers wait.
    """
    found = []
    for folder in store.with_leases():
        with suppress(AxonError, OSError):
            runs = folder.is_held()
            waits = not is_over(folder.read().state) and now - _last_sign(folder) <= GRACE_S
            if folder.path.name != without and (runs or waits):
                peers = frozenset(one.opened()[0].peer for one in kept_leases(folder.leases))
                found.append(SlotHolder(folder.path.name, peers, runs))
    return found


def _last_sign(folder: JobFolder) -> float:
    files = (folder.record_file, folder.events, folder.leases, *folder.logs.glob("*.log"))
    return max(file.stat().st_mtime for file in files if file.exists())
