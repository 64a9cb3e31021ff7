"""Logs in databases, made and tampered with by hand."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import sqlite_utils

from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.ledger.merkle import leaf_hash, root
from axonp2p.ledger.receipt import MOST_RECEIPTS, DoublySigned
from axonp2p.ledger.tiles import tiles_after
from axonp2p.ledger.tree_head import TreeHead
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import open_signed, sign
from tests.fakes import key_of, make_receipt, sign_both
from tests.unit.tracker.conftest import Running
from tracker.database import Database
from tracker.log_store import Appender, nodes

CLIENT, ADA, BEN = key_of("client"), key_of("ada"), key_of("ben")


async def reserved(lab: Running, *peers: PrivateKey) -> str:
    """The UUID of a reservation of these peers."""
    lab.clock.time += 1
    await lab.announce(*peers, sequence=int(lab.clock.now()))
    return open_signed(await lab.reserve(CLIENT, *peers), Token).uuid


async def paid(lab: Running, *peers: PrivateKey, rounds: int = 1) -> list[DoublySigned]:
    """A job of so many rounds on these peers; its receipts, handed in."""
    uuid = await reserved(lab, *peers)
    receipts = [
        sign_both(CLIENT, peer, make_receipt(CLIENT, peer, uuid, number))
        for number in range(1, rounds + 1)
        for peer in peers
    ]
    for start in range(0, len(receipts), MOST_RECEIPTS):
        assert not (await hand_in(lab.caller, receipts[start : start + MOST_RECEIPTS])).refused
    return receipts


def tamper(home: Path, *statements: tuple[str, list[object]]) -> None:
    """Change the file of a tracker that does not run."""
    connection = sqlite3.connect(home / "tracker.db")
    with connection:
        for statement, values in statements:
            connection.execute(statement, values)
    connection.close()


def rewrite(home: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the entries and make every hash anew, and forget what was signed: what its operator could do."""
    database = sqlite_utils.Database(home / "tracker.db")
    entries = change([entry for (entry,) in database.execute("SELECT entry FROM entries ORDER BY number").fetchall()])
    with database.atomic():
        for table in ("entries", "tiles", "heads"):
            database.execute(f"DELETE FROM {table}")
        for number, entry in enumerate(entries):
            database.execute("INSERT INTO entries VALUES (?, ?, 0)", [number, entry])
        for (height, index), hashes in tiles_after(0, list(map(leaf_hash, entries)), lambda h, i: b"").items():
            database.execute("INSERT INTO tiles VALUES (?, ?)", [(height << 48) + index, hashes])
    database.close()


def encoded(receipts: list[DoublySigned]) -> list[bytes]:
    return [encode(receipt) for receipt in receipts]


def make_log(path: Path, key: PrivateKey, rounds: int, log: str = "a" * 32) -> list[DoublySigned]:
    """A database whose log has so many receipts, and a head; without a tracker. Returns the receipts."""
    database = Database(path)
    receipts = [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, f"{number:036}")) for number in range(rounds)]

    def fill(tables: sqlite_utils.Database) -> None:
        with tables.atomic():
            appender = Appender(tables)
            for receipt in receipts:
                appender.add(receipt, relayed=False)
            appender.finish()
            head = TreeHead(tracker=key.peer_id, log=log, size=rounds, root=root(rounds, nodes(tables)), time=1)
            signed = sign(key, head)
            tables.execute("INSERT INTO heads VALUES (?, 1, ?, ?)", [rounds, signed.payload, signed.signature])
            tables.execute("CREATE TABLE IF NOT EXISTS name (name TEXT)")
            tables.execute("INSERT INTO name VALUES (?)", [log])

    database.load(fill)
    asyncio.run(database.close())
    return receipts
