"""Is the log in a database what was signed? Every entry, every hash, every row of the index, each named by its number.

Nothing is believed but the signatures: what is stored of an entry is computed again from its bytes, these from both
signatures, and the whole from the heads that this tracker signed. Somebody who changes an entry has to change its
hash, the hashes above it, and then needs the tracker's key to sign the head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import AxonError, LogDamaged, PeerMisbehaved
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.entry import VOIDED_BEGINS, decode_entry, open_entry, read_entry
from axonp2p.ledger.merkle import HASH_BYTES, leaf_hash, root
from axonp2p.ledger.receipt import DoublySigned, Receipt, counts_instead
from axonp2p.ledger.tiles import TILE_BYTES, TILE_HASHES, tiles_after
from axonp2p.ledger.tree_head import TreeHead, open_head
from axonp2p.ledger.voiding import EVIDENCE_LIMIT, Spoiled, Voided, Voiding, spoiled_by
from axonp2p.verification.evidence import examine_voiding
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed
from tracker.storage.log_store import (
    COUNTS,
    SUPERSEDED,
    VOID,
    VOIDING,
    index_keys,
    log_size,
    nodes,
    of_its_place,
    tile_reader,
)

AT_ONCE = 4096


@dataclass(frozen=True)
class Problem:
    """Something in the database that is not as it was signed."""

    text: str
    entry: int | None = None
    """Which entry, where it is one."""


def check_newest_head(database: sqlite_utils.Database, tracker: PeerId, log: str) -> None:
    """Raise `LogDamaged` unless the hashes lead to the head that was signed last: O(log n), for every start."""
    found = database.execute("SELECT payload, signature FROM heads ORDER BY size DESC LIMIT 1").fetchone()
    if found is None:
        return
    for problem in _head_problems(database, Signed(signer=tracker, payload=found[0], signature=found[1]), log):
        raise LogDamaged(
            f"the log in tracker.db is not the one that this tracker signed: {problem.text}",
            fix="axon-tracker check    names every entry; then axon-tracker restore FILE",
        )


def is_lacking(database: sqlite_utils.Database, last: TreeHead, log: str) -> bool:
    """Whether the log has lost entries since `last`, the head of the last acknowledgement.

    Raises `LogDamaged` when it has as many, and others.
    """
    if last.log != log or last.size > log_size(database):
        return last.size > 0
    if root(last.size, nodes(database)) != last.root:
        raise LogDamaged(
            f"the log in tracker.db is not the one that this tracker signed: its first {last.size} entries are others",
            fix="axon-tracker check    names every entry; then axon-tracker restore FILE",
        )
    return False


def check_log(database: sqlite_utils.Database, tracker: PeerId, log: str) -> Iterator[Problem]:
    """Everything that is wrong with the log, the entries first, in the order of their numbers."""
    size = log_size(database)
    yield from _check_entries(database, size)
    yield from _check_upper_tiles(database, size)
    yield from check_index(database, 0, size, voided_by_entries(database))
    yield from _check_added(database)
    for payload, signature in database.execute("SELECT payload, signature FROM heads ORDER BY size").fetchall():
        yield from _head_problems(database, Signed(signer=tracker, payload=payload, signature=signature), log)


def _check_entries(database: sqlite_utils.Database, size: int) -> Iterator[Problem]:
    """Each entry beside its own hash, and its signatures; a word that makes receipts void beside its evidence."""
    read, expected = tile_reader(database), 0
    tile, at = b"", -1
    for number, entry in database.execute("SELECT number, CAST(entry AS BLOB) FROM entries ORDER BY number"):
        for lacking in range(expected, min(number, expected + AT_ONCE)):
            yield Problem(f"entry {lacking} is lacking", lacking)
        expected = number + 1
        if number // TILE_HASHES != at:
            at = number // TILE_HASHES
            tile = read(0, at)
        inside = number % TILE_HASHES * HASH_BYTES
        hashed = tile[inside : inside + HASH_BYTES]
        if not hashed:
            yield Problem(f"entry {number} has no hash: it was added by hand", number)
        elif not isinstance(entry, bytes) or hashed != leaf_hash(entry):
            yield Problem(f"entry {number} is not the one that was hashed when it came", number)
        if why := _why_no_entry(database, entry):
            yield Problem(f"entry {number} is no receipt that both signed: {why}", number)
    last = database.execute("SELECT max(place) FROM tiles WHERE place < 1 << 48").fetchone()[0]
    hashed_entries = 0 if last is None else last * TILE_HASHES + len(read(0, last)) // HASH_BYTES
    for lacking in range(size, min(hashed_entries, size + AT_ONCE)):
        yield Problem(f"entry {lacking} is lacking", lacking)


def _why_no_entry(database: sqlite_utils.Database, entry: object) -> str:
    if not isinstance(entry, bytes):
        return "its bytes are gone"
    try:
        decoded = decode_entry(entry)
        open_entry(decoded)
    except PeerMisbehaved as error:
        return error.message
    if encode(decoded) != entry:
        return "it is not spelt as entries are"
    return _why_unfounded(database, decoded) if isinstance(decoded, Voided) else ""


def _check_upper_tiles(database: sqlite_utils.Database, size: int) -> Iterator[Problem]:
    """The hashes above those of the entries, computed again from the tiles below."""
    height, count = 1, size // TILE_HASHES
    while count:
        stored = database.execute(
            "SELECT place, hashes FROM tiles WHERE place >= ? AND place < ? ORDER BY place",
            [height << 48, (height + 1) << 48],
        )
        below = tile_reader(database)
        for index, (place, hashes) in enumerate(stored):
            first = index * TILE_HASHES
            inside = [below(height - 1, child) for child in range(first, min(first + TILE_HASHES, count))]
            right = b"".join(_root_of(tile) for tile in inside)
            if place != (height << 48) + index or hashes != right:
                leaf = first * TILE_HASHES**height
                yield Problem(f"the hashes at height {height} over the entries from {leaf} on were changed", None)
        height, count = height + 1, count // TILE_HASHES


def _root_of(tile: bytes) -> bytes:
    if len(tile) != TILE_BYTES:
        return b""
    parts = [tile[at : at + HASH_BYTES] for at in range(0, TILE_BYTES, HASH_BYTES)]
    return tiles_after(0, parts, lambda height, index: b"")[1, 0]


def check_index(database: sqlite_utils.Database, first: int, end: int, voided: set[Spoiled]) -> Iterator[Problem]:
    """The rows that balances are made of, beside the entries from `first` up to `end` that they stand for."""
    entries = database.execute(
        "SELECT number, CAST(entries.entry AS BLOB), place, whole, leaf, clients.name, peers.name, jobs.name, flops,"
        " counts FROM entries"
        " LEFT JOIN receipts ON receipts.entry = number LEFT JOIN names AS clients ON clients.id = client"
        " LEFT JOIN names AS peers ON peers.id = peer LEFT JOIN names AS jobs ON jobs.id = job"
        " WHERE number >= ? AND number < ? ORDER BY number",
        [first, end],
    )
    for number, entry, *row, counts in entries:
        said = _said_in(entry)
        if said is None:
            continue  # said already
        flops = said.flops if isinstance(said, Receipt) else 0
        if row != [*index_keys(said, leaf_hash(entry)), said.client, said.peer, said.job, flops]:
            yield Problem(f"the index says other things of entry {number} than it does itself", number)
        elif counts != right_count(database, number, entry, said, voided):
            yield Problem(f"the index is wrong about whether entry {number} counts", number)


def _check_added(database: sqlite_utils.Database) -> Iterator[Problem]:
    added = database.execute("SELECT entry FROM receipts WHERE entry NOT IN (SELECT number FROM entries)")
    for (number,) in added.fetchmany(AT_ONCE):
        yield Problem(f"the index has a row for entry {number}, which is not there", number)


def _said_in(entry: object) -> Receipt | Voiding | None:
    try:
        return read_entry(decode_entry(entry)) if isinstance(entry, bytes) else None
    except AxonError:
        return None


def voided_by_entries(database: sqlite_utils.Database) -> set[Spoiled]:
    """The receipts that the entries themselves make void, whatever the index says of them."""
    found = database.execute(
        "SELECT CAST(entry AS BLOB) FROM entries WHERE substr(CAST(entry AS BLOB), 1, ?) = ?",
        [len(VOIDED_BEGINS), VOIDED_BEGINS],
    )
    said = [_said_in(entry) for (entry,) in found.fetchall()]
    return {one.spoils for one in said if isinstance(one, Voiding)}


def right_count(
    database: sqlite_utils.Database, number: int, entry: bytes, said: Receipt | Voiding, voided: set[Spoiled]
) -> int:
    """The value that the index must have in `counts` for this entry."""
    if isinstance(said, Voiding):
        return VOIDING
    if _has_better_twin(database, number, entry, said):
        return SUPERSEDED
    return VOID if spoiled_by(said) in voided else COUNTS


def _has_better_twin(database: sqlite_utils.Database, number: int, entry: bytes, receipt: Receipt) -> bool:
    twins = database.execute(
        "SELECT CAST(entries.entry AS BLOB) FROM receipts INDEXED BY receipts_place"
        " JOIN entries ON number = receipts.entry WHERE place = ? AND whole = ? AND number != ?",
        [*of_its_place(receipt), number],
    )
    for (twin,) in twins.fetchall():
        other = _said_in(twin)
        if not isinstance(other, Receipt):
            continue
        same = (other.reservation, other.peer, other.number) == (receipt.reservation, receipt.peer, receipt.number)
        if same and not counts_instead(_payload(entry), _payload(twin)):
            return True
    return False


def _payload(entry: bytes) -> bytes:
    doubly = decode_entry(entry)
    assert isinstance(doubly, DoublySigned)
    return doubly.receipt.payload


def _head_problems(database: sqlite_utils.Database, signed: Signed[TreeHead], log: str) -> Iterator[Problem]:
    try:
        head = open_head(signed)
    except PeerMisbehaved as error:
        yield Problem(f"a head is not signed by this tracker: {error.message}")
        return
    if head.log != log:
        yield Problem(f"the head of {head.size} entries belongs to another log, {head.log}")
        return
    if head.size > (size := log_size(database)):
        for lacking in range(size, min(head.size, size + AT_ONCE)):
            yield Problem(f"entry {lacking} is lacking: a head of {head.size} entries was signed", lacking)
        return
    try:
        same = root(head.size, nodes(database)) == head.root
    except LogDamaged as error:
        yield Problem(error.message)
        return
    if not same:
        yield Problem(f"the first {head.size} entries are not those whose head was signed")


def evidence_bytes(database: sqlite_utils.Database, sha256: bytes) -> bytes | None:
    """As it was handed in."""
    found = database.execute("SELECT CAST(evidence AS BLOB) FROM evidence WHERE sha256 = ?", [sha256]).fetchone()
    return bytes(found[0]) if found else None


def _why_unfounded(database: sqlite_utils.Database, voided: Voided) -> str:
    """Why the evidence that is stored does not bear out this entry; empty when it does."""
    data = evidence_bytes(database, Voiding.in_entry(voided).evidence)
    if data is None or len(data) > EVIDENCE_LIMIT:
        return "its evidence is gone"
    try:
        examine_voiding(voided.voided, data)
    except AxonError as error:
        return error.message
    return ""
