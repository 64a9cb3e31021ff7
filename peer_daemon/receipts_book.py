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

from axonp2p.clock import Clock
from axonp2p.errors import Refused, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.receipt import MOST_RECEIPTS, DoublySigned, Receipt, accept, open_receipt
from axonp2p.wire.codec import decode, decode_as, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from peer_daemon.earnings import Earnings
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
        samples INTEGER NOT NULL,
        signed_at INTEGER NOT NULL,       -- Unix seconds by this machine's clock
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
    # All that sums need: adding up a year of receipts at start reads no envelope.
    "CREATE INDEX IF NOT EXISTS receipts_sums ON receipts (signed_at, job, flops, samples, kept, refused)",
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


@dataclass(frozen=True)
class Confirmed:
    """A receipt that a tracker acknowledged."""

    job: str
    signed_at: int
    entry: bytes
    """As it stands in the trackers' logs."""


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

    def __init__(self, path: Path, key: PrivateKey, clock: Clock) -> None:
        """Adds up what is there. Raises `SettingsError` when the file cannot be used."""
        self._key = key
        self._clock = clock
        self._turn = threading.Lock()
        self.earnings = Earnings()
        """What the receipts add up to; asking it touches no disk."""
        try:
            self._database = sqlite3.connect(path, check_same_thread=False)
            self._database.row_factory = sqlite3.Row
            self._database.execute("PRAGMA journal_mode=wal")
            with self._database:
                for table in _TABLES:
                    self._database.execute(table)
            self._add_up()
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
        with self._alone():
            with self._database:
                new = [
                    change
                    for index, one in enumerate(receipts)
                    if (change := self._heard(one, tracker, refused.get(index)))
                ]
                self._database.execute(
                    "DELETE FROM tokens WHERE reservation NOT IN"
                    " (SELECT reservation FROM receipts WHERE kept = 0 AND refused = '')"
                )
            for counts, at, job, flops in new:
                if counts:
                    self.earnings.confirmed(job, flops)
                else:
                    self.earnings.refused(at, job, flops)

    def some_confirmed(self, newest: int, chances: Iterable[float]) -> list[Confirmed]:
        """Receipts that a tracker acknowledged: so many of the newest, and for each of `chances` (0 to 1) one of all.

        Each once. Raises `SettingsError` when the file cannot be read.
        """
        found: dict[int, Confirmed] = {}
        with self._alone():
            highest = self._database.execute("SELECT max(rowid) AS highest FROM receipts").fetchone()["highest"] or 0
            for at_most, count in [(highest, newest), *((1 + int(chance * highest), 1) for chance in chances)]:
                rows = self._database.execute(
                    "SELECT rowid, job, signed_at, doubly FROM receipts WHERE kept = 1 AND rowid <= ?"
                    " ORDER BY rowid DESC LIMIT ?",
                    [at_most, count],
                )
                found |= {row["rowid"]: Confirmed(row["job"], row["signed_at"], row["doubly"]) for row in rows}
        return list(found.values())

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

    def _heard(self, one: Waiting, tracker: PeerId, refusal: str | None) -> tuple[bool, int, str, int] | None:
        """Note what `tracker` said of a receipt. When that settles it: whether it counts, when signed, job, FLOPs."""
        what = [one.reservation, one.number]
        reason = refusal[:500] or "refused" if refusal is not None else ""
        if refusal is not None and tracker != one.issuer:
            self._database.execute("INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?)", [*what, tracker, reason])
            return None
        settled = self._database.execute(
            "UPDATE receipts SET kept = ?, refused = ? WHERE reservation = ? AND number = ?"
            " AND kept = 0 AND refused = '' RETURNING signed_at, job, flops",
            [refusal is None, reason, *what],
        ).fetchall()
        if not settled:
            return None
        return refusal is None, settled[0]["signed_at"], settled[0]["job"], settled[0]["flops"]

    def _add_up(self) -> None:
        rows = self._database.execute(
            "SELECT signed_at, job, flops, samples, kept, refused FROM receipts ORDER BY signed_at"
        )
        for row in rows:
            self.earnings.signed(row["signed_at"], row["job"], row["flops"], row["samples"])
            if row["kept"]:
                self.earnings.confirmed(row["job"], row["flops"])
            elif row["refused"]:
                self.earnings.refused(row["signed_at"], row["job"], row["flops"])

    def _sign(self, envelope: bytes, signed: Signed[Receipt], receipt: Receipt, lease: Lease) -> bytes:
        same = self._database.execute(
            "SELECT envelope, doubly FROM receipts WHERE reservation = ? AND number = ?",
            [lease.reservation, receipt.number],
        ).fetchone()
        if same is not None and same["envelope"] == envelope:  # its client died before it had the answer
            again: bytes = same["doubly"]
            return again
        newest = self._database.execute(
            "SELECT max(number) AS number FROM receipts WHERE reservation = ?", [lease.reservation]
        ).fetchone()
        check_receipt(receipt, lease, newest["number"] or 0)
        doubly, now = encode(accept(self._key, signed)), int(self._clock.now())
        with self._database:
            self._database.execute("INSERT OR IGNORE INTO tokens VALUES (?, ?)", [lease.reservation, lease.token])
            self._database.execute(
                "INSERT INTO receipts"
                " (reservation, number, issuer, job, client, flops, samples, signed_at, envelope, doubly)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    *(receipt.reservation, receipt.number, lease.issuer, receipt.job, receipt.client),
                    *(receipt.flops, receipt.samples, now, envelope, doubly),
                ],
            )
        self.earnings.signed(now, receipt.job, receipt.flops, receipt.samples)
        return doubly
