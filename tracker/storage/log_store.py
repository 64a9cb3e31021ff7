"""The log in the tracker's SQLite file: entries, the tiles of their Merkle tree, and the index of receipts.

Every function runs in a thread of `Database` and inside its transaction: an entry, its hashes and its row in the index
are committed together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import LogDamaged, PeerMisbehaved
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.entry import decode_entry, key_of_place
from axonp2p.ledger.merkle import HASH_BYTES, Node, leaf_hash
from axonp2p.ledger.receipt import DoublySigned, Receipt, whole_key
from axonp2p.ledger.tiles import TILE_HASHES, Read, leaf_at, node_reader, tiles_after
from axonp2p.ledger.voiding import Spoiled, Voided, Voiding, spoiled_by
from axonp2p.wire.codec import decode_as, encode

SUPERSEDED, COUNTS, VOID, VOIDING = 0, 1, 2, -1
"""The values of `receipts.counts` for an entry: another receipt has its number; it counts; it would count, but its peer
was convicted in its job; or it is no receipt, but the entry that makes others void."""

HALVES = ("flops >> 32", "flops & 4294967295")
"""So that no sum leaves SQLite's 64 bits."""
HALVES_THAT_STAND = tuple(f"({half}) * (stands = 1)" for half in HALVES)

TABLES = (
    "CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, entry BLOB NOT NULL, relayed INTEGER NOT NULL)",
    # `place` is the tile's height * 2**48 + its index.
    "CREATE TABLE IF NOT EXISTS tiles (place INTEGER PRIMARY KEY, hashes BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS heads (size INTEGER PRIMARY KEY, time INTEGER, payload BLOB, signature BLOB)",
    # How far the logs of others were compared with this one.
    "CREATE TABLE IF NOT EXISTS follows (tracker TEXT, log TEXT, upto INTEGER, PRIMARY KEY (tracker, log))",
    "CREATE TABLE IF NOT EXISTS names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    # `whole` and `leaf` are what tells apart rows of one `place`: see `index_keys`.
    "CREATE TABLE IF NOT EXISTS receipts (entry INTEGER PRIMARY KEY, place INTEGER NOT NULL,"
    " whole INTEGER NOT NULL, leaf INTEGER NOT NULL, client INTEGER NOT NULL, peer INTEGER NOT NULL,"
    " job INTEGER NOT NULL, flops INTEGER NOT NULL,"
    " counts INTEGER NOT NULL, stands INTEGER NOT NULL DEFAULT 0)",
    # The part of each peer's work in a reservation that stands already: so much less is left of what its machine can
    # have done.
    "CREATE TABLE IF NOT EXISTS worked (reservation TEXT, peer TEXT, flops INTEGER NOT NULL,"
    " PRIMARY KEY (reservation, peer)) WITHOUT ROWID",
    *(f"CREATE INDEX IF NOT EXISTS receipts_{column} ON receipts ({column})" for column in ("client", "peer", "job")),
    "CREATE INDEX IF NOT EXISTS receipts_place ON receipts (place, whole, leaf)",
    f"CREATE INDEX IF NOT EXISTS receipts_voiding ON receipts (client, job, peer) WHERE counts = {VOIDING}",
    # The evidence for the entries that make receipts void.
    "CREATE TABLE IF NOT EXISTS evidence (sha256 BLOB PRIMARY KEY, evidence BLOB NOT NULL)",
)


@dataclass(frozen=True)
class TakenBack:
    """Receipts of a client for a peer that count no more."""

    client: PeerId
    peer: PeerId
    flops: int = 0
    receipts: int = 0
    stood: int = 0
    """FLOPs of them that stood."""


@dataclass(frozen=True)
class LoggedReceipt:
    """A receipt in the log."""

    number: int
    doubly: DoublySigned
    receipt: Receipt
    stands: bool = False


def log_size(database: sqlite_utils.Database) -> int:
    """How many entries there are."""
    return int(database.execute("SELECT coalesce(max(number) + 1, 0) FROM entries").fetchone()[0])


def tile_reader(database: sqlite_utils.Database) -> Read:
    """The tiles as they are stored."""

    def read(height: int, index: int) -> bytes:
        found = database.execute("SELECT hashes FROM tiles WHERE place = ?", [(height << 48) + index]).fetchone()
        return bytes(found[0]) if found else b""

    return read


def nodes(database: sqlite_utils.Database) -> Node:
    """The hashes of the tree."""
    return node_reader(tile_reader(database))


def leaves(database: sqlite_utils.Database, first: int, count: int) -> list[bytes]:
    """The hashes of the entries from `first` on, as many as there are, at most `count`."""
    read, found = tile_reader(database), []
    at, end = first, min(first + count, log_size(database))
    while at < end:
        tile = read(0, at // TILE_HASHES)
        inside = at % TILE_HASHES
        some = min(TILE_HASHES - inside, end - at)
        part = tile[inside * HASH_BYTES : (inside + some) * HASH_BYTES]
        if len(part) != some * HASH_BYTES:
            raise LogDamaged(f"the log lacks the hashes of its entries from {at} on")
        found += [part[start : start + HASH_BYTES] for start in range(0, len(part), HASH_BYTES)]
        at += some
    return found


def entry_bytes(database: sqlite_utils.Database, number: int) -> bytes:
    """An entry as it is stored. Raises `LogDamaged` when it is lacking."""
    found = database.execute("SELECT CAST(entry AS BLOB) FROM entries WHERE number = ?", [number]).fetchone()
    if found is None:
        raise LogDamaged(f"entry {number} of the log is lacking")
    return bytes(found[0])


def good_entry(database: sqlite_utils.Database, number: int, node: Node) -> bytes:
    """An entry that is the one whose hash is in the tree. Raises `LogDamaged`: nothing else is ever shown."""
    entry = entry_bytes(database, number)
    if node(0, number) != leaf_hash(entry):
        raise _changed(number)
    return entry


def _changed(number: int, why: str = "") -> LogDamaged:
    return LogDamaged(f"entry {number} of the log was changed{f': {why}' if why else ''}", fix="ask another tracker")


def stored(database: sqlite_utils.Database, number: int) -> LoggedReceipt:
    """A receipt, decoded. Its signatures were checked before it was stored. Raises `LogDamaged` when it is none."""
    doubly = _decoded(number, entry_bytes(database, number))
    if isinstance(doubly, Voided):
        raise LogDamaged(f"entry {number} of the log is no receipt, and the index says that it is")
    return _stored(number, doubly)


def _decoded(number: int, entry: bytes) -> DoublySigned | Voided:
    # It was decoded before it was stored: what does not decode any more is damage here, and nobody else's mistake.
    try:
        return decode_entry(entry)
    except PeerMisbehaved as error:
        raise LogDamaged(
            f"entry {number} of the log was changed: {error.message}", fix="ask another tracker"
        ) from error


def _stored(number: int, doubly: DoublySigned) -> LoggedReceipt:
    try:
        return LoggedReceipt(number, doubly, decode_as(doubly.receipt.payload, Receipt, Receipt.LIMIT))
    except PeerMisbehaved as error:
        raise LogDamaged(
            f"entry {number} of the log was changed: {error.message}", fix="ask another tracker"
        ) from error


def receipts_until_voiding(
    database: sqlite_utils.Database, numbers: Sequence[int], on_damage: Callable[[LogDamaged], None] | None = None
) -> list[LoggedReceipt]:
    """The receipts among these entries, up to the first that is none.

    A damaged one is left out when there is `on_damage` to be told of it. Raises `LogDamaged` otherwise.
    """
    found: list[LoggedReceipt] = []
    node = nodes(database)
    for number in numbers:
        try:
            doubly = _decoded(number, good_entry(database, number, node))
            if isinstance(doubly, Voided):
                break
            found.append(_stored(number, doubly))
        except LogDamaged as error:
            if on_damage is None:
                raise
            on_damage(error)
    return found


def put_back(database: sqlite_utils.Database, number: int, entry: bytes) -> bool:
    """Write a damaged entry anew, if this is the one whose hash is in the tree; whether it is."""
    if nodes(database)(0, number) != leaf_hash(entry):
        return False
    database.execute("UPDATE entries SET entry = ? WHERE number = ?", [entry, number])
    return True


def number_of(database: sqlite_utils.Database, place: int, leaf: bytes) -> int | None:
    """Where the entry with this key of its place and this hash stands."""
    found = database.conn.execute(
        "SELECT entry FROM receipts INDEXED BY receipts_place WHERE place = ? AND leaf = ?", [place, _beginning(leaf)]
    ).fetchall()
    return next((number for (number,) in found if leaf_at(number, tile_reader(database)) == leaf), None)


def index_keys(said: Receipt | Voiding, leaf: bytes) -> list[int]:
    """The key of its place, and what tells it apart from others with this key; `leaf` is its entry's hash.

    Who grinds keys of peers finds receipts by the thousand whose places have the key of a place of somebody else. So
    no row is read for that key alone; it comes first in the index, for what `place_key` says of its pages.
    """
    # Nobody looks for a voiding by what it is about here: see `Appender.is_voided`.
    return [key_of_place(said), whole_key(said) if isinstance(said, Receipt) else 0, _beginning(leaf)]


def of_its_place(receipt: Receipt) -> list[int]:
    """The values of `place` and `whole` for a receipt, by which those of its reservation, peer and number are found."""
    return [key_of_place(receipt), whole_key(receipt)]


def _beginning(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big", signed=True)


def places(database: sqlite_utils.Database, first: int, count: int) -> list[int]:
    """The keys of the places of entries from `first` on."""
    found = database.execute(
        "SELECT place FROM receipts WHERE entry >= ? AND entry < ? ORDER BY entry", [first, first + count]
    )
    return [place for (place,) in found.fetchall()]


_Place = tuple[str, PeerId, int]


def _place(receipt: Receipt) -> _Place:
    return receipt.reservation, receipt.peer, receipt.number


class Appender:
    """Adds entries within one transaction. Nothing is written before `finish`, which must be called."""

    def __init__(self, database: sqlite_utils.Database) -> None:
        self._database = database
        self._size = log_size(database)
        self._leaves: list[bytes] = []
        self._entries: list[tuple[int, bytes, int]] = []
        self._index: dict[int, list[int]] = {}
        """Rows of the index by the number of their entry."""
        self._counted: dict[_Place, LoggedReceipt] = {}
        """Of those that wait to be written."""
        self._worked: dict[tuple[str, PeerId], int] = {}
        self._ids: dict[str, int] = {}
        found = database.execute("SELECT 1 FROM receipts INDEXED BY receipts_voiding WHERE counts = -1 LIMIT 1")
        self._anything_voided = found.fetchone() is not None
        self._voided: dict[Spoiled, bool] = {}

    @property
    def waiting(self) -> int:
        """Entries that `finish` would write."""
        return len(self._entries)

    def counted(self, receipt: Receipt) -> LoggedReceipt | None:
        """The receipt that counts, or would if it were not void, under this one's reservation, peer and number."""
        place = _place(receipt)
        if place in self._counted:
            return self._counted[place]
        found = self._database.conn.execute(
            "SELECT entry, stands FROM receipts INDEXED BY receipts_place WHERE place = ? AND whole = ? AND counts > 0",
            of_its_place(receipt),
        ).fetchall()
        for number, stands in found:
            one = stored(self._database, number)
            if _place(one.receipt) == place:
                return LoggedReceipt(number, one.doubly, one.receipt, stands == 1)
        return None

    def worked(self, receipt: Receipt) -> int:
        """FLOPs of this peer's work in this reservation that stand."""
        key = (receipt.reservation, receipt.peer)
        if key not in self._worked:
            found = self._database.execute("SELECT flops FROM worked WHERE reservation = ? AND peer = ?", key)
            row = found.fetchone()
            self._worked[key] = int(row[0]) if row else 0
        return self._worked[key]

    def put_back(self, doubly: DoublySigned, receipt: Receipt) -> bool:
        """Whether a damaged entry was this very receipt, which is in its place again."""
        entry = encode(doubly)
        number = number_of(self._database, key_of_place(receipt), leaf_hash(entry))
        return number is not None and put_back(self._database, number, entry)

    def add(
        self, doubly: DoublySigned, receipt: Receipt | None = None, *, relayed: bool, instead_of: int | None = None,
        stands: bool = False,
    ) -> None:  # fmt: skip
        """The next entry; with `instead_of` that entry counts no more. `receipt` is what it says, if known."""
        receipt = receipt or decode_as(doubly.receipt.payload, Receipt, Receipt.LIMIT)
        number = self._append(encode(doubly), relayed=relayed)
        if instead_of in self._index:
            self._index[instead_of][-2] = 0
        elif instead_of is not None:
            self._database.execute("UPDATE receipts SET counts = 0 WHERE entry = ?", [instead_of])
        counts = VOID if self.is_voided(spoiled_by(receipt)) else COUNTS
        keys = index_keys(receipt, self._leaves[-1])
        self._index[number] = [number, *keys, *self._who(receipt), receipt.flops, counts, int(stands)]
        self._counted[_place(receipt)] = LoggedReceipt(number, doubly, receipt, stands)
        if stands:
            self._worked[receipt.reservation, receipt.peer] = self.worked(receipt) + receipt.flops

    def is_voided(self, spoiled: Spoiled) -> bool:
        """Whether what this peer earned in this job of this client is void."""
        if not self._anything_voided:
            return False
        if spoiled not in self._voided:
            found = self._database.execute(
                "SELECT entry FROM receipts INDEXED BY receipts_voiding WHERE counts = -1"
                " AND client = (SELECT id FROM names WHERE name = ?) AND job = (SELECT id FROM names WHERE name = ?)"
                " AND peer = (SELECT id FROM names WHERE name = ?)",
                spoiled,
            )
            self._voided[spoiled] = found.fetchone() is not None
        return self._voided[spoiled]

    def void(self, voided: Voided, voiding: Voiding, *, relayed: bool) -> TakenBack:
        """The next entry; what it makes void counts no more, of what was there before this transaction."""
        number, (client, peer, job) = self._append(encode(voided), relayed=relayed), self._who(voiding)
        self._index[number] = [number, *index_keys(voiding, self._leaves[-1]), client, peer, job, 0, VOIDING, 0]
        self._anything_voided = self._voided[voiding.spoils] = True
        which = "WHERE counts = 1 AND client = ? AND peer = ? AND job = ?"
        # In two halves, so that no sum leaves SQLite's 64 bits.
        sums = ", ".join(f"coalesce(sum({half}), 0)" for half in (*HALVES, *HALVES_THAT_STAND))
        upper, lower, upper_stood, lower_stood, count = self._database.execute(
            f"SELECT {sums}, count(*) FROM receipts INDEXED BY receipts_job {which}",  # noqa: S608 (text of ours)
            [client, peer, job],
        ).fetchone()
        self._database.execute(
            f"UPDATE receipts INDEXED BY receipts_job SET counts = 2 {which}",  # noqa: S608
            [client, peer, job],
        )
        stood = (upper_stood << 32) + lower_stood
        return TakenBack(voiding.client, voiding.peer, (upper << 32) + lower, count, stood)

    def _append(self, entry: bytes, *, relayed: bool) -> int:
        number = self._size + len(self._leaves)
        self._leaves.append(leaf_hash(entry))
        self._entries.append((number, entry, int(relayed)))
        return number

    def _who(self, said: Receipt | Voiding) -> list[int]:
        return [self._id(said.client), self._id(said.peer), self._id(said.job)]

    def finish(self) -> None:
        """Write the entries, their hashes and their rows in the index."""
        connection = self._database.conn
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", self._entries)
        connection.executemany("INSERT INTO receipts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._index.values())
        changed = tiles_after(self._size, self._leaves, tile_reader(self._database))
        tiles = [((height << 48) + index, hashes) for (height, index), hashes in changed.items()]
        connection.executemany("INSERT OR REPLACE INTO tiles VALUES (?, ?)", tiles)
        worked = [(*key, flops) for key, flops in self._worked.items()]
        connection.executemany("INSERT OR REPLACE INTO worked VALUES (?, ?, ?)", worked)
        self._size += len(self._leaves)
        self._worked = {}
        self._leaves, self._entries, self._index, self._counted = [], [], {}, {}

    def _id(self, name: str) -> int:
        found = self._ids.get(name)
        if found is None:
            self._database.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", [name])
            row = self._database.execute("SELECT id FROM names WHERE name = ?", [name]).fetchone()
            found = self._ids[name] = int(row[0])
        return found
