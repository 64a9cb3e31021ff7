"""The log in the tracker's SQLite file: entries, the tiles of their Merkle tree, and the index of receipts.

Every function runs in a thread of `Database` and inside its transaction: an entry, its hashes and its row in the index
are committed together or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import LogDamaged
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.merkle import HASH_BYTES, Node, leaf_hash
from axonp2p.ledger.receipt import DOUBLY_SIGNED_LIMIT, DoublySigned, Receipt, place_key
from axonp2p.ledger.tiles import TILE_HASHES, Read, leaf_at, node_reader, tiles_after
from axonp2p.wire.codec import decode_as, encode

TABLES = (
    "CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, entry BLOB NOT NULL, relayed INTEGER NOT NULL)",
    # `place` is the tile's height * 2**48 + its index.
    "CREATE TABLE IF NOT EXISTS tiles (place INTEGER PRIMARY KEY, hashes BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS heads (size INTEGER PRIMARY KEY, time INTEGER, payload BLOB, signature BLOB)",
    # How far the logs of others were compared with this one.
    "CREATE TABLE IF NOT EXISTS follows (tracker TEXT, log TEXT, upto INTEGER, PRIMARY KEY (tracker, log))",
    "CREATE TABLE IF NOT EXISTS names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS receipts (entry INTEGER PRIMARY KEY, place INTEGER NOT NULL,"
    " client INTEGER NOT NULL, peer INTEGER NOT NULL, job INTEGER NOT NULL, flops INTEGER NOT NULL,"
    " counts INTEGER NOT NULL)",
    *(
        f"CREATE INDEX IF NOT EXISTS receipts_{column} ON receipts ({column})"
        for column in ("place", "client", "peer", "job")
    ),
)


@dataclass(frozen=True)
class Stored:
    """An entry of the log."""

    number: int
    doubly: DoublySigned
    receipt: Receipt


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
    found = database.execute("SELECT entry FROM entries WHERE number = ?", [number]).fetchone()
    if found is None:
        raise LogDamaged(f"entry {number} of the log is lacking")
    return bytes(found[0])


def stored(database: sqlite_utils.Database, number: int) -> Stored:
    """An entry, decoded. Its signatures were checked before it was stored."""
    doubly = decode_as(entry_bytes(database, number), DoublySigned, DOUBLY_SIGNED_LIMIT)
    return Stored(number, doubly, decode_as(doubly.receipt.payload, Receipt, Receipt.LIMIT))


def number_of(database: sqlite_utils.Database, place: int, leaf: bytes) -> int | None:
    """Where the entry with this key of its place and this hash stands."""
    found = database.conn.execute("SELECT entry FROM receipts WHERE place = ?", [place]).fetchall()
    return next((number for (number,) in found if leaf_at(number, tile_reader(database)) == leaf), None)


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
        self._counted: dict[_Place, Stored] = {}
        """Of those that wait to be written."""
        self._ids: dict[str, int] = {}

    @property
    def waiting(self) -> int:
        """Entries that `finish` would write."""
        return len(self._entries)

    def counted(self, receipt: Receipt) -> Stored | None:
        """What counts under this receipt's reservation, peer and number."""
        place = _place(receipt)
        if place in self._counted:
            return self._counted[place]
        found = self._database.conn.execute(
            "SELECT entry FROM receipts WHERE place = ? AND counts = 1", [place_key(receipt)]
        ).fetchall()
        candidates = (stored(self._database, number) for (number,) in found)
        return next((one for one in candidates if _place(one.receipt) == place), None)

    def add(
        self, doubly: DoublySigned, receipt: Receipt | None = None, *, relayed: bool, instead_of: int | None = None
    ) -> None:
        """The next entry; with `instead_of` that entry counts no more. `receipt` is what it says, if known."""
        receipt = receipt or decode_as(doubly.receipt.payload, Receipt, Receipt.LIMIT)
        number, entry = self._size + len(self._leaves), encode(doubly)
        self._leaves.append(leaf_hash(entry))
        self._entries.append((number, entry, int(relayed)))
        if instead_of in self._index:
            self._index[instead_of][-1] = 0
        elif instead_of is not None:
            self._database.execute("UPDATE receipts SET counts = 0 WHERE entry = ?", [instead_of])
        who = [self._id(receipt.client), self._id(receipt.peer), self._id(receipt.job)]
        self._index[number] = [number, place_key(receipt), *who, receipt.flops, 1]
        self._counted[_place(receipt)] = Stored(number, doubly, receipt)

    def finish(self) -> None:
        """Write the entries, their hashes and their rows in the index."""
        connection = self._database.conn
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", self._entries)
        connection.executemany("INSERT INTO receipts VALUES (?, ?, ?, ?, ?, ?, ?)", self._index.values())
        changed = tiles_after(self._size, self._leaves, tile_reader(self._database))
        tiles = [((height << 48) + index, hashes) for (height, index), hashes in changed.items()]
        connection.executemany("INSERT OR REPLACE INTO tiles VALUES (?, ?)", tiles)
        self._size += len(self._leaves)
        self._leaves, self._entries, self._index, self._counted = [], [], {}, {}

    def _id(self, name: str) -> int:
        found = self._ids.get(name)
        if found is None:
            self._database.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", [name])
            row = self._database.execute("SELECT id FROM names WHERE name = ?", [name]).fetchone()
            found = self._ids[name] = int(row[0])
        return found
