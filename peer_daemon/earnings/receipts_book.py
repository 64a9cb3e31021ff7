"""The peer's own copy of every receipt: checked, signed as well, kept, and handed in until a log is shown to have it.

A client may forget to hand a receipt in; the peer, whose credit it is, does not. Plain sqlite3: sqlite-utils loads
numpy, and pandas where there is one, which would double the memory of an idle daemon.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.disk_errors import fix_of, texts_of_a_database
from axonp2p.errors import Refused, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.receipt import MOST_RECEIPTS, DoublySigned, Receipt, accept, open_receipt
from axonp2p.wire.codec import decode, decode_as, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from peer_daemon.earnings.earnings import Earnings
from peer_daemon.lending.leases import LentSlot

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
        kept INTEGER NOT NULL DEFAULT 0,  -- 1 once it is settled: proved to stand in a tracker's log
        refused TEXT NOT NULL DEFAULT '', -- why no tracker that counts will take it; it is not handed in again
        tracker TEXT NOT NULL DEFAULT '', -- by whose log it was proved
        PRIMARY KEY (reservation, number)
    )""",
    """
    CREATE TABLE IF NOT EXISTS tokens (   -- of reservations with receipts that no tracker has yet
        reservation TEXT PRIMARY KEY,
        token BLOB NOT NULL               -- as the client showed it: it tells another tracker what was promised
    )""",
    """
    CREATE TABLE IF NOT EXISTS refusals ( -- trackers that said no: those are not asked again
        reservation TEXT NOT NULL,
        number INTEGER NOT NULL,
        tracker TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (reservation, number, tracker)
    )""",
    """
    CREATE TABLE IF NOT EXISTS acknowledged ( -- trackers that said that they have one which is not settled yet
        reservation TEXT NOT NULL,
        number INTEGER NOT NULL,
        tracker TEXT NOT NULL,
        at INTEGER NOT NULL,              -- Unix seconds
        PRIMARY KEY (reservation, number, tracker)
    )""",
    "CREATE INDEX IF NOT EXISTS receipts_open ON receipts (issuer) WHERE kept = 0 AND refused = ''",
    # All that sums need: adding up a year of receipts at start reads no envelope.
    "CREATE INDEX IF NOT EXISTS receipts_sums ON receipts (signed_at, job, flops, samples, kept, refused)",
)


@dataclass(frozen=True)
class Waiting:
    """A receipt that is not settled yet."""

    reservation: str
    number: int
    issuer: PeerId
    doubly: DoublySigned
    token: bytes
    """Of its reservation; empty when it is not known any more."""


@dataclass(frozen=True)
class Confirmed:
    """A receipt that a tracker's log was shown to have."""

    job: str
    signed_at: int
    entry: bytes
    """As it stands in the trackers' logs."""
    tracker: PeerId
    """The tracker whose log it is."""


def check_receipt(receipt: Receipt, lease: LentSlot, last: int) -> None:
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
        self._path = path
        self._key = key
        self._clock = clock
        self._turn = threading.Lock()
        self.earnings = Earnings()
        """The sums of the receipts; asking for them touches no disk."""
        try:
            with texts_of_a_database():
                self._open_file()
        except sqlite3.Error as error:
            damaged = f"put a copy of it back, or move {path} away; receipts that no tracker has yet are gone then"
            raise SettingsError(f"cannot keep receipts in {path}: {error}", fix=fix_of(error, path, damaged)) from error

    def _open_file(self) -> None:
        self._database = sqlite3.connect(self._path, check_same_thread=False)
        self._database.row_factory = sqlite3.Row
        self._database.execute("PRAGMA journal_mode=wal")
        with self._database:
            for table in _TABLES:
                self._database.execute(table)
        self._add_up()

    def sign(self, envelope: bytes, lease: LentSlot) -> bytes:
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
        """The issuers of the reservations of receipts not settled. Raises `SettingsError` as all that follows."""
        with self._alone():
            rows = self._database.execute("SELECT DISTINCT issuer FROM receipts WHERE kept = 0 AND refused = ''")
            return [row["issuer"] for row in rows]

    def waiting(self, issuer: PeerId, tracker: PeerId) -> list[Waiting]:
        """The oldest receipts for reservations of `issuer` of which `tracker` has not heard; one message full."""
        return self._waiting("issuer = ? AND NOT EXISTS (SELECT 1 FROM heard WHERE tracker = ?)", [issuer, tracker])

    def unproved(self, tracker: PeerId) -> list[Waiting]:
        """Those that `tracker` says it has."""
        return self._waiting("EXISTS (SELECT 1 FROM heard WHERE tracker = ? AND took = 1)", [tracker])

    def lacks_other(self, issuer: PeerId, since: float) -> bool:
        """Whether there is a receipt of its reservations that only `issuer` has said since then (Unix time) to have."""
        other = "issuer = ? AND NOT EXISTS (SELECT 1 FROM heard WHERE tracker != ? AND took = 1 AND at >= ?)"
        return bool(self._waiting(other, [issuer, issuer, since]))

    def heard(self, receipts: Iterable[Waiting], tracker: PeerId, refused: dict[int, str]) -> None:
        """A tracker answered: it says that it has `receipts`, but for those in `refused`, by index.

        Neither settles anything: see `settle` and `give_up`. A receipt that cannot be written is handed in again.
        """
        now = int(self._clock.now())
        with self._alone(), self._database:
            for index, one in enumerate(receipts):
                what = [one.reservation, one.number, tracker]
                if (reason := refused.get(index)) is not None:
                    table, values = "refusals", [*what, reason[:500] or "refused"]
                else:
                    table, values = "acknowledged", [*what, now]
                self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", values)  # noqa: S608

    def settle(self, receipts: Iterable[Waiting], tracker: PeerId) -> None:
        """The log of `tracker` was shown to have these: they are not handed in any more."""
        with self._alone():
            changes = self._end(receipts, "kept = 1, tracker = ?", lambda one: tracker)
            for _, job, flops in changes:
                self.earnings.confirmed(job, flops)

    def give_up(self, trackers: frozenset[PeerId]) -> None:
        """A receipt that every one of these has refused is not handed in any more."""
        if not trackers:
            return
        marks = ", ".join("?" * len(trackers))
        refused = f"(SELECT count(*) FROM heard WHERE took = 0 AND tracker IN ({marks})) = ?"  # noqa: S608 (marks alone)
        waiting = self._waiting(refused, [*sorted(trackers), len(trackers)])
        with self._alone():
            for at, job, flops in self._end(waiting, "refused = ?", self._reason):
                self.earnings.refused(at, job, flops)

    def some_confirmed(self, newest: int, chances: Iterable[float], tracker: PeerId) -> list[Confirmed]:
        """Settled receipts: so many of the newest, and for each of `chances` (0 to 1) one of all. Each once.

        Of those that this tracker's log had; of any where it had none.
        """
        found: dict[int, Confirmed] = {}
        with self._alone():
            of_it = "SELECT max(rowid) AS highest FROM receipts WHERE kept = 1 AND tracker = ?"
            highest = self._database.execute(of_it, [tracker]).fetchone()["highest"]
            which, values = ("AND tracker = ?", [tracker]) if highest else ("", [])
            highest = highest or self._database.execute("SELECT max(rowid) AS highest FROM receipts").fetchone()[0] or 0
            for at_most, count in [(highest, newest), *((1 + int(chance * highest), 1) for chance in chances)]:
                rows = self._database.execute(
                    f"SELECT rowid, job, signed_at, doubly, tracker FROM receipts WHERE kept = 1 {which}"  # noqa: S608
                    " AND rowid <= ? ORDER BY rowid DESC LIMIT ?",
                    [*values, at_most, count],
                )
                for row in rows:
                    found[row["rowid"]] = Confirmed(row["job"], row["signed_at"], row["doubly"], row["tracker"])
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
                fix = fix_of(error, self._path)
                raise SettingsError("cannot keep receipts in receipts.db", cause=str(error), fix=fix) from error

    def _waiting(self, which: str, values: list[object]) -> list[Waiting]:
        heard = (
            "(SELECT tracker, 1 AS took, at FROM acknowledged AS one"
            " WHERE one.reservation = receipts.reservation AND one.number = receipts.number"
            " UNION ALL SELECT tracker, 0, 0 FROM refusals AS one"
            " WHERE one.reservation = receipts.reservation AND one.number = receipts.number)"
        )
        with self._alone():
            rows = self._database.execute(
                "SELECT receipts.*, coalesce(tokens.token, x'') AS token"  # noqa: S608 (text of ours)
                " FROM receipts LEFT JOIN tokens USING (reservation)"
                f" WHERE kept = 0 AND refused = '' AND {which.replace('heard', heard)}"
                " ORDER BY receipts.rowid LIMIT ?",
                [*values, MOST_RECEIPTS],
            )
            return [
                Waiting(
                    row["reservation"],
                    row["number"],
                    row["issuer"],
                    decode_as(row["doubly"], DoublySigned, _DOUBLY_LIMIT),
                    row["token"],
                )
                for row in rows
            ]

    def _end(
        self, receipts: Iterable[Waiting], change: str, value: Callable[[Waiting], str]
    ) -> list[tuple[int, str, int]]:
        """Write down what became of them; of each that was open: when it was signed, its job, its FLOPs."""
        ended: list[tuple[int, str, int]] = []
        with self._database:
            for one in receipts:
                what = [one.reservation, one.number]
                rows = self._database.execute(
                    f"UPDATE receipts SET {change} WHERE reservation = ? AND number = ?"  # noqa: S608 (text of ours)
                    " AND kept = 0 AND refused = '' RETURNING signed_at, job, flops",
                    [value(one), *what],
                ).fetchall()
                ended += [(row["signed_at"], row["job"], row["flops"]) for row in rows]
                for table in ("acknowledged", "refusals"):
                    self._database.execute(f"DELETE FROM {table} WHERE reservation = ? AND number = ?", what)  # noqa: S608
            self._database.execute(
                "DELETE FROM tokens WHERE reservation NOT IN"
                " (SELECT reservation FROM receipts WHERE kept = 0 AND refused = '')"
            )
        return ended

    def _reason(self, one: Waiting) -> str:
        found = self._database.execute(
            "SELECT reason FROM refusals WHERE reservation = ? AND number = ? LIMIT 1", [one.reservation, one.number]
        ).fetchone()
        return str(found["reason"]) if found else "refused"

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

    def _sign(self, envelope: bytes, signed: Signed[Receipt], receipt: Receipt, lease: LentSlot) -> bytes:
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
