"""A copy of a job that another host carries on: taken again and again, by one process at a time at the whole host.

    second host                                       host          (a session: the second proves the job's own key)
      | AskFolder, AskPart -------------------------> |  as its owner asks: it may read, and nothing else

Nobody dials for a stranger: the client names the host by its key, and it is dialled where this tracker's own book has
it, when its operator trusts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.host import Host
from axonp2p.hosting.hosted_folder import HostedFolder, HostedRecord
from axonp2p.hosting.lives import pause_before_copy
from axonp2p.hosting.process import Program, RunOrders
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger

log = get_logger(__name__)

ASK_WITHIN_S = 10.0
"""Less than a client waits for its answer."""


@dataclass
class Copies:
    """The state that all copies at one host share."""

    find_host: Callable[[PeerId], Host | None] = lambda peer: None
    """Where a trusted host is; None when none with that key is known."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Copying:
    """One job's: `copy()` it, after each pause."""

    def __init__(
        self,
        folder: HostedFolder,
        record: HostedRecord,
        copies: Copies,
        program: Program,
        orders: Callable[[HostedRecord], RunOrders],
        clock: Clock,
    ) -> None:
        self._folder = folder
        self._record = record
        self._copies = copies
        self._program = program
        self._orders = orders
        self._clock = clock
        self._took_s = 0.0
        self._failures = 0

    def pause_s(self) -> float:
        """Until the next copy."""
        return pause_before_copy(self._clock.now() - self._record.began, self._took_s, self._failures)

    async def host_works(self) -> bool:
        """Whether its host says now that a process works on it there. False when it says nothing."""
        host = self._copies.find_host(self._record.copies)
        if host is None:
            return False
        try:
            key = await asyncio.to_thread(load_or_create_key, self._folder.home / "client.key")
            async with asyncio.timeout(ASK_WITHIN_S), await HostLine.open(key, host) as line:
                return (await line.folder(self._record.job, b""))[0].at_work
        except (AxonError, TimeoutError):
            return False

    async def copy(self) -> bool:
        """Copy what is new once; whether the host gave all of it."""
        record = self._record
        async with self._copies.turn:
            began = self._clock.monotonic()
            host = self._copies.find_host(record.copies)
            copied = host is not None and await self._program.copy(self._folder, self._orders(record), host)
            self._took_s = self._clock.monotonic() - began
        self._failures = 0 if copied else self._failures + 1
        if self._failures == 1:
            log.info("job not copied", job=record.job, reason=str(self._folder.log) if host else "its host is unknown")
        return copied
