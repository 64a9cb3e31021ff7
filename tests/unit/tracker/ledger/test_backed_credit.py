"""What stands of credit: nothing comes from keys that deal only with each other, and no newcomer's peer loses any."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import key_of
from tracker.ledger.backed_credit import BackedCredit

KEYS = [key_of(name).peer_id for name in ("ada", "ben", "cleo", "dora", "bank")]
ADA, BEN, CLEO, DORA, BANK = KEYS


def test_what_a_vouched_client_gives_stands_and_may_be_handed_on_once():
    books = BackedCredit([BANK])
    books.add(BANK, ADA, 100)
    books.add(ADA, BEN, 60)
    books.add(ADA, CLEO, 60)
    assert [books.earned(key) for key in (ADA, BEN, CLEO)] == [100, 60, 40]


def test_keys_that_deal_only_with_each_other_hand_round_nothing():
    books = BackedCredit([BANK])
    for giver, taker in ((ADA, BEN), (BEN, ADA), (BEN, CLEO), (CLEO, ADA)):
        books.add(giver, taker, 2**62)
    assert [books.earned(key) for key in KEYS] == [0] * 5


def test_a_newcomers_peers_have_theirs_as_soon_as_it_has_standing_itself():
    books = BackedCredit([BANK])
    books.add(ADA, BEN, 70)
    books.add(BEN, CLEO, 50)
    assert books.earned(BEN) == books.earned(CLEO) == 0
    books.add(BANK, ADA, 40)
    assert (books.earned(BEN), books.earned(CLEO)) == (40, 40)
    books.add(BANK, ADA, 40)
    assert (books.earned(BEN), books.earned(CLEO)) == (70, 50)


def test_what_is_taken_back_was_waiting_first():
    books = BackedCredit([BANK])
    books.add(BANK, ADA, 40)
    books.add(ADA, BEN, 70)
    books.take_back(ADA, BEN, 50)
    assert books.earned(BEN) == 20
    books.add(ADA, CLEO, 30)
    assert books.earned(CLEO) == 20
    books.take_back(BANK, ADA, 40)
    assert books.earned(ADA) == 0


def test_one_flop_goes_round_a_ring_once_however_much_waits_in_it():
    books = BackedCredit([BANK])
    books.add(ADA, BEN, 2**60)
    books.add(BEN, ADA, 2**61)
    books.add(BANK, ADA, 1)
    # As if it had gone round until all that waits for ADA's was handed on.
    assert (books.earned(BEN), books.earned(ADA)) == (2**60, 2**60 + 1)
    assert not books._moved


def test_a_ring_costs_the_receipts_of_others_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.ledger.backed_credit.STEPS_AT_ONCE", 10)
    books, ring = BackedCredit([BANK]), [key_of(f"ring {number}").peer_id for number in range(25)]
    for giver, taker in zip(ring, [*ring[1:], ring[0]], strict=True):
        books.add(giver, taker, 2**60)
    books.add(BANK, ring[0], 1)
    for _ in range(3):
        books.add(BANK, CLEO, 1)
    assert not books._moved
    assert books.earned(CLEO) == 3


def test_what_many_receipts_handed_on_is_the_same_when_they_are_added_up_at_once():
    one_by_one, at_once = BackedCredit([BANK]), BackedCredit([BANK])
    for client, peer, flops in ((CLEO, DORA, 30), (BEN, CLEO, 50), (ADA, BEN, 70), (BEN, ADA, 90), (BANK, ADA, 40)):
        one_by_one.add(client, peer, flops)
        at_once.gather(client, peer, flops)
    assert [at_once.earned(key) for key in KEYS] == [0] * 5
    at_once.settle_gathered()
    assert [at_once.earned(key) for key in KEYS] == [one_by_one.earned(key) for key in KEYS] == [40, 40, 40, 30, 0]


def test_what_is_owed_after_some_was_taken_back_is_made_good_before_more_is_handed_on():
    books = BackedCredit([BANK])
    books.add(BANK, ADA, 100)
    books.add(ADA, BEN, 100)
    books.add(ADA, CLEO, 50)
    books.take_back(BANK, ADA, 60)
    books.add(BANK, ADA, 70)
    assert (books.earned(ADA), books.earned(BEN), books.earned(CLEO)) == (110, 100, 10)


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(KEYS), st.integers(0, 2**63 - 1)), max_size=40))
def test_nobody_has_more_than_was_brought_in_and_all_of_it_is_somebodys(given_: list[tuple[str, str, int]]):
    books, brought, handed = BackedCredit([BANK]), Counter[str](), Counter[str]()
    for client, peer, flops in given_:
        if client != peer:
            books.add(client, peer, flops)
            handed[client] += flops
            if client == BANK:
                brought[peer] += flops
    # Credit less what was really given by each key: nothing but what the vouched client brought in.
    net = {key: books.earned(key) - min(handed[key], books.earned(key)) for key in KEYS if key != BANK}
    assert sum(net.values()) + books.earned(BANK) == sum(brought.values())
    if not brought:
        assert all(books.earned(key) == 0 for key in KEYS if not handed[BANK])
