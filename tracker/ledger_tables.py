"""The ledger's part of the tracker's SQLite file."""

from __future__ import annotations

import sqlite_utils


def make_ledger_tables(database: sqlite_utils.Database) -> None:
    """Make what is missing; what an older version made is brought to today's form."""
    table = database.table
    receipts = table("receipts")
    # Nothing is ever deleted here, so the rowid counts receipts in the order in which they came: see receipt_relay.py.
    receipts.create(
        {"reservation": str, "peer": str, "number": int, "client": str, "job": str, "flops": int}
        | {"payload": bytes, "client_signature": bytes, "peer_signature": bytes, "relayed": int},
        pk=("reservation", "peer", "number"),
        not_null={"relayed"},
        defaults={"relayed": 0},
        if_not_exists=True,
    )
    if "relayed" not in receipts.columns_dict:
        receipts.add_column("relayed", int, not_null_default=0)
    receipts.create_index(["job"], if_not_exists=True)
    table("foreign_tokens").create(
        {"uuid": str, "issuer": str, "client": str, "payload": bytes, "signature": bytes},
        pk=("uuid", "issuer"),
        if_not_exists=True,
    )
    table("relays").create(
        {"tracker": str, "database": str, "upto": int, "whole_until": int},
        pk=("tracker", "database"),
        if_not_exists=True,
    )
