"""The ledger's part of the tracker's SQLite file.

`entries` is the log: doubly signed receipts as they came, numbered from 0, never changed and never deleted. `tiles`
holds the hashes of its Merkle tree, `heads` what this tracker signed of it. All else about receipts is an index over
the entries, made of nothing but them: `receipts` with the ids of `names` for keys and jobs.
"""

from __future__ import annotations

from contextlib import suppress

import sqlite_utils

from axonp2p.errors import LogDamaged, PeerMisbehaved
from axonp2p.ledger.receipt import DoublySigned, Receipt
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.storage.log_store import TABLES, Appender, stored

AT_ONCE = 4096
MOST_CURSORS = 1024
"""Other trackers of which `relays` and `follows` say how far they are; those that moved last."""


def make_ledger_tables(database: sqlite_utils.Database) -> None:
    """Make what is missing; what an older version made is brought to today's form."""
    table = database.table
    before = _put_aside(database)
    receipts = table("receipts")
    had_no_standing = not before and receipts.exists() and "stands" not in receipts.columns_dict
    if had_no_standing:
        receipts.add_column("stands", int, not_null_default=0)
    for statement in TABLES:
        database.execute(statement)
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
    if before:
        _take_over(database)
    if before or had_no_standing:
        _let_own_stand(database)


def forget_old_cursors(database: sqlite_utils.Database, table: str) -> None:
    """Of trackers that are too many, those that were told, or followed, longest ago: they begin anew, should they come.

    Each moves by a new row.
    """
    database.execute(
        f"DELETE FROM {table} WHERE rowid IN"  # noqa: S608 (a name of ours)
        f" (SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT -1 OFFSET {MOST_CURSORS})"
    )


def _put_aside(database: sqlite_utils.Database) -> bool:
    """Whether there are receipts from before there was a log; they are in `receipts_before` then."""
    receipts = database.table("receipts")
    if not receipts.exists() or "payload" not in receipts.columns_dict:
        return False
    if "relayed" not in receipts.columns_dict:
        receipts.add_column("relayed", int, not_null_default=0)
    database.execute("DROP INDEX IF EXISTS idx_receipts_job")
    database.execute("ALTER TABLE receipts RENAME TO receipts_before")
    return True


def _take_over(database: sqlite_utils.Database) -> None:
    # In the order in which they came, so that the cursors of the other trackers stay true.
    appender = Appender(database)
    for client, payload, signature, peer_signature, relayed in database.execute(
        "SELECT client, payload, client_signature, peer_signature, relayed FROM receipts_before ORDER BY rowid"
    ):
        signed: Signed[Receipt] = Signed(signer=client, payload=payload, signature=signature)
        appender.add(DoublySigned(receipt=signed, peer_signature=peer_signature), relayed=bool(relayed))
        if appender.waiting >= AT_ONCE:
            appender.finish()
    appender.finish()
    database.execute("UPDATE tokens SET used = 1 WHERE uuid IN (SELECT reservation FROM receipts_before)")
    database.execute("DROP TABLE receipts_before")


def _let_own_stand(database: sqlite_utils.Database) -> None:
    """What was taken on reservations of this tracker before there was a rule for it."""
    tokens = {}
    for (payload,) in database.execute("SELECT payload FROM tokens WHERE used = 1").fetchall():
        with suppress(PeerMisbehaved):  # a damaged one is as good as none
            token = decode_as(payload, Token, Token.LIMIT)
            tokens[token.uuid] = token
    for number in [number for (number,) in database.execute("SELECT entry FROM receipts WHERE counts > 0").fetchall()]:
        try:
            receipt = stored(database, number).receipt
        except LogDamaged:
            continue
        given = tokens.get(receipt.reservation)
        if given is not None and given.client == receipt.client and receipt.peer in given.peers:
            database.execute("UPDATE receipts SET stands = 1 WHERE entry = ?", [number])
