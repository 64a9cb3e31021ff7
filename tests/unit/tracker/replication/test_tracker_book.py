"""Which trackers are known, tried, told of and forgotten."""

from __future__ import annotations

import random

from axonp2p.identity.certificate_bytes import fingerprint_text
from axonp2p.table.records import MOST_TRACKERS, TrackerRow
from axonp2p.table.tracker_standing import LEAST_AGE_S, MOST_LEARNT, TrackerStanding
from axonp2p.table.vouching import sign_vouching
from axonp2p.wire.envelope import Signed, open_signed
from tests.fakes import NOW, key_of
from tracker.replication.own_tracker_row import OwnTrackerRow
from tracker.replication.tracker_book import (
    FORGOTTEN_AFTER_S,
    INTRODUCED_EVERY_S,
    LONGEST_RETRY_S,
    MOST_HEARSAY,
    NEVER_ANSWERED_TRIES,
    TrackerBook,
)

OWN = key_of("own")


def address(number: int) -> str:
    return f"https://10.{number}.0.1:7070#{fingerprint_text(bytes([number]) * 32)}"


def row_at(
    where: str, name: str = "", database: str = "0" * 32, now: float = NOW
) -> tuple[TrackerRow, Signed[TrackerRow]]:
    signed = OwnTrackerRow(key_of(name or where[:20]), where, database).at(now)
    return open_signed(signed, TrackerRow), signed


def book_of(*configured: int) -> TrackerBook:
    return TrackerBook(OWN.peer_id, address(0), [address(number) for number in configured], random.Random(1))


def meet(book: TrackerBook, number: int, now: float = NOW, name: str = "") -> bool:
    """The tracker at an address answers and says who it is."""
    book.answered(address(number), now)
    row, signed = row_at(address(number), name, now=now)
    return book.introduced(address(number), row, signed, now)


def test_those_of_the_settings_are_tried_at_once_and_told_of_once_they_answered():
    book = book_of(1)
    assert [known.address for known in book.to_introduce(NOW)] == [address(1)]
    assert book.rows(NOW) == []
    assert meet(book, 1)
    assert [signed.signer for signed in book.rows(NOW)] == [key_of(address(1)[:20]).peer_id]
    assert book.to_introduce(NOW + 1) == []
    assert len(book.to_introduce(NOW + INTRODUCED_EVERY_S)) == 1


def test_one_that_is_away_is_tried_again_within_seconds_however_long_it_was_away():
    book = book_of(1)
    meet(book, 1)
    for _ in range(30):
        book.failed(address(1), NOW + 10)
    assert book.to_introduce(NOW + 10) == []
    assert len(book.to_introduce(NOW + 10 + LONGEST_RETRY_S)) == 1
    assert book.rows(NOW + 20) == []
    assert book.answered(address(1), NOW + 30)


def test_a_call_of_one_that_was_away_is_answered_with_a_call():
    book = book_of(1)
    meet(book, 1)
    book.failed(address(1), NOW)
    known = book.find(address(1))
    assert known is not None
    book.seen_alive(known.tracker)
    assert book.to_introduce(NOW) == [known]


def test_hearsay_is_bounded_and_soon_forgotten():
    book = book_of()
    heard = [book.hear_of(address(number), NOW) for number in range(1, 20)]
    assert sum(heard) == MOST_HEARSAY
    assert book.rows(NOW) == []
    for _ in range(NEVER_ANSWERED_TRIES):
        book.failed(address(1), NOW)
    assert book.find(address(1)) is None
    assert book.hear_of(address(19), NOW)


def test_hearsay_of_one_network_has_two_tries_at_a_time():
    book = book_of()
    near = [f"https://10.1.0.{number}:7070#{fingerprint_text(bytes([number]) * 32)}" for number in range(1, 4)]
    assert [book.hear_of(where, NOW) for where in near] == [True, True, False]
    assert book.hear_of(address(2), NOW)


def test_made_up_addresses_keep_nobody_from_being_tried():
    book = book_of()
    for number in range(1, 1 + MOST_HEARSAY):
        assert book.hear_of(address(number), NOW)
    assert not book.hear_of(address(30), NOW)
    book.failed(address(2), NOW + 1)
    assert book.hear_of(address(30), NOW + 1)
    assert [known.address for known in book] == [address(1), address(3), address(4), address(30)]


def test_learnt_ones_have_half_of_the_book():
    book = book_of()
    for number in range(1, 40):
        if book.hear_of(address(number), NOW):
            meet(book, number)
    assert len(list(book)) == MOST_LEARNT == MOST_TRACKERS // 2


def test_what_a_file_remembers_has_no_more_room_than_that():
    book = book_of(1)
    book.remember({address(number): key_of(str(number)).peer_id for number in range(1, 30)}, [], NOW)
    assert len(list(book)) == 1 + MOST_LEARNT


def test_those_that_are_trusted_are_told_of_first_and_are_called_alone_where_trust_is_needed():
    book = book_of(20)
    for number in (1, 2):
        book.hear_of(address(number), NOW)
        meet(book, number)
    meet(book, 20, name="operator")
    friend = key_of("friend").peer_id
    book.hear_vouching(address(20), sign_vouching(key_of("operator"), {friend: address(3)}, NOW), NOW)
    meet(book, 3, name="friend")
    assert [signed.signer for signed in book.rows(NOW)][:2] == [key_of("operator").peer_id, friend]
    assert book.trusted() == [address(20), address(3)]
    assert book.is_trusted_source("10.20.0.1")
    assert not book.is_trusted_source("10.1.0.1")


def test_one_network_has_two_places_whoever_introduces_itself():
    book = book_of(1)
    near = [f"https://10.1.0.{number}:7070#{fingerprint_text(bytes([number]) * 32)}" for number in range(2, 20)]
    for where in near:
        if book.hear_of(where, NOW):
            book.answered(where, NOW)
            row, signed = row_at(where, where[8:18].rstrip(":"))
            book.introduced(where, row, signed, NOW)
    assert [known.address for known in book] == [address(1), *near[:2]]


def test_a_newcomer_takes_the_place_of_one_that_did_nothing_and_never_of_one_that_is_trusted():
    book = book_of(20)
    for number in range(1, 1 + MOST_LEARNT):
        book.hear_of(address(number), NOW)
        meet(book, number)
    late = NOW + LEAST_AGE_S
    for known in book:
        known.useful = known.address != address(3)
    book.hear_of(address(30), late)
    meet(book, 30, late)
    assert book.find(address(3)) is None
    assert book.find(address(20)) is not None
    book.hear_of(address(31), late + 1)
    meet(book, 31, late + 1)
    assert book.find(address(31)) is None  # all others are of use, and one has just come


def test_who_is_vouched_for_is_trusted_until_it_is_struck_out():
    book = book_of(1)
    meet(book, 1, name="operator")
    voucher, friend, now = key_of("operator"), key_of("friend"), NOW
    assert not book.is_trusted(friend.peer_id, now)
    book.hear_vouching(address(1), sign_vouching(voucher, {friend.peer_id: address(2)}, now), now)
    assert book.is_trusted(voucher.peer_id, now)
    assert book.is_trusted(friend.peer_id, now)
    known = book.find(address(2))
    assert known is not None
    assert known.standing is TrackerStanding.VOUCHED
    again = book_of(1)
    again.remember(*book.to_remember(), now)
    assert again.is_trusted(friend.peer_id, now)
    assert not book_of().is_trusted(friend.peer_id, now)
    book.hear_vouching(address(1), sign_vouching(voucher, {}, now + 1), now + 1)
    assert not book.is_trusted(friend.peer_id, now + 1)
    assert book.find(address(2)) is None


def test_who_is_only_learnt_or_vouched_for_vouches_for_nobody():
    book = book_of(1)
    meet(book, 1, name="operator")
    book.hear_of(address(3), NOW)
    meet(book, 3, name="stranger")
    friend = key_of("friend")
    book.hear_vouching(address(3), sign_vouching(key_of("stranger"), {friend.peer_id: address(4)}, NOW), NOW)
    book.hear_vouching(address(1), sign_vouching(key_of("operator"), {friend.peer_id: address(2)}, NOW), NOW)
    meet(book, 2, name="friend")
    third = key_of("third")
    book.hear_vouching(address(2), sign_vouching(friend, {third.peer_id: address(5)}, NOW), NOW)
    assert [known.address for known in book] == [address(1), address(3), address(2)]
    assert not book.is_trusted(third.peer_id, NOW)
    assert not book.is_trusted(key_of("stranger").peer_id, NOW)
    # Nor is their list kept: there is room for so many.
    assert [signed.signer for signed in book.to_remember()[1]] == [key_of("operator").peer_id]


def test_whoever_answers_where_a_list_names_another_is_not_the_one_that_is_trusted():
    book = book_of(1)
    meet(book, 1, name="operator")
    friend = key_of("friend").peer_id
    book.hear_vouching(address(1), sign_vouching(key_of("operator"), {friend: address(2)}, NOW), NOW)
    assert not meet(book, 2, name="stranger")
    assert book.trusted_at(key_of("stranger").peer_id) == ""
    assert book.living_one(key_of("stranger").peer_id) is None
    assert [signed.signer for signed in book.rows(NOW)] == [key_of("operator").peer_id]


def test_itself_and_addresses_without_a_pin_are_no_others():
    book = book_of(0, 1)
    assert [known.address for known in book] == [address(1)]
    assert not book.hear_of(address(0), NOW)
    assert not book.hear_of("https://lab.example:7070", NOW)
    row, signed = row_at(address(1), "own")
    book.answered(address(1), NOW)
    assert not book.introduced(address(1), row, signed, NOW)  # our own address, seen from outside
    assert list(book) == []
    assert not book.hear_of(address(1), NOW)


def test_a_tracker_with_two_addresses_is_known_once():
    book = book_of()
    for number in (1, 2):
        book.hear_of(address(number), NOW)
        meet(book, number, name="same")
    assert [known.address for known in book] == [address(1)]


def test_a_tracker_that_moved_is_known_where_it_is_now():
    book = book_of()
    book.hear_of(address(1), NOW)
    meet(book, 1, name="same")
    book.failed(address(1), NOW + 1)
    book.hear_of(address(2), NOW + 2)
    meet(book, 2, NOW + 2, name="same")
    assert [known.address for known in book] == [address(2)]


def test_a_learnt_one_is_forgotten_after_an_hour_and_one_of_the_settings_never():
    book = book_of(1)
    meet(book, 1)
    book.hear_of(address(2), NOW)
    meet(book, 2)
    assert set(book.to_remember()[0]) == {address(1), address(2)}
    for number in (1, 2):
        book.failed(address(number), NOW + FORGOTTEN_AFTER_S + 1)
    assert [known.address for known in book] == [address(1)]


def test_a_lost_database_is_noticed_and_a_new_start_too():
    book = book_of(1)
    assert meet(book, 1)
    assert not meet(book, 1, NOW + 1)
    row, signed = row_at(address(1), database="f" * 32, now=NOW + 2)
    assert book.introduced(address(1), row, signed, NOW + 2)
    book.runs_since(address(1), NOW)
    assert len(book.to_introduce(NOW + 3)) == 1
    meet(book, 1, NOW + 3)
    book.runs_since(address(1), NOW)
    assert book.to_introduce(NOW + 4) == []


def test_what_was_learnt_in_an_earlier_run_is_tried_first():
    book = book_of(1)
    book.remember({address(number): key_of(str(number)).peer_id for number in (0, 1, 2)}, [], NOW)
    assert [known.address for known in book.to_introduce(NOW)] == [address(1), address(2)]


def test_only_trusted_trackers_are_found_by_their_id_where_the_book_has_them():
    book = book_of(1)
    meet(book, 1, name="operator")
    book.hear_of(address(2), NOW)
    meet(book, 2, name="stranger")
    friend = key_of("friend").peer_id
    book.hear_vouching(address(1), sign_vouching(key_of("operator"), {friend: address(3)}, NOW), NOW)
    found = {
        name: book.trusted_at(key_of(name).peer_id) for name in ("operator", "friend", "stranger", "own", "nobody")
    }
    assert found == {"operator": address(1), "friend": address(3), "stranger": "", "own": "", "nobody": ""}
