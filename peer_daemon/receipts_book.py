"""The peer's own copy of every receipt: checked, signed as well, kept, and handed in until the tracker has it.

A client may forget to hand a receipt in; the peer, whose credit it is, does not. Plain sqlite3: sqlite-utils loads
numpy, and pandas where there is one, which would double the memory of an idle daemon.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from axonp2p.errors import Refused, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.receipt import MOST_RECEIPTS, DoublySigned, Receipt, accept, open_receipt
from axonp2p.wire.codec import decode, decode_as, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from peer_daemon.leases import Lease

_ENVELOPE_LIMIT = Receipt.LIMIT + ENVELOPE_OVERHEAD
_DOUBLY_LIMIT = _ENVELOPE_LIMIT + ENVELOPE_OVERHEAD
_TABLE = """
    CREATE TABLE IF NOT EXISTS receipts (
        reservation TEXT NOT NULL,
        number INTEGER NOT NULL,
        issuer TEXT NOT NULL,             -- the tracker that gave the reservation: no other can keep the receipt
        job TEXT NOT NULL,
        client TEXT NOT NULL,
        flops INTEGER NOT NULL,
        envelope BLOB NOT NULL,           -- as the client signed it: the same one again gets the same answer
        doubly BLOB NOT NULL,
        kept INTEGER NOT NULL DEFAULT 0,  -- 1 once the tracker acknowledged it
        refused TEXT NOT NULL DEFAULT '', -- why the tracker will not take it; it is not handed in again
        PRIMARY KEY (reservation, number)
    )"""


@dataclass(frozen=True)
class Waiting:
    """A receipt that its tracker has not acknowledged yet."""

    reservation: str
    number: int
    doubly: DoublySigned


def check_receipt(receipt: Receipt, lease: Lease, last: int) -> None:
    """Raise `Refused` unless `receipt` is the next after number `last` for the work under `lease` (pure)."""
    for what, said, right in (
        ("reservation", receipt.reservation, lease.reservation),
        ("client", receipt.client, lease.client),
        ("peer", receipt.peer, lease.peer),
        ("job", receipt.job, lease.job),
        ("number", receipt.number, last + 1),
    ):
        if said != right:
            raise Refused(f"the receipt has the wrong {what}: {said}, not {right}")


class ReceiptsBook:
    """Receipts in one SQLite file. Its methods touch the disk: call them in a thread; any number may call at once."""

    def __init__(self, path: Path, key: PrivateKey) -> None:
        self._key = key
        self._turn = threading.Lock()
        try:
            self._database = sqlite3.connect(path, check_same_thread=False)
            self._database.row_factory = sqlite3.Row
            self._database.execute("PRAGMA journal_mode=wal")
            with self._database:
                self._database.execute(_TABLE)
        except sqlite3.Error as error:
            raise SettingsError(f"cannot keep receipts in {path}: {error}", fix=f"move {path} away") from error

    def sign(self, envelope: bytes, lease: Lease) -> bytes:
        """The encoded `DoublySigned` of the client's encoded `Signed[Receipt]`, durably kept before it is returned.

        Raises `Refused` for a receipt that is not the next one of this lease, and what opening one raises.
        """
        signed: Signed[Receipt] = decode(envelope, Signed[Receipt], _ENVELOPE_LIMIT)
        receipt = open_receipt(signed)
        try:
            with self._alone():
                return self._sign(envelope, signed, receipt, lease)
        except SettingsError as error:  # a full disk, say: our owner's business, but the client hears of it
            raise Refused(f"this peer cannot keep the receipt: {error.cause}") from error

    def waiting(self, issuer: PeerId) -> list[Waiting]:
        """The oldest receipts that this tracker has not acknowledged, as many as go into one message.

        Raises `SettingsError` when the file cannot be read.
        """
        with self._alone():
            rows = self._database.execute(
                "SELECT * FROM receipts WHERE issuer = ? AND kept = 0 AND refused = '' ORDER BY rowid LIMIT ?",
                [issuer, MOST_RECEIPTS],
            )
            return [
                Waiting(row["reservation"], row["number"], decode_as(row["doubly"], DoublySigned, _DOUBLY_LIMIT))
                for row in rows
            ]

    def handed_in(self, receipts: Iterable[Waiting], refused: dict[int, str]) -> None:
        """A tracker answered: it has `receipts`, but for those in `refused`, which it will never take (by index).

        Raises `SettingsError` when the file cannot be written; then they are handed in again.
        """
        with self._alone(), self._database:
            for index, one in enumerate(receipts):
                outcome = (0, refused[index][:500] or "refused") if index in refused else (1, "")
                self._database.execute(
                    "UPDATE receipts SET kept = ?, refused = ? WHERE reservation = ? AND number = ?",
                    [*outcome, one.reservation, one.number],
                )

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._database.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._turn:
            try:
                yield
            except sqlite3.Error as error:
                raise SettingsError("cannot keep receipts in receipts.db", cause=str(error)) from error

    def _sign(self, envelope: bytes, signed: Signed[Receipt], receipt: Receipt, lease: Lease) -> bytes:
        last = 0
        newest = self._database.execute(
            "SELECT number, envelope, doubly FROM receipts WHERE reservation = ? ORDER BY number DESC LIMIT 1",
            [lease.reservation],
        ).fetchone()
        if newest is not None:
            if newest["envelope"] == envelope:
                again: bytes = newest["doubly"]
                return again
            last = newest["number"]
        check_receipt(receipt, lease, last)
        doubly = encode(accept(self._key, signed))
        with self._database:
            self._database.execute(
                "INSERT INTO receipts (reservation, number, issuer, job, client, flops, envelope, doubly)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    *(receipt.reservation, receipt.number, lease.issuer, receipt.job),
                    *(receipt.client, receipt.flops, envelope, doubly),
                ],
            )
        return doubly
