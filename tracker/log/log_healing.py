"""A start with fewer entries than were acknowledged: fetch them from other trackers before anything is signed.

They hold the receipts, not the order in which this log had them. Where the order comes out the same, the log goes on as
if nothing had happened; else it goes on under a new name, as after `restore`, which no watcher takes for a forgery.
Nobody has what this tracker alone had acknowledged: then it does not start, and its operator decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from axonp2p.errors import AxonError, LogDamaged
from axonp2p.ledger.log_client import heads
from axonp2p.ledger.merkle import root
from axonp2p.ledger.tree_head import TreeHead, open_head
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.tracker_client import line_to
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.log.log_fetch import LogFetch
from tracker.replication.own_tracker_row import begin_new_log
from tracker.storage.database import Database
from tracker.storage.log_store import log_size, nodes

log = get_logger(__name__)

WITHIN_S = 300.0
"""For one other tracker: some ten thousand entries a minute come over a slow line."""


async def heal(
    database: Database, ledger: LedgerKeeper, last: TreeHead, name: str, others: Mapping[str, DialPolicy | None]
) -> str:
    """The name under which the log goes on, with at least as many entries as `last` had. Raises `LogDamaged`.

    `others` are the addresses of trackers, with what may be dialled of those that strangers named.
    """
    log.error("the log lost entries", acknowledged=last.size, left=await database.read(log_size))
    for address, dials in others.items():
        if await database.read(log_size) >= last.size:
            break
        await _fetch_all(LogFetch(database, ledger), address, dials)
    left = await database.read(log_size)
    if left < last.size:
        raise LogDamaged(
            f"this tracker acknowledged {last.size} entries of its log, and {left} are left",
            cause="tracker.db lost its end (a disk that lied, a damaged tracker.db-wal), or is an old copy, or new",
            fix="name a tracker that has the others with --tracker ADDRESS, or start again once it is there;"
            " axon-tracker restore FILE    puts a backup back;"
            " axon-tracker new-log    continues without them, and tells everybody",
        )
    if name == last.log and await database.read(lambda tables: root(last.size, nodes(tables))) == last.root:
        log.info("the log is whole again", entries=left)
        return name
    fresh = await database.write(begin_new_log)
    log.warning("the log is whole again, in another order, and continues under a new name", entries=left, log=fresh[:8])
    return fresh


async def _fetch_all(fetch: LogFetch, address: str, dials: DialPolicy | None) -> None:
    try:
        async with line_to(PinnedAddress.parse(address), dials) as line, asyncio.timeout(WITHIN_S):
            with one_look("healing the log"):
                size, upto = open_head((await heads(line)).own).size, 0
                while upto < size:
                    upto = await fetch.page(line, upto, size, source="")
    except (AxonError, TimeoutError) as error:
        reason = error.in_a_line if isinstance(error, AxonError) else "too slow"
        log.warning("a tracker does not give what the log lacks", at=address.partition("#")[0], reason=reason)
