"""Files that a driver brings to its peers while they work. They leave this machine about once, as the bundle does.

    content = await asyncio.to_thread(jobs.bundle.alone, path)      one file on this disk; hashing reads it
    await crew.bring(rank, content)                                 its worker can read /blobs/<content.blob.name.hex()>
    crew.drop(content.blob.name)                                    nobody needs it any more

One `Sending` for each blob. For a blob that is there `bring` returns at once, so drivers call it before each use.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from axonp2p.client.events.event import Event
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.run.sending import Sending
from axonp2p.clock import Clock
from axonp2p.errors import Refused, Unreachable
from axonp2p.jobs.bundle import Bundle
from axonp2p.supervision import cancel_and_wait

AT_ONCE = 8
"""Blobs on their way to one peer; others wait. A peer tells of each up to 20 times a second, and is heard 200 times
(`leasing.lease.WORDS_A_SECOND`)."""


@dataclass
class _Brought:
    """One blob, and the peers that have it or are to have it, by rank."""

    sending: Sending
    leases: dict[int, Lease] = field(default_factory=dict)
    under_way: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    def is_with(self, rank: int, lease: Lease) -> bool:
        """Whether it was brought, or is being brought, under this very lease: one that is back is asked again."""
        return self.leases.get(rank) is lease and not lease.gone


class BlobOffice:
    """All blobs of one job but its bundle. `close` when the job's leases end."""

    def __init__(self, clock: Clock, tell: Callable[[Event], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._blobs: dict[bytes, _Brought] = {}
        self._turns: defaultdict[int, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_ONCE))
        self._dropped_bytes = self._dropped_member_bytes = 0

    @property
    def sent_bytes(self) -> int:
        """Bytes of pieces that left this machine."""
        return self._dropped_bytes + sum(one.sending.sent_bytes for one in self._blobs.values())

    @property
    def member_bytes(self) -> int:
        """Bytes of pieces that peers had from each other."""
        return self._dropped_member_bytes + sum(one.sending.member_bytes for one in self._blobs.values())

    async def bring(self, rank: int, lease: Lease, content: Bundle) -> None:
        """`LeasedCrew.bring`. Somebody who is cancelled here leaves it on its way."""
        if lease.gone:
            raise Unreachable(f"peer {lease.name} is gone: {lease.gone}")
        name = content.blob.name
        brought = self._blobs.get(name)
        if brought is None:
            brought = self._blobs[name] = _Brought(Sending(content, self._clock, self._tell, shows_progress=False))
        if not brought.is_with(rank, lease):
            brought.leases[rank] = lease
            brought.under_way[rank] = asyncio.create_task(self._bring(brought, rank, lease), name=f"blob {name.hex()}")
        bringing = brought.under_way[rank]
        try:
            await asyncio.shield(bringing)
        except asyncio.CancelledError:
            if bringing.cancelled() and not _is_cancelled():
                raise Refused("the blob was dropped while it was brought") from None
            raise

    def drop(self, name: bytes) -> None:
        """`LeasedCrew.drop`."""
        brought = self._blobs.pop(name, None)
        if brought is None:
            return
        leases, brought.leases = brought.leases, {}
        for rank, lease in leases.items():
            brought.under_way[rank].cancel()
            lease.drop_blob(name)
        self._dropped_bytes += brought.sending.sent_bytes
        self._dropped_member_bytes += brought.sending.member_bytes

    def gone(self, rank: int) -> None:
        """That peer has gone: others that lack what it had of a blob get it from elsewhere."""
        for brought in self._blobs.values():
            if brought.leases.pop(rank, None):
                brought.sending.gone(rank)
        self._turns.pop(rank, None)

    async def close(self) -> None:
        """Bring nothing more."""
        await cancel_and_wait(*(task for one in self._blobs.values() for task in one.under_way.values()))

    async def _bring(self, brought: _Brought, rank: int, lease: Lease) -> None:
        try:
            async with self._turns[rank]:
                await brought.sending.bring(rank, lease)
        except BaseException:
            if brought.leases.get(rank) is lease:
                del brought.leases[rank]  # so that it is tried again when somebody asks again
                lease.drop_blob(brought.sending.name)
            raise


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
