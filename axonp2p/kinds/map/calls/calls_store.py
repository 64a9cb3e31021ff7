"""calls.sqlite and call-blobs/: the calls of a program, stored with the job, so that it can be resumed without it.

A call is on the disk before any peer gets it: a result belongs to an item by its number, and a number whose call was
forgotten would be given to another one. Everything here blocks.
"""

from __future__ import annotations

import hashlib
import threading
from array import array
from collections.abc import Sequence
from pathlib import Path

import msgspec

from axonp2p.files import replacing
from axonp2p.kinds.map.call_forms import NewCall, PackedPart, size_of
from axonp2p.kinds.map.job_database import JobDatabase

FILE, BLOBS = "calls.sqlite", "call-blobs"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS functions (name TEXT PRIMARY KEY, part BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS calls (item INTEGER PRIMARY KEY, function TEXT NOT NULL, part BLOB NOT NULL) STRICT;
"""
_PART = msgspec.msgpack.Decoder(PackedPart)


class CallsStore:
    """Of one job. Any thread may use it. Raises `SettingsError` of the disk."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the job's."""
        self.path = folder / FILE
        self.blobs = folder / BLOBS
        self._adding = threading.Lock()
        self._lock = threading.Lock()
        """Of the database. Blobs are written without it: the disk takes long, and peers wait for calls to be read."""
        self._database = JobDatabase(self.path, _SCHEMA)
        with self._database.telling():
            self.blobs.mkdir(exist_ok=True)
            self._database.connection()

    def add(self, first: int, calls: Sequence[NewCall]) -> None:
        """Calls of the items from `first` on; on the disk when this returns."""
        with self._database.telling(), self._adding:
            for name, data in {name: data for call in calls for name, data in call.blobs.items()}.items():
                if not (place := self.blobs / name).exists():
                    with replacing(place, lasting=True) as file:
                        file.write(data)
            functions = {}
            rows = []
            for item, call in enumerate(calls, first):
                packed = msgspec.msgpack.encode(call.function)
                functions[name := hashlib.sha256(packed).hexdigest()] = packed
                rows.append((item, name, msgspec.msgpack.encode(call.arguments)))
            with self._lock, self._database.opened() as database, database:
                database.executemany("INSERT OR IGNORE INTO functions VALUES (?, ?)", functions.items())
                database.executemany("INSERT INTO calls VALUES (?, ?, ?)", rows)

    def count(self) -> int:
        """How many calls there are."""
        with self._lock, self._database.opened() as database:
            found: int = database.execute("SELECT count(*) FROM calls").fetchone()[0]
            return found

    def read(self, items: Sequence[int]) -> list[tuple[str, PackedPart]]:
        """The name of the function and the arguments of each."""
        marks = ",".join("?" * len(items))
        with self._lock, self._database.opened() as database:
            found = database.execute(f"SELECT item, function, part FROM calls WHERE item IN ({marks})", items)  # noqa: S608
            calls = {item: (function, _PART.decode(part)) for item, function, part in found}
            return [calls[item] for item in items]

    def function(self, name: str) -> PackedPart:
        """A function by its name."""
        with self._lock, self._database.opened() as database:
            row = database.execute("SELECT part FROM functions WHERE name = ?", (name,)).fetchone()
            return _PART.decode(row[0])

    def sizes(self) -> array[int]:
        """Of all calls, what each takes of a chunk's message, at most."""
        with self._lock, self._database.opened() as database:
            found = database.execute(
                "SELECT calls.part, functions.part FROM calls JOIN functions ON function = name ORDER BY item"
            )
            return array("I", (sum(size_of(_PART.decode(part)) for part in row) for row in found))

    def blob(self, name: str) -> Path:
        """The file of a blob."""
        return self.blobs / name

    def close(self) -> None:
        """Harmless when it is closed; it is opened again when it is used."""
        with self._lock:
            self._database.close()
