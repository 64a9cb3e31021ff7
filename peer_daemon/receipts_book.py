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
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS receipts (
        reservation TEXT NOT NULL,
        number INTEGER NOT NULL,
        issuer TEXT NOT NULL,             -- who gave the reservation: a tracker, or this peer itself
        job TEXT NOT NULL,
        client TEXT NOT NULL,
        flops INTEGER NOT NULL,
        envelope BLOB NOT NULL,           -- as the client signed it: the same one again gets the same answer
        doubly BLOB NOT NULL,
        kept INTEGER NOT NULL DEFAULT 0,  -- 1 once a tracker acknowledged it
        refused TEXT NOT NULL DEFAULT '', -- why its issuer will not take it; it is not handed in again
        PRIMARY KEY (reservation, number)
    )""",
    """
    CREATE TABLE IF NOT EXISTS tokens (   -- of reservations with receipts that no tracker has yet
        reservation TEXT PRIMARY KEY,
        token BLOB NOT NULL               -- as the client showed it: it tells another tracker what was promised
    )""",
    """
    CREATE TABLE IF NOT EXISTS refusals ( -- by trackers other than the issuer: those are not asked again
        reservation TEXT NOT NULL,
        number INTEGER NOT NULL,
        tracker TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (reservation, number, tracker)
    )""",
)


@dataclass(frozen=True)
class Waiting:
    """A receipt that no tracker has acknowledged yet."""

    reservation: str
    number: int
    issuer: PeerId
    doubly: DoublySigned
    token: bytes
    """Of its reservation; empty when it is not known any more."""


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
                for table in _TABLES:
                    self._database.execute(table)
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

    def issuers(self) -> list[PeerId]:
        """Who gave the reservations of receipts that no tracker has acknowledged, and that may still be handed in.

        Raises `SettingsError` when the file cannot be read.
        """
        with self._alone():
            rows = self._database.execute("SELECT DISTINCT issuer FROM receipts WHERE kept = 0 AND refused = ''")
            return [row["issuer"] for row in rows]

    def waiting(self, issuer: PeerId, tracker: PeerId) -> list[Waiting]:
        """The oldest receipts for reservations of `issuer` that `tracker` may take, as many as go into one message.

        Raises `SettingsError` when the file cannot be read.
        """
        with self._alone():
            rows = self._database.execute(
                "SELECT receipts.*, coalesce(tokens.token, x'') AS token"
                " FROM receipts LEFT JOIN tokens USING (reservation)"
                " WHERE issuer = ? AND kept = 0 AND refused = '' AND NOT EXISTS ("
                "  SELECT 1 FROM refusals WHERE refusals.reservation = receipts.reservation"
                "  AND refusals.number = receipts.number AND tracker = ?)"
                " ORDER BY receipts.rowid LIMIT ?",
                [issuer, tracker, MOST_RECEIPTS],
            )
            return [
                Waiting(
                    row["reservation"],
                    row["number"],
                    issuer,
                    decode_as(row["doubly"], DoublySigned, _DOUBLY_LIMIT),
                    row["token"],
                )
                for row in rows
            ]

    def handed_in(self, receipts: Iterable[Waiting], tracker: PeerId, refused: dict[int, str]) -> None:
        """A tracker answered: it has `receipts`, but for those in `refused`, which it will never take (by index).

        What its own issuer refuses nobody else takes either; what another tracker refuses waits for the issuer.
        Raises `SettingsError` when the file cannot be written; then they are handed in again.
        """
        with self._alone(), self._database:
            for index, one in enumerate(receipts):
                what = [one.reservation, one.number]
                reason = refused.get(index, "")[:500] or "refused"
                if index not in refused:
                    self._database.execute("UPDATE receipts SET kept = 1 WHERE reservation = ? AND number = ?", what)
                elif tracker == one.issuer:
                    self._database.execute(
                        "UPDATE receipts SET refused = ? WHERE reservation = ? AND number = ?", [reason, *what]
                    )
                else:
                    self._database.execute(
                        "INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?)", [*what, tracker, reason]
                    )
            self._database.execute(
                "DELETE FROM tokens WHERE reservation NOT IN"
                " (SELECT reservation FROM receipts WHERE kept = 0 AND refused = '')"
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
            self._database.execute("INSERT OR IGNORE INTO tokens VALUES (?, ?)", [lease.reservation, lease.token])
            self._database.execute(
                "INSERT INTO receipts (reservation, number, issuer, job, client, flops, envelope, doubly)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    *(receipt.reservation, receipt.number, lease.issuer, receipt.job),
                    *(receipt.client, receipt.flops, envelope, doubly),
                ],
            )
        return doubly
