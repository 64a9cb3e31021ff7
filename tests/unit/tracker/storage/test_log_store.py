"""The index of the log: receipts are found by it at the same cost, however many share a place's key with them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axonp2p.ledger.merkle import leaf_hash
from axonp2p.ledger.receipt import DoublySigned, Receipt, open_doubly_signed
from axonp2p.wire.codec import encode
from tests.fakes import key_of, make_receipt, sign_both
from tests.unit.tracker.logs import ADA, CLIENT, make_log
from tracker.storage import log_check, log_store
from tracker.storage.database import Database
from tracker.storage.index_mending import mend_newest
from tracker.storage.log_store import Appender, number_of

MANY = 40
KEY = 7


@pytest.fixture
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever grinds keys of peers finds receipts by the thousand whose places have one key."""
    monkeypatch.setattr("axonp2p.ledger.entry.place_key", lambda receipt: KEY)


@pytest.fixture
def database(tmp_path: Path, one_key: None) -> Iterator[Database]:
    make_log(tmp_path / "tracker.db", key_of("tracker"), MANY)
    yield (database := Database(tmp_path / "tracker.db"))
    asyncio.run(database.close())


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> Counter[str]:
    """How often this function is called."""
    calls, really = Counter[str](), getattr(module, name)

    def call(*about: Any) -> Any:
        calls[name] += 1
        return really(*about)

    monkeypatch.setattr(module, name, call)
    return calls


def receipt_number(number: int) -> tuple[DoublySigned, Receipt]:
    doubly = sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, f"{number:036}", job=f"job-{number}"))
    return doubly, open_doubly_signed(doubly)


def test_the_receipt_that_counts_is_read_without_those_that_share_its_key(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = counted(monkeypatch, log_store, "entry_bytes")
    for number in (0, MANY // 2, MANY - 1):
        known = database.load(lambda tables, number=number: Appender(tables).counted(receipt_number(number)[1]))
        assert known is not None
        assert known.number == number
    assert read["entry_bytes"] == 3
    assert database.load(lambda tables: Appender(tables).counted(receipt_number(MANY)[1])) is None
    assert read["entry_bytes"] == 3


def test_an_entry_is_found_by_its_hash_without_those_that_share_its_key(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = counted(monkeypatch, log_store, "leaf_at")
    for number in (0, MANY // 2, MANY - 1):
        leaf = leaf_hash(encode(receipt_number(number)[0]))
        assert database.load(lambda tables, leaf=leaf: number_of(tables, KEY, leaf)) == number
    assert read["leaf_at"] == 3
    assert database.load(lambda tables: number_of(tables, KEY, leaf_hash(b"another"))) is None
    assert read["leaf_at"] == 3


def test_a_start_reads_each_of_those_that_share_a_key_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    read = counted(monkeypatch, log_check, "_said_in")
    assert database.load(lambda tables: mend_newest(tables, MANY)) == (0, [])
    assert read["_said_in"] == MANY
