"""What a client finds of the work of peers, and keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.client.trust_book import TRUST_FILE, Known, TrustBook, known_of
from axonp2p.errors import SettingsError
from axonp2p.training.checking.rates import Trust

OTTER, LYNX = "o" * 52, "l" * 52


@pytest.fixture
def book(tmp_path: Path) -> TrustBook:
    return TrustBook(tmp_path / TRUST_FILE)


def test_nobody_is_known_at_first(book: TrustBook) -> None:
    assert book.all() == {}
    nobody = known_of(OTTER, book.all())
    assert nobody == Known(OTTER)
    assert nobody.trust == Trust()
    assert nobody.in_words == "new"


def test_checks_that_are_passed_add_up_until_one_is_not(book: TrustBook) -> None:
    for _ in range(3):
        book.passed(OTTER)
    known = book.all()[OTTER]
    assert (known.trust, known.in_words) == (Trust(passed=3), "3 of 10")
    book.doubted(OTTER)
    book.passed(OTTER)
    assert book.all()[OTTER] == Known(OTTER, passed=1, checks=5)
    for _ in range(9):
        book.passed(OTTER)
    assert book.all()[OTTER].in_words == "10 passed"


def test_who_is_convicted_stays_it_over_restarts_until_it_is_pardoned(book: TrustBook, tmp_path: Path) -> None:
    book.passed(OTTER)
    book.passed(LYNX)
    book.convict(OTTER, "digits-1", "its steps 1 to 8 of round 2", 1000.0)
    again = TrustBook(tmp_path / TRUST_FILE)
    assert again.convicted() == {OTTER}
    assert again.all()[OTTER] == Known(OTTER, 0, 2, 1000.0, "digits-1", "its steps 1 to 8 of round 2")
    assert again.all()[OTTER].in_words == "convicted"
    assert again.pardon(OTTER)
    assert not again.pardon(OTTER)
    assert again.convicted() == frozenset()
    assert again.all()[LYNX].passed == 1


def test_a_file_that_is_no_book_is_named(tmp_path: Path) -> None:
    (tmp_path / TRUST_FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(SettingsError, match=TRUST_FILE):
        TrustBook(tmp_path / TRUST_FILE).all()
