"""The index beside the entries, page by page, and each row made anew that says other things than its entry.

Balances are summed from the index, which can be made from the entries, and these are held to their hashes. So whatever
happened to a row, its entry tells what it must be. An entry that is damaged itself is named and left to `log_scrub`;
its row is believed meanwhile, since it came to the disk by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import LogDamaged
from axonp2p.ledger.entry import VOIDED_BEGINS, decode_entry, read_entry
from axonp2p.ledger.merkle import leaf_hash
from axonp2p.ledger.receipt import Receipt
from axonp2p.ledger.voiding import Spoiled, Voiding
from tracker.storage.log_check import check_index, right_count, voided_by_entries
from tracker.storage.log_store import entry_bytes, index_keys, leaves, log_size

_ADDED = "FROM receipts WHERE entry >= ? OR entry < 0"


@dataclass(frozen=True)
class PageLooked:
    """The errors in one page of entries and of their index."""

    damaged: list[int]
    """Entries that are not what was hashed when they came, or are lacking."""
    rows: list[int]
    """Good entries of which the index says other things than they do."""


def look_at_page(database: sqlite_utils.Database, first: int, end: int, voided: set[Spoiled]) -> PageLooked:
    """Entries from `first` up to `end`. Raises `LogDamaged` when their hashes are lacking."""
    found = dict(
        database.execute(
            "SELECT number, CAST(entry AS BLOB) FROM entries WHERE number >= ? AND number < ?", [first, end]
        ).fetchall()
    )
    hashes = leaves(database, first, end - first)
    damaged = [
        number
        for number, leaf in enumerate(hashes, first)
        if not isinstance(found.get(number), bytes) or leaf_hash(found[number]) != leaf
    ]
    bad = set(damaged)
    rows = [one.entry for one in check_index(database, first, end, voided) if one.entry is not None]
    return PageLooked(damaged, [number for number in rows if number not in bad])


def mend_rows(database: sqlite_utils.Database, rows: list[int], voided: set[Spoiled]) -> None:
    """Make these rows of the index anew from their entries."""
    for number in rows:
        entry = entry_bytes(database, number)
        said = read_entry(decode_entry(entry))
        flops = said.flops if isinstance(said, Receipt) else 0
        ids = [_id(database, name) for name in (said.client, said.peer, said.job)]
        counts = right_count(database, number, entry, said, voided)
        stands = database.execute("SELECT stands FROM receipts WHERE entry = ?", [number]).fetchone()
        database.execute(
            "INSERT OR REPLACE INTO receipts (entry, place, whole, leaf, client, peer, job, flops, counts, stands)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [number, *index_keys(said, leaf_hash(entry)), *ids, flops, counts, int(bool(stands and stands[0] == 1))],
        )


def mend_newest(database: sqlite_utils.Database, most: int) -> tuple[int, list[int]]:
    """The same for the newest entries, and rows of entries that are none; how many were mended, and what is damaged."""
    end = log_size(database)
    first, voided = max(0, end - most), voided_by_entries(database)
    try:
        looked = look_at_page(database, first, end, voided)
    except LogDamaged:
        return 0, []  # `check_newest_head`, and the scrub, say more
    with database.atomic():
        mend_rows(database, looked.rows, voided)
        return len(looked.rows) + drop_added(database), looked.damaged


def drop_added(database: sqlite_utils.Database) -> int:
    """Take rows of entries that are none out of the index; how many there were."""
    return max(0, database.execute(f"DELETE {_ADDED}", [log_size(database)]).rowcount)


def has_added(database: sqlite_utils.Database) -> bool:
    """Whether there are any."""
    return database.execute(f"SELECT 1 {_ADDED} LIMIT 1", [log_size(database)]).fetchone() is not None


def voided_since(database: sqlite_utils.Database, voided: set[Spoiled]) -> set[Spoiled]:
    """`voided`, and what was made void since it was read: the index knows these entries, and they speak themselves."""
    found = database.execute(
        "SELECT CAST(entries.entry AS BLOB) FROM receipts INDEXED BY receipts_voiding"
        " JOIN entries ON number = receipts.entry WHERE counts = -1"
    )
    entries = [entry for (entry,) in found.fetchall() if entry.startswith(VOIDED_BEGINS)]
    said = [read_entry(decode_entry(entry)) for entry in entries]
    return voided | {one.spoils for one in said if isinstance(one, Voiding)}


def _id(database: sqlite_utils.Database, name: str) -> int:
    database.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", [name])
    return int(database.execute("SELECT id FROM names WHERE name = ?", [name]).fetchone()[0])
