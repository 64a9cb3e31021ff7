"""The ledger's part of the tracker's SQLite file.

`entries` is the log: doubly signed receipts as they came, numbered from 0, never changed and never deleted. `tiles`
holds the hashes of its Merkle tree, `heads` what this tracker signed of it. All else about receipts is an index over
the entries, made of nothing but them: `receipts` with the ids of `names` for keys and jobs.
"""

from __future__ import annotations

import sqlite_utils

from tracker.storage.log_store import TABLES

MOST_CURSORS = 1024
"""Other trackers of which `relays` and `follows` say how far they are; those that moved last."""


def make_ledger_tables(database: sqlite_utils.Database) -> None:
    """Make what is missing."""
    for statement in TABLES:
        database.execute(statement)
    foreign_tokens = database.table("foreign_tokens")
    foreign_tokens.create(
        {"uuid": str, "issuer": str, "client": str, "payload": bytes, "signature": bytes},
        pk=("uuid", "issuer"),
        if_not_exists=True,
    )
    foreign_tokens.create_index(["uuid", "client"], if_not_exists=True)
    database.table("relays").create(
        {"tracker": str, "database": str, "upto": int, "whole_until": int},
        pk=("tracker", "database"),
        if_not_exists=True,
    )


def forget_old_cursors(database: sqlite_utils.Database, table: str) -> None:
    """Of trackers that are too many, those that were told, or followed, longest ago: they begin anew, should they come.

    Each moves by a new row.
    """
    database.execute(
        f"DELETE FROM {table} WHERE rowid IN"  # noqa: S608 (a name of ours)
        f" (SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT -1 OFFSET {MOST_CURSORS})"
    )
