"""The messages that a tracker signs: its row, its list of vouched trackers, its pushes. And its database's name."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import sqlite_utils

from axonp2p.errors import BadSignature, StaleRow
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.table.records import TrackerRow, Vouching
from axonp2p.table.sync_messages import Push
from axonp2p.table.vouching import sign_vouching
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.envelope import Signed, open_signed, sign

LIFE_S = 1800
RENEWED_EVERY_S = 300
VOUCHED_AGAIN_S = 3600


def database_name(database: sqlite_utils.Database) -> str:
    """32 random hexadecimal digits, the same for as long as the file lives. Blocks."""
    with database.atomic():
        database.execute("CREATE TABLE IF NOT EXISTS name (name TEXT)")
        found = database.execute("SELECT name FROM name").fetchone()
        if found is not None:
            return str(found[0])
        name = secrets.token_hex(16)
        database.execute("INSERT INTO name VALUES (?)", [name])
        return name


def begin_new_log(database: sqlite_utils.Database) -> str:
    """Go on with the entries that are there under a new name, which is returned: the old heads bind nobody any more."""
    name = secrets.token_hex(16)
    database.execute("DELETE FROM heads")
    database.execute("UPDATE name SET name = ?", [name])
    return name


class OwnTrackerRow:
    """Signs the row anew when it gets old."""

    def __init__(self, key: PrivateKey, address: str, database: str) -> None:
        self.address = address
        self.peer = key.peer_id
        self._key = key
        self._database = database
        self._signed: Signed[TrackerRow] | None = None
        self._signed_at = 0.0
        self._vouched: dict[PeerId, str] = {}
        self._vouching: Signed[Vouching] | None = None
        self._vouched_at = 0.0

    def at(self, now: float) -> Signed[TrackerRow]:
        """The row, valid for a while from `now` (Unix seconds) on."""
        if self._signed is None or abs(now - self._signed_at) > RENEWED_EVERY_S:
            row = TrackerRow(
                tracker=self._key.peer_id,
                address=self.address,
                sequence=int(now * 1000),
                expires=int(now) + LIFE_S,
                database=self._database,
            )
            self._signed, self._signed_at = sign(self._key, row), now
        return self._signed

    def sign(self, push: Push) -> Signed[Push]:
        """A push of this tracker."""
        return sign(self._key, push)

    def vouching(self, trackers: Mapping[PeerId, str], now: float) -> Signed[Vouching]:
        """The list of these trackers, addresses by id: signed anew when it is another one, and every hour."""
        if self._vouching is None or trackers != self._vouched or abs(now - self._vouched_at) > VOUCHED_AGAIN_S:
            self._vouched, self._vouched_at = dict(trackers), now
            self._vouching = sign_vouching(self._key, self._vouched, now)
        return self._vouching


def open_tracker_row(signed: Signed[TrackerRow], now: float) -> TrackerRow:
    """The row in an envelope when it is to be believed at `now`.

    Raises `BadSignature` (also when another key signed it), `StaleRow` when it has expired, and what `open_signed`
    raises.
    """
    row = open_signed(signed, TrackerRow)
    if row.tracker != signed.signer:
        raise BadSignature(f"a row of tracker {short(row.tracker)} was signed by {short(signed.signer)}")
    if row.expires <= now - CLOCK_TOLERANCE_S:
        raise StaleRow(f"the row of tracker {short(row.tracker)} has expired")
    return row
