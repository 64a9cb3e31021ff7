"""Logs in databases, made and tampered with by hand."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import sqlite_utils

from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.ledger_client import hand_in, hand_in_voiding
from axonp2p.ledger.merkle import leaf_hash, root
from axonp2p.ledger.receipt import MOST_RECEIPTS, DoublySigned
from axonp2p.ledger.tiles import tiles_after
from axonp2p.ledger.tree_head import TreeHead
from axonp2p.ledger.voiding import Voided, VoidingHandedIn, VoidingKept, open_voiding
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed, open_signed, sign
from tests.fakes import key_of, make_receipt, sign_both
from tests.laboratory.convictions import WITNESSES, evidence_against, voiding_of
from tests.unit.tracker.conftest import Running
from tracker.storage.database import Database
from tracker.storage.log_store import Appender, nodes

RESERVATION = "00000000-0000-4000-8000-000000000001"
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


async def convicted(lab: Running, *, of: PrivateKey, reservation: str, job: str = "job-1") -> VoidingHandedIn:
    """The client voids what a peer earned in a job, with evidence of two witnesses; handed in."""
    witnesses = encode(await witnesses_reserved(lab))
    uuid = open_signed(decode_as(witnesses, Signed[Token], 16_384), Token).uuid
    evidence = evidence_against(of, CLIENT, job, reservation, by=uuid)
    voiding = voiding_of(CLIENT, evidence, [witnesses])
    assert await hand_in_voiding(lab.caller, voiding) == VoidingKept(new=True)
    return voiding


async def witnesses_reserved(lab: Running) -> Signed[Token]:
    """A token of those that do steps again."""
    lab.clock.time += 1
    keys = [key_of(name) for name in WITNESSES]
    await lab.announce(*keys, sequence=int(lab.clock.now()))
    return await lab.reserve(CLIENT, *keys)


def tamper(home: Path, *statements: tuple[str, list[object]]) -> None:
    """Change the file of a tracker that does not run."""
    connection = sqlite3.connect(home / "tracker.db")
    with connection:
        for statement, values in statements:
            connection.execute(statement, values)
    connection.close()


def rewrite(home: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the entries and make every hash anew, and forget what was signed: what its operator could do."""
    (home / "last-head").unlink(missing_ok=True)
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


def make_log(
    path: Path, key: PrivateKey, rounds: int, log: str = "a" * 32, *, void: int | None = None
) -> list[DoublySigned]:
    """A database whose log has so many receipts, and a head; without a tracker. Returns the receipts.

    With `void` it has one more entry, which makes the receipt with this number void, and stands after it.
    """
    database = Database(path)
    receipts = [
        sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, f"{number:036}", job=f"job-{number}"))
        for number in range(rounds)
    ]

    def fill(tables: sqlite_utils.Database) -> None:
        with tables.atomic():
            appender = Appender(tables)
            for number, receipt in enumerate(receipts):
                appender.add(receipt, relayed=False)
                if number == void:
                    appender.finish()
                    conviction = voiding_of(CLIENT, evidence_against(ADA, CLIENT, f"job-{void}", RESERVATION))
                    word = open_voiding(conviction.voided)
                    appender.void(Voided(voided=conviction.voided), word, relayed=False)
                    tables.execute("INSERT INTO evidence VALUES (?, ?)", [word.evidence, conviction.evidence])
            appender.finish()
            size = rounds + (void is not None)
            head = TreeHead(tracker=key.peer_id, log=log, size=size, root=root(size, nodes(tables)), time=1)
            signed = sign(key, head)
            tables.execute("INSERT INTO heads VALUES (?, 1, ?, ?)", [size, signed.payload, signed.signature])
            tables.execute("CREATE TABLE IF NOT EXISTS name (name TEXT)")
            tables.execute("INSERT INTO name VALUES (?)", [log])

    database.load(fill)
    asyncio.run(database.close())
    return receipts
