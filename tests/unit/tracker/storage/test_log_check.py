"""Every way to tamper with the log in the database file is told, with the entry's number."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from axonp2p.errors import PeerMisbehaved
from axonp2p.ledger.entry import decode_entry, read_entry
from axonp2p.ledger.receipt import Receipt
from axonp2p.ledger.voiding import Voiding, spoiled_by
from axonp2p.wire.codec import encode
from tests.fakes import key_of, make_receipt, sign_both
from tests.unit.tracker.logs import ADA, CLIENT, make_log, rewrite, tamper
from tracker.storage.log_check import Problem, check_log

pytestmark = pytest.mark.slow

TRACKER = key_of("tracker")
LOG = "a" * 32
SIZE = 70
WORD = 21
"""Which entry makes the one before it void."""
usual = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "tracker.db"
    make_log(path, TRACKER, SIZE - 1, void=WORD - 1)
    return path


@contextmanager
def copied(good: Path) -> Iterator[Path]:
    """A folder with a copy of the file, to be tampered with."""
    folder = good.parent / "copy"
    folder.mkdir()
    try:
        shutil.copy(good, folder / "tracker.db")
        yield folder
    finally:
        shutil.rmtree(folder)


def problems(home: Path) -> list[Problem]:
    connection = sqlite3.connect(home / "tracker.db")
    try:
        return list(check_log(sqlite_utils.Database(connection, execute_plugins=False), TRACKER.peer_id, LOG))
    finally:
        connection.close()


def named(home: Path) -> set[int | None]:
    return {problem.entry for problem in problems(home)}


def entries(home: Path) -> list[bytes]:
    connection = sqlite3.connect(home / "tracker.db")
    try:
        return [entry for (entry,) in connection.execute("SELECT entry FROM entries ORDER BY number")]
    finally:
        connection.close()


def test_a_log_that_nobody_touched_is_good(good: Path):
    assert problems(good.parent) == []


def said_in(entry: bytes) -> Receipt | Voiding | None:
    """None for what cannot be read."""
    with suppress(PeerMisbehaved):
        return read_entry(decode_entry(entry))
    return None


def wrong_after(stored: list[bytes], number: int, changed: bytes) -> set[int]:
    """What is to be named: the entry, and the receipts that its word made void and does not now, or the other way."""
    words = [said_in(stored[number]), said_in(changed)]
    before, after = ({said.spoils} if isinstance(said, Voiding) else set() for said in words)
    receipts = [(at, said) for at, said in enumerate(map(said_in, stored)) if isinstance(said, Receipt)]
    return {number} | {at for at, receipt in receipts if spoiled_by(receipt) in before ^ after}


@usual
@example(number=WORD, at=0, bit=0)
@given(number=st.integers(0, SIZE - 1), at=st.integers(0, 2**16), bit=st.integers(0, 7))
def test_a_flipped_bit_anywhere_in_an_entry(good: Path, number: int, at: int, bit: int):
    with copied(good) as home:
        stored = entries(home)
        entry = bytearray(stored[number])
        entry[at % len(entry)] ^= 1 << bit
        tamper(home, ("UPDATE entries SET entry = ? WHERE number = ?", [bytes(entry), number]))
        assert named(home) == wrong_after(stored, number, bytes(entry))


@usual
@example(number=WORD, at=0, bit=0)
@given(number=st.integers(0, SIZE - 1), at=st.integers(0, 2**16), bit=st.integers(0, 7))
def test_a_flipped_bit_in_the_file_itself(good: Path, number: int, at: int, bit: int):
    with copied(good) as home:
        stored, file = entries(home), home / "tracker.db"
        entry, content = stored[number], bytearray(file.read_bytes())
        place = content.index(entry)
        content[place + at % len(entry)] ^= 1 << bit
        file.write_bytes(content)
        assert named(home) == wrong_after(stored, number, bytes(content[place : place + len(entry)]))


@usual
@given(number=st.integers(0, SIZE - 1).filter(lambda number: number != WORD))
def test_a_dropped_entry(good: Path, number: int):
    with copied(good) as home:
        tamper(home, ("DELETE FROM entries WHERE number = ?", [number]))
        assert number in named(home)
        tamper(home, ("DELETE FROM receipts WHERE entry = ?", [number]))
        assert named(home) == {number}


def test_a_dropped_word_and_the_receipt_that_nothing_makes_void_any_more(good: Path):
    with copied(good) as home:
        tamper(home, ("DELETE FROM entries WHERE number = ?", [WORD]))
        assert named(home) == {WORD - 1, WORD}


@usual
@given(number=st.integers(0, SIZE - 2).filter(lambda number: number != WORD))
def test_an_entry_that_was_dropped_and_the_others_moved_up(good: Path, number: int):
    with copied(good) as home:
        tamper(
            home,
            ("DELETE FROM entries WHERE number = ?", [number]),
            ("UPDATE entries SET number = -number - 1 WHERE number > ?", [number]),
            ("UPDATE entries SET number = -number - 2 WHERE number < 0", []),
        )
        assert min(entry for entry in named(home) if entry is not None) == number


@usual
@given(pair=st.lists(st.integers(0, SIZE - 1), min_size=2, max_size=2, unique=True))
def test_two_entries_that_changed_places(good: Path, pair: list[int]):
    one, other = pair
    with copied(good) as home:
        stored = entries(home)
        change = "UPDATE entries SET entry = ? WHERE number = ?"
        tamper(home, (change, [stored[one], other]), (change, [stored[other], one]))
        assert named(home) == {one, other}


def test_an_added_entry(good: Path):
    with copied(good) as home:
        true = encode(sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, "f" * 36)))
        tamper(home, ("INSERT INTO entries VALUES (?, ?, 0)", [SIZE, true]))
        assert named(home) == {SIZE}


@pytest.mark.parametrize(
    "change",
    [
        "flops = flops + 1",
        "counts = 0",
        "counts = 2",
        "client = peer",
        "place = 1",
        "whole = 1",
        "leaf = 1",
        "job = client",
    ],
)
def test_sums_that_were_changed_beside_the_entries(good: Path, change: str):
    with copied(good) as home:
        tamper(home, (f"UPDATE receipts SET {change} WHERE entry = 67", []))
        assert named(home) == {67}


def test_a_void_receipt_that_is_made_to_count_again(good: Path):
    with copied(good) as home:
        tamper(home, ("UPDATE receipts SET counts = 1 WHERE entry = 20", []))
        assert named(home) == {20}
    with copied(good) as home:
        tamper(home, ("UPDATE receipts SET counts = 1 WHERE counts IN (2, -1)", []))
        assert 21 in named(home)


@usual
@given(data=st.data())
def test_a_flipped_byte_anywhere_in_evidence(good: Path, data: st.DataObject):
    with copied(good) as home:
        (stored,) = sqlite3.connect(home / "tracker.db").execute("SELECT evidence FROM evidence").fetchone()
        evidence = bytearray(stored)
        evidence[data.draw(st.integers(0, len(evidence) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        tamper(home, ("UPDATE evidence SET evidence = ?", [bytes(evidence)]))
        assert named(home) == {21}
        tamper(home, ("DELETE FROM evidence", []))
        assert named(home) == {21}


def test_an_invented_row_in_the_index(good: Path):
    with copied(good) as home:
        tamper(
            home,
            (
                "INSERT INTO receipts"
                " SELECT 999, place, whole, leaf, client, peer, job, flops, 1, 0 FROM receipts LIMIT 1",
                [],
            ),
        )
        assert 999 in named(home)


def test_a_changed_hash(good: Path):
    with copied(good) as home:
        tamper(home, ("UPDATE tiles SET hashes = zeroblob(2048) WHERE place = 1", []))
        assert set(range(64, SIZE)) <= named(home)
    with copied(good) as home:
        tamper(home, ("UPDATE tiles SET hashes = zeroblob(64) WHERE place = 1 << 48", []))
        assert "height 1 over the entries from 0 on" in problems(home)[0].text


@usual
@given(pair=st.lists(st.integers(0, SIZE - 1), min_size=2, max_size=2, unique=True))
def test_hashes_made_anew_do_not_lead_to_the_signed_head(good: Path, pair: list[int]):
    one, other = pair

    def swap(stored: list[bytes]) -> list[bytes]:
        stored[one], stored[other] = stored[other], stored[one]
        return stored

    with copied(good) as home:
        (head,) = sqlite3.connect(home / "tracker.db").execute("SELECT * FROM heads").fetchall()
        rewrite(home, swap)
        tamper(home, ("INSERT INTO heads VALUES (?, ?, ?, ?)", list[Any](head)))
        assert f"the first {SIZE} entries are not those whose head was signed" in [one.text for one in problems(home)]


def test_a_head_that_this_tracker_did_not_sign(good: Path):
    with copied(good) as home:
        tamper(home, ("UPDATE heads SET signature = zeroblob(64)", []))
        assert "not signed by this tracker" in problems(home)[0].text


def test_entries_that_were_cut_off_with_their_hashes(good: Path):
    with copied(good) as home:
        rewrite(home, lambda stored: stored)
        make = sqlite3.connect(good.parent / "tracker.db")
        head = make.execute("SELECT * FROM heads").fetchone()
        rewrite(home, lambda stored: stored[:-2])
        tamper(home, ("INSERT INTO heads VALUES (?, ?, ?, ?)", list[Any](head)))
        assert {SIZE - 2, SIZE - 1} <= named(home)
