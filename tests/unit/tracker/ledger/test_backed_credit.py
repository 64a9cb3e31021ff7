"""What stands of credit: nothing comes from keys that deal only with each other, and no newcomer's peer loses any."""

from __future__ import annotations

from collections import Counter

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
    assert sum(net.values()) <= sum(brought.values())
    if not brought:
        assert all(books.earned(key) == 0 for key in KEYS if not handed[BANK])
