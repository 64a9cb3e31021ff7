from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from axonp2p.errors import AxonError, BadSignature, Refused, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.receipt import DoublySigned, Receipt, open_doubly_signed
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import encode_signed
from peer_daemon.control.status import DoneNow
from peer_daemon.earnings.receipts_book import ReceiptsBook
from peer_daemon.lending.leases import LentSlot
from tests.fakes import ManualClock

CLIENT, PEER, STRANGER, TRACKER = (PrivateKey(letter * 32) for letter in (b"c", b"p", b"s", b"t"))
ISSUER = TRACKER.peer_id
UUID = "00000000-0000-4000-8000-000000000001"
LEASE = LentSlot(
    UUID, ISSUER, PEER.peer_id, CLIENT.peer_id, "digits", "train", until=10**9, cores=1, memory_mb=256, disk_mb=512,
    token=b"the token",
)  # fmt: skip


def receipt(number: int, **changes) -> Receipt:
    fields = {
        "reservation": UUID,
        "number": number,
        "job": "digits",
        "client": CLIENT.peer_id,
        "peer": PEER.peer_id,
        "round": number - 1,
        "flops": 10**9,
        "samples": 320,
        "milliseconds": 900,
        "issued": 10**9,
    }
    return Receipt(**{**fields, **changes})


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 20, 12).timestamp())


@pytest.fixture
def book(tmp_path, clock):
    book = ReceiptsBook(tmp_path / "receipts.db", PEER, clock)
    yield book
    book.close()


def test_the_next_receipt_is_signed_and_kept(book, tmp_path, clock):
    for number in (1, 2):
        doubly = decode_as(book.sign(encode_signed(CLIENT, receipt(number)), LEASE), DoublySigned, 4096)
        assert open_doubly_signed(doubly).number == number
    again = ReceiptsBook(tmp_path / "receipts.db", PEER, clock)
    assert [one.number for one in again.waiting(ISSUER, ISSUER)] == [1, 2]
    assert again.sign(encode_signed(CLIENT, receipt(3)), LEASE)
    again.close()


def test_the_same_receipt_again_gets_the_same_answer(book):
    envelope = encode_signed(CLIENT, receipt(1))
    assert book.sign(envelope, LEASE) == book.sign(envelope, LEASE)
    assert len(book.waiting(ISSUER, ISSUER)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 2},
        {"job": "other"},
        {"peer": STRANGER.peer_id},
        {"reservation": UUID.replace("1", "2")},
    ],
)
def test_a_receipt_for_something_else_is_refused(book, changes):
    with pytest.raises(Refused):
        book.sign(encode_signed(CLIENT, receipt(**{"number": 1, **changes})), LEASE)
    assert book.waiting(ISSUER, ISSUER) == []
    assert book.sign(encode_signed(CLIENT, receipt(1)), LEASE)


def test_another_content_under_a_used_number_is_refused(book):
    book.sign(encode_signed(CLIENT, receipt(1)), LEASE)
    with pytest.raises(Refused, match="number"):
        book.sign(encode_signed(CLIENT, receipt(1, flops=5)), LEASE)


def test_a_receipt_of_another_client_or_without_its_signature_is_refused(book):
    with pytest.raises(Refused, match="client"):
        book.sign(encode_signed(STRANGER, receipt(1, client=STRANGER.peer_id)), LEASE)
    with pytest.raises(BadSignature):
        book.sign(encode_signed(STRANGER, receipt(1)), LEASE)
    with pytest.raises(AxonError):
        book.sign(encode_signed(CLIENT, receipt(1))[:-1], LEASE)
    assert book.waiting(ISSUER, ISSUER) == []


OTHER = STRANGER.peer_id


def test_what_trackers_say_settles_nothing_and_they_are_not_asked_again(book):
    for number in (1, 2, 3):
        book.sign(encode_signed(CLIENT, receipt(number)), LEASE)
    waiting = book.waiting(ISSUER, ISSUER)
    assert [one.token for one in waiting] == [b"the token"] * 3
    book.heard(waiting[:2], ISSUER, {0: "unknown"})
    assert [one.number for one in book.waiting(ISSUER, ISSUER)] == [3]
    assert [one.number for one in book.waiting(ISSUER, OTHER)] == [1, 2, 3]
    assert [one.number for one in book.unproved(ISSUER)] == [2]
    assert book.issuers() == [ISSUER]


def test_one_that_nobody_but_the_issuer_has_is_told(book, clock):
    book.sign(encode_signed(CLIENT, receipt(1)), LEASE)
    book.heard(book.waiting(ISSUER, ISSUER), ISSUER, {})
    assert book.lacks_other(ISSUER, clock.now() - 60)
    book.heard(book.waiting(ISSUER, OTHER), OTHER, {})
    assert not book.lacks_other(ISSUER, clock.now() - 60)
    assert book.lacks_other(ISSUER, clock.now() + 60)  # it took it long ago, and has not proved it


def test_a_tracker_is_asked_to_prove_what_its_own_log_had(book):
    for number in (1, 2, 3):
        book.sign(encode_signed(CLIENT, receipt(number)), LEASE)
    first, second, third = book.waiting(ISSUER, ISSUER)
    book.settle([first, third], ISSUER)
    book.settle([second], OTHER)
    found = {one: book.some_confirmed(5, [0.0, 0.5, 0.99], one) for one in (ISSUER, OTHER)}
    assert [one.tracker for one in found[ISSUER]] == [ISSUER] * 2
    assert [one.tracker for one in found[OTHER]] == [OTHER]


def test_what_all_that_count_refuse_is_given_up_and_nothing_else(book):
    for number in (1, 2):
        book.sign(encode_signed(CLIENT, receipt(number)), LEASE)
    book.heard(book.waiting(ISSUER, ISSUER), ISSUER, {0: "no", 1: "no"})
    book.give_up(frozenset())
    book.give_up(frozenset({ISSUER, OTHER}))
    assert book.issuers() == [ISSUER]
    book.heard(book.waiting(ISSUER, OTHER), OTHER, {0: "no"})
    book.give_up(frozenset({ISSUER, OTHER}))
    assert [one.number for one in book.unproved(OTHER)] == [2]


def test_tokens_go_when_nothing_waits_for_them(book, tmp_path):
    for number in (1, 2):
        book.sign(encode_signed(CLIENT, receipt(number)), LEASE)
        book.settle(book.waiting(ISSUER, ISSUER)[:1], OTHER)
        assert book.issuers() == []
        for table in ("tokens", "acknowledged", "refusals"):
            assert book._database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0
    assert {one.tracker for one in book.some_confirmed(2, [0.5], OTHER)} == {OTHER}
    assert len(book.some_confirmed(2, [], ISSUER)) == 2


def test_a_file_that_cannot_be_used_is_no_bug(book):
    book.close()
    with pytest.raises(SettingsError):
        book.waiting(ISSUER, ISSUER)
    with pytest.raises(Refused, match="cannot keep"):
        book.sign(encode_signed(CLIENT, receipt(1)), LEASE)


def flops(book, clock):
    """Credits in 10^9 FLOPs: today's, confirmed, pending."""
    credits = book.earnings.credits(clock.now())
    return tuple(round(one / credits_of(10**9)) for one in (credits.today, credits.confirmed, credits.pending))


def test_what_was_earned_follows_each_answer_and_is_the_same_after_a_restart(book, tmp_path, clock):
    for number in (1, 2, 3, 4):
        book.sign(encode_signed(CLIENT, receipt(number)), LEASE)
        book.sign(encode_signed(CLIENT, receipt(number)), LEASE)
    assert flops(book, clock) == (4, 0, 4)
    waiting = book.waiting(ISSUER, ISSUER)
    book.heard(waiting[:3], OTHER, {2: "its client is banned"})
    assert flops(book, clock) == (4, 0, 4)
    for _ in range(2):  # a proof that is heard twice counts once
        book.settle(waiting[:2], OTHER)
        book.give_up(frozenset({OTHER}))
    assert flops(book, clock) == (3, 2, 1)
    again = ReceiptsBook(tmp_path / "receipts.db", PEER, clock)
    assert flops(again, clock) == flops(book, clock)
    assert again.earnings.done() == DoneNow(jobs=1, rounds=4, samples=4 * 320, flops=4 * 10**9)
    again.close()


def test_what_was_earned_is_told_without_the_disk(book, clock):
    book.sign(encode_signed(CLIENT, receipt(1)), LEASE)
    book.close()
    assert flops(book, clock) == (1, 0, 1)
    clock.time += 86400
    assert flops(book, clock) == (0, 0, 1)


def test_a_full_disk_at_the_start_is_no_reason_to_move_receipts_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself says so here, at its own limit of pages."""
    connect = sqlite3.connect

    def small(*args: Any, **named: Any) -> sqlite3.Connection:
        database = connect(*args, **named)
        database.execute("PRAGMA max_page_count=2")
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(SettingsError, match="database or disk is full") as caught:
        ReceiptsBook(tmp_path / "receipts.db", PEER, ManualClock())
    assert "free some space" in caught.value.fix
    assert "nothing has to be moved away" in caught.value.fix


def test_a_damaged_book_of_receipts_is_named_with_what_is_lost(tmp_path: Path) -> None:
    (tmp_path / "receipts.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(SettingsError) as caught:
        ReceiptsBook(tmp_path / "receipts.db", PEER, ManualClock())
    assert "put a copy of it back" in caught.value.fix
