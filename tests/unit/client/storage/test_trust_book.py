"""What a client finds of the work of peers, and keeps."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from axonp2p.client.storage.trust_book import TRUST_FILE, KnownKey, TrustBook, known_of
from axonp2p.disk_errors import not_writable
from axonp2p.errors import SettingsError
from axonp2p.verification.rates import Trust

OTTER, LYNX = "o" * 51 + "a", "l" * 51 + "a"


@pytest.fixture
def book(tmp_path: Path) -> TrustBook:
    return TrustBook(tmp_path / TRUST_FILE)


def test_nobody_is_known_at_first(book: TrustBook) -> None:
    assert book.all() == {}
    nobody = known_of(OTTER, book.all())
    assert nobody == KnownKey(OTTER)
    assert nobody.trust == Trust()
    assert nobody.in_words == "new"


def test_checks_that_are_passed_add_up_until_one_is_not(book: TrustBook) -> None:
    for _ in range(3):
        book.passed(OTTER)
    known = book.all()[OTTER]
    assert (known.trust, known.in_words) == (Trust(passed=3), "3 of 10")
    book.doubted(OTTER)
    book.passed(OTTER)
    assert book.all()[OTTER] == KnownKey(OTTER, passed=1, checks=5)
    for _ in range(9):
        book.passed(OTTER)
    assert book.all()[OTTER].in_words == "10 passed"


def test_who_is_convicted_stays_it_over_restarts_until_it_is_pardoned(book: TrustBook, tmp_path: Path) -> None:
    book.passed(OTTER)
    book.passed(LYNX)
    book.convict(OTTER, "digits-1", "its steps 1 to 8 of round 2", 1000.0)
    again = TrustBook(tmp_path / TRUST_FILE)
    assert again.convicted() == {OTTER}
    assert again.all()[OTTER] == KnownKey(OTTER, 0, 2, 1000.0, "digits-1", "its steps 1 to 8 of round 2")
    assert again.all()[OTTER].in_words == "convicted"
    assert again.pardon(OTTER)
    assert not again.pardon(OTTER)
    assert again.convicted() == frozenset()
    assert again.all()[LYNX].passed == 1


def test_a_file_that_is_no_book_is_named(tmp_path: Path) -> None:
    (tmp_path / TRUST_FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(SettingsError, match=TRUST_FILE):
        TrustBook(tmp_path / TRUST_FILE).all()


@pytest.mark.parametrize("pages", [1, 3])
def test_a_full_disk_costs_no_conviction(tmp_path: Path, pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite itself says so here, at its own limit of pages."""
    book = TrustBook(tmp_path / TRUST_FILE)
    book.convict(OTTER, "line-1", "it lied", 1.0)
    connect = sqlite3.connect

    def small(*args: Any, **named: Any) -> sqlite3.Connection:
        database = connect(*args, **named)
        database.execute(f"PRAGMA max_page_count={pages}")
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(SettingsError, match="database or disk is full") as caught:
        book.add_conviction(bytes(100_000))
    assert "free some space" in caught.value.fix
    assert "trust begins again" not in caught.value.fix
    assert book.convicted() == {OTTER}


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_damaged_file_is_to_be_moved_away(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TRUST_FILE).write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        TrustBook(tmp_path / TRUST_FILE).all()
    assert "move trust.db away" in caught.value.fix


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (["UPDATE keys SET passed = 'many'"], "a row is damaged"),
        (["UPDATE keys SET peer = CAST(x'6fff6f' AS TEXT)"], "UTF-8"),
        (
            [
                "PRAGMA writable_schema = 1",
                "UPDATE sqlite_master SET sql = CAST(x'43d4d4d4' AS TEXT), name = CAST(x'd4d4' AS TEXT)",
            ],
            None,
        ),
        (["ALTER TABLE keys RENAME COLUMN passed TO pAssed_"], None),
    ],
    ids=["a row of another kind", "a text that is none", "a schema whose words are no text", "tables that are others"],
)
def test_damage_in_the_tables_is_damage_and_no_full_disk(
    book: TrustBook, tmp_path: Path, changes: list[str], match: str | None
) -> None:
    book.passed(OTTER)
    with sqlite3.connect(tmp_path / TRUST_FILE) as database:
        for change in changes:
            database.execute(change)
    for read in (book.convicted, book.all):
        with pytest.raises(SettingsError, match=match) as caught:
            read()
        assert "move trust.db away" in caught.value.fix


@pytest.mark.parametrize(
    ("number", "word"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk is full"), (errno.EROFS, "let this user write to")],
)
def test_what_to_do_about_a_disk_depends_on_what_it_says(number: int, word: str) -> None:
    error = not_writable(Path("/home/ada/jobs/x/job.json"), OSError(number, "no"))
    assert word in error.fix
    assert "/home/ada/jobs/x" in error.fix
