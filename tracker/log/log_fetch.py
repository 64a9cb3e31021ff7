"""Fetches from another tracker's log what this one lacks: compares the hashes of its entries, then asks for entries."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import sqlite_utils

from axonp2p.errors import PeerMisbehaved
from axonp2p.ledger.entry import decode_entry
from axonp2p.ledger.log_client import entries, evidence, leaves
from axonp2p.ledger.log_messages import MOST_ENTRIES, MOST_LEAVES
from axonp2p.ledger.voiding import Voided, VoidingHandedIn, open_voiding
from axonp2p.logs import get_logger
from axonp2p.transport.http.http_caller import HttpCaller
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.storage.database import Database
from tracker.storage.log_store import number_of

log = get_logger(__name__)


class LogFetch:
    """What is fetched goes through the ledger keeper, which checks all of it."""

    def __init__(self, database: Database, ledger: LedgerKeeper) -> None:
        self._database = database
        self._ledger = ledger

    async def page(self, line: HttpCaller, first: int, size: int, source: str) -> int:
        """Fetch what is lacking here of a page of that log, whose head has `size` entries; where the next one begins.

        `source` names who is charged for what it is the first to show; empty: nobody. Raises what asking raises, and
        `TooOften`.
        """
        page = await leaves(line, first, min(MOST_LEAVES, size - first))
        if not page:
            raise PeerMisbehaved(f"{line.called} signed a head of {size} entries and shows {first}")
        lacking = await self._database.read(functools.partial(_unknown, first=first, page=page))
        while lacking:
            told = await entries(line, lacking[:MOST_ENTRIES])
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
        told = await evidence(line, sha256)
        handed_in = VoidingHandedIn(voided=voided.voided, evidence=told.evidence, tokens=told.tokens, relayed=True)
        kept = await self._ledger.void(handed_in, source)
        if kept.reason:
            log.warning("conviction not taken", tracker=line.called, reason=kept.reason)
        return kept.new


def _unknown(database: sqlite_utils.Database, first: int, page: Sequence[tuple[int, bytes]]) -> list[int]:
    return [number for number, (place, leaf) in enumerate(page, first) if number_of(database, place, leaf) is None]
