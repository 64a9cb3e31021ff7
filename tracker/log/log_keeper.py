"""This tracker's own log, told and signed: heads, proofs, entries."""

from __future__ import annotations

import sqlite3
from functools import cache

import sqlite_utils

from axonp2p.clock import Clock
from axonp2p.errors import Busy, LogDamaged, NotFound, Refused, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.entry import VOIDED_BEGINS
from axonp2p.ledger.log_messages import (
    MOST_ENTRIES,
    EntriesTold,
    HistoryAsked,
    Included,
    InclusionAsked,
    InclusionTold,
    KeyHistoryTold,
    LeavesTold,
    ProofAsked,
)
from axonp2p.ledger.merkle import Node, consistency_path, inclusion_path, root
from axonp2p.ledger.receipt import receipt_batch_of
from axonp2p.ledger.tree_head import ConsistencyProof, TreeHead, open_head
from axonp2p.logs import get_logger
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed, sign
from tracker.ledger.foreign_tokens import token_of
from tracker.storage.database import STORAGE_FIX, Database
from tracker.storage.last_head import FILE, LastHead
from tracker.storage.log_check import check_newest_head, is_lacking
from tracker.storage.log_store import (
    VOIDING,
    good_entry,
    leaves,
    log_size,
    nodes,
    number_of,
    places,
    receipts_until_voiding,
)

log = get_logger(__name__)

HEAD_LASTS_S = 1.0
"""A head is shown for so long, also when there are entries after it: a busy log signs no more often."""
SIGNED_AGAIN_S = 60.0
"""Of a log that does not grow."""


class LogKeeper:
    """Answers about the log of `database`, whose entries the ledger keeper adds."""

    def __init__(self, key: PrivateKey, database: Database, clock: Clock) -> None:
        self._key = key
        self._database = database
        self._clock = clock
        self._log = ""
        self._head: tuple[float, Signed[TreeHead]] | None = None
        self._last = LastHead(database.folder, key.peer_id)
        self._noted = -1
        """Entries in the head that `last-head` has; the writer's thread keeps it."""

    def load(self, log: str) -> TreeHead | None:
        """Look at the log of this name; blocks. Returns the last head when the log has lost entries since.

        Raises `LogDamaged` when it is another log than the one that was signed last.
        """
        self._database.load(lambda database: check_newest_head(database, self._key.peer_id, log))
        last = self._last.read()
        if last is None or not self._database.load(lambda database: is_lacking(database, last, log)):
            return None
        return last

    def begin(self, log: str) -> None:
        """From now on nothing is acknowledged that `last-head` does not tell of; blocks, before anything is served.

        Raises `SettingsError` when the file cannot be written.
        """
        self._log = log
        try:
            if (last := self._last.read()) is not None and last.log != log:
                self._last.put_aside()
            self._database.load(self._note)
        except OSError as error:
            raise SettingsError(f"cannot write {FILE}: {error.strerror}", fix=STORAGE_FIX) from error
        self._database.before_told = self._note_or_tell

    async def head(self) -> Signed[TreeHead]:
        """The log as it is now, or was a second ago. Its entries are on the disk, and so is the head itself."""
        now = self._clock.monotonic()
        if self._head is None or not 0 <= now - self._head[0] < HEAD_LASTS_S:
            time = int(self._clock.now())
            signed = await self._database.write(lambda database: self._sign(database, time))
            if open_head(signed).size > self._noted:
                raise Busy("this tracker cannot write down the head of its log", fix="ask another tracker")
            self._head = (now, signed)
        return self._head[1]

    async def consistency(self, asked: ProofAsked) -> Signed[ConsistencyProof]:
        """That the log of one size continues that of another. Raises `Refused` for sizes that it never had."""

        def prove(database: sqlite_utils.Database) -> list[bytes]:
            size = log_size(database)
            if not asked.first <= asked.second <= size:
                raise Refused(f"this log has {size} entries: there is no way from {asked.first} to {asked.second}")
            return consistency_path(asked.first, asked.second, nodes(database))

        path = await self._database.read(prove)
        tracker, log = self._key.peer_id, self._log
        proof = ConsistencyProof(tracker=tracker, log=log, first=asked.first, second=asked.second, path=path)
        return sign(self._key, proof)

    async def inclusion(self, asked: InclusionAsked) -> InclusionTold:
        """Where the entry with this hash stands. Raises `NotFound`."""
        signed = await self.head()
        size = open_head(signed).size

        def prove(database: sqlite_utils.Database) -> Included:
            number = number_of(database, asked.place, asked.leaf)
            if number is None or number >= size:
                raise NotFound("there is no such entry in this log", fix="if it was handed in just now, ask again")
            return _included(database, nodes(database), number, size, prove=True)

        return InclusionTold(head=signed, included=await self._database.read(prove))

    async def leaves(self, first: int, count: int) -> LeavesTold:
        """The hashes of entries."""
        hashes, keys = await self._database.read(
            lambda database: (leaves(database, first, count), places(database, first, count))
        )
        both = min(len(hashes), len(keys))  # an entry may have come in between
        return LeavesTold(leaves=b"".join(hashes[:both]), places=keys[:both])

    async def entries(self, numbers: list[int]) -> EntriesTold:
        """Entries, the first that fit. Raises `NotFound` for one that is not there."""

        def read(database: sqlite_utils.Database) -> EntriesTold:
            if max(numbers) >= log_size(database):
                raise NotFound(f"there is no entry {max(numbers)}")
            first = good_entry(database, numbers[0], nodes(database))
            if first.startswith(VOIDED_BEGINS):
                return EntriesTold(entries=[first], tokens=[])  # what it stands on comes with its evidence
            receipts = receipts_until_voiding(database, numbers)
            batch = receipt_batch_of((one.doubly, token_of(database, one.receipt)) for one in receipts)
            return EntriesTold(entries=[encode(doubly) for doubly in batch.receipts], tokens=batch.tokens)

        return await self._database.read(read)

    async def history(self, asked: HistoryAsked) -> KeyHistoryTold:
        """The entries about a key. Raises `Refused` for a size of which there is no head."""
        newest = await self.head()

        def read(database: sqlite_utils.Database) -> KeyHistoryTold:
            signed = newest if not asked.size else _head_of(database, asked.size, self._key.peer_id)
            if signed is None:
                raise Refused(f"this tracker signed no head of {asked.size} entries")
            size = open_head(signed).size
            numbers = _numbers_about(database, asked.key, min(asked.before or size, size), asked.only_voidings)
            node = cache(nodes(database))  # one for all: their paths share most hashes
            entries = [_included(database, node, number, size, prove=asked.prove) for number in numbers]
            return KeyHistoryTold(head=signed, entries=entries)

        return await self._database.read(read)

    def _note(self, database: sqlite_utils.Database) -> None:
        size = log_size(database)
        if size == self._noted:
            return
        head = TreeHead(
            tracker=self._key.peer_id,
            log=self._log,
            size=size,
            root=root(size, nodes(database)),
            time=int(self._clock.now()),
        )
        self._last.write(sign(self._key, head))
        self._noted = size

    def _note_or_tell(self, database: sqlite_utils.Database) -> None:
        try:
            self._note(database)
        except (OSError, sqlite3.Error, LogDamaged) as error:
            # A stored entry is stored, and has to be told; but no head is shown before this file has it.
            log.error("the last head was not written down", file=FILE, reason=str(error))

    def _sign(self, database: sqlite_utils.Database, time: int) -> Signed[TreeHead]:
        size, tracker = log_size(database), self._key.peer_id
        found = database.execute("SELECT size, time, payload, signature FROM heads ORDER BY size DESC LIMIT 1")
        for last_size, last_time, payload, signature in found.fetchall():
            if last_size > size:
                raise LogDamaged(f"the log lost entries: it had {last_size} when a head was signed, now {size}")
            if last_size == size and time - last_time < SIGNED_AGAIN_S:
                return Signed(signer=tracker, payload=payload, signature=signature)
            time = max(time, last_time)  # however the clock is set back: see `tree_head`
        head = TreeHead(tracker=tracker, log=self._log, size=size, root=root(size, nodes(database)), time=time)
        signed = sign(self._key, head)
        database.execute(
            "INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?)", [size, time, signed.payload, signed.signature]
        )
        return signed


def _head_of(database: sqlite_utils.Database, size: int, tracker: str) -> Signed[TreeHead] | None:
    found = database.execute("SELECT payload, signature FROM heads WHERE size = ?", [size]).fetchone()
    return Signed(signer=tracker, payload=found[0], signature=found[1]) if found else None


def _included(database: sqlite_utils.Database, node: Node, number: int, size: int, *, prove: bool) -> Included:
    entry = good_entry(database, number, node)
    return Included(number=number, entry=entry, path=inclusion_path(number, size, node) if prove else [])


def _numbers_about(database: sqlite_utils.Database, key: str, before: int, only_voidings: bool) -> list[int]:
    # Of the few that make receipts void there is an index; by client or peer there may be millions of receipts.
    index, which = ("INDEXED BY receipts_voiding", f"AND counts = {VOIDING} ") if only_voidings else ("", "")
    halves = (
        f"SELECT entry FROM (SELECT entry FROM receipts {index} WHERE {side} = (SELECT id FROM names WHERE name = :key)"  # noqa: S608
        f" AND entry < :before {which}ORDER BY entry DESC LIMIT :most)"
        for side in ("client", "peer")
    )
    found = database.execute(
        f"{' UNION '.join(halves)} ORDER BY entry DESC LIMIT :most",
        {"key": key, "before": before, "most": MOST_ENTRIES},
    )
    return [number for (number,) in found.fetchall()]
