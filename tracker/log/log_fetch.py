"""Fetches from another tracker's log what this one lacks: compares the hashes of its entries, then asks for entries.

At a start with fewer entries than were acknowledged they are fetched before anything is signed.
They hold the receipts, not the order in which this log had them. Where the order comes out the same, the log goes on as
if nothing had happened; else it goes on under a new name, as after `restore`, which no watcher takes for a forgery.
Nobody has what this tracker alone had acknowledged: then it does not start, and its operator decides.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping, Sequence

import sqlite_utils

from axonp2p.errors import AxonError, LogDamaged, PeerMisbehaved
from axonp2p.ledger.entry import decode_entry
from axonp2p.ledger.log_client import entries, evidence, heads, leaves, page_by_page
from axonp2p.ledger.log_messages import MOST_ENTRIES, MOST_LEAVES
from axonp2p.ledger.merkle import root
from axonp2p.ledger.tree_head import TreeHead, open_head
from axonp2p.ledger.voiding import Voided, VoidingHandedIn, open_voiding
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.tracker_client import line_to
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.replication.own_tracker_row import begin_new_log
from tracker.storage.database import Database
from tracker.storage.log_store import log_size, nodes, number_of

log = get_logger(__name__)


class LogFetch:
    """Fetched entries go through the ledger keeper, which checks all of them."""

    def __init__(self, database: Database, ledger: LedgerKeeper) -> None:
        self._database = database
        self._ledger = ledger

    async def page(self, line: HttpCaller, first: int, size: int, source: str) -> int:
        """Fetch what is lacking here of a page of that log, whose head has `size` entries; where the next one begins.

        `source` names who is charged for what it is the first to show; empty: nobody. Raises what asking raises, and
        `TooOften`.
        """
        page = await page_by_page(functools.partial(leaves, line, first, min(MOST_LEAVES, size - first)))
        if not page:
            raise PeerMisbehaved(f"{line.called} signed a head of {size} entries and shows {first}")
        lacking = await self._database.read(functools.partial(_unknown, first=first, page=page))
        while lacking:
            told = await page_by_page(functools.partial(entries, line, lacking[:MOST_ENTRIES]))
            decoded = [decode_entry(entry) for entry in told.entries]
            receipts = [entry for entry in decoded if not isinstance(entry, Voided)]
            new = 0
            if receipts:
                new += (await self._ledger.keep(receipts, told.tokens, relayed=True, source=source)).new
            for entry in decoded:
                if isinstance(entry, Voided):
                    new += await self._fetch_evidence(line, entry, source)
            log.info("entries fetched", tracker=line.called, entries=len(decoded), new=new)
            del lacking[: len(decoded)]
        return first + len(page)

    async def _fetch_evidence(self, line: HttpCaller, voided: Voided, source: str) -> bool:
        """Of a word that makes receipts void; whether it was news."""
        sha256 = open_voiding(voided.voided).evidence
        told = await page_by_page(functools.partial(evidence, line, sha256))
        handed_in = VoidingHandedIn(voided=voided.voided, evidence=told.evidence, tokens=told.tokens, relayed=True)
        kept = await self._ledger.void(handed_in, source)
        if kept.reason:
            log.warning("conviction not taken", tracker=line.called, reason=kept.reason)
        return kept.new


def _unknown(database: sqlite_utils.Database, first: int, page: Sequence[tuple[int, bytes]]) -> list[int]:
    return [number for number, (place, leaf) in enumerate(page, first) if number_of(database, place, leaf) is None]


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
