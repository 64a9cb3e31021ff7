"""The peer's own copy of every receipt: checked, signed as well, kept, and handed in until a tracker has it.

A client may forget to hand a receipt in; the peer, whose credit it is, does not.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import sqlite_utils

from axonp2p.errors import Refused, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.receipt import MOST_RECEIPTS, DoublySigned, Receipt, accept, open_receipt
from axonp2p.wire.codec import decode, decode_as, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from peer_daemon.leases import Lease

_ENVELOPE_LIMIT = Receipt.LIMIT + ENVELOPE_OVERHEAD
_DOUBLY_LIMIT = _ENVELOPE_LIMIT + ENVELOPE_OVERHEAD
_COLUMNS = {
    "reservation": str,
    "number": int,
    "job": str,
    "client": str,
    "flops": int,
    "envelope": bytes,  # as the client signed it: the same one again gets the same answer
    "doubly": bytes,
    "kept": int,  # 1 once a tracker acknowledged it
    "refused": str,  # why trackers will not take it; it is not handed in again
}


@dataclass(frozen=True)
class Waiting:
    """A receipt that no tracker has acknowledged yet."""

    reservation: str
    number: int
    doubly: DoublySigned


def check_receipt(receipt: Receipt, lease: Lease, peer: PeerId, last: int) -> None:
    """Raise `Refused` unless `receipt` is the next after number `last` for the work of `peer` under `lease` (pure)."""
    for what, said, right in (
        ("reservation", receipt.reservation, lease.reservation),
        ("client", receipt.client, lease.client),
        ("peer", receipt.peer, peer),
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
            self._database = sqlite_utils.Database(
                sqlite3.connect(path, check_same_thread=False), execute_plugins=False
            )
            self._database.enable_wal()
            self._table = self._database.table("receipts")
            self._table.create(_COLUMNS, pk=("reservation", "number"), if_not_exists=True)
        except sqlite3.Error as error:
            raise SettingsError(f"cannot keep receipts in {path}: {error}", fix=f"move {path} away") from error

    def sign(self, envelope: bytes, lease: Lease) -> bytes:
        """The encoded `DoublySigned` of the client's encoded `Signed[Receipt]`, durably kept before it is returned.

        Raises `Refused` for a receipt that is not the next one of this lease, and what opening one raises.
        """
        signed: Signed[Receipt] = decode(envelope, Signed[Receipt], _ENVELOPE_LIMIT)
        receipt = open_receipt(signed)
        with self._turn:
            try:
                return self._sign(envelope, signed, receipt, lease)
            except sqlite3.Error as error:
                raise Refused(f"this peer cannot keep the receipt: {error}") from error

    def waiting(self) -> list[Waiting]:
        """The oldest receipts that no tracker has acknowledged, as many as go into one message."""
        with self._turn:
            rows = self._table.rows_where("kept = 0 and refused = ''", order_by="rowid", limit=MOST_RECEIPTS)
            return [
                Waiting(row["reservation"], row["number"], decode_as(row["doubly"], DoublySigned, _DOUBLY_LIMIT))
                for row in rows
            ]

    def handed_in(self, receipts: Iterable[Waiting], refused: dict[int, str]) -> None:
        """A tracker answered: it has `receipts`, but for those in `refused`, which it will never take (by index)."""
        with self._turn, self._database.conn:
            for index, one in enumerate(receipts):
                outcome = {"refused": refused[index][:500] or "refused"} if index in refused else {"kept": 1}
                self._table.update((one.reservation, one.number), outcome)

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._database.close()

    def _sign(self, envelope: bytes, signed: Signed[Receipt], receipt: Receipt, lease: Lease) -> bytes:
        last = 0
        for row in self._table.rows_where("reservation = ?", [lease.reservation], order_by="number desc", limit=1):
            if row["envelope"] == envelope:
                again: bytes = row["doubly"]
                return again
            last = row["number"]
        check_receipt(receipt, lease, self._key.peer_id, last)
        doubly = encode(accept(self._key, signed))
        self._table.insert(
            {
                "reservation": receipt.reservation,
                "number": receipt.number,
                "job": receipt.job,
                "client": receipt.client,
                "flops": receipt.flops,
                "envelope": envelope,
                "doubly": doubly,
                "kept": 0,
                "refused": "",
            }
        )
        return doubly
