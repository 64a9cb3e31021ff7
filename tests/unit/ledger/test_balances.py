from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.ledger.balances import BalanceSums, credits_of
from axonp2p.ledger.receipt import BALANCES_LIMIT, MOST_BALANCES, Balance, Balances, Receipt
from axonp2p.reservation.reserving import new_uuid
from axonp2p.wire.codec import decode_as, encode
from tests.fakes import key_of, make_receipt
from tests.laboratory.ledger_world import fold

KEYS = [key_of(name) for name in ("ada", "ben", "cleo", "dora")]
RESERVATION = new_uuid()

receipts = st.lists(
    st.builds(
        lambda pair, flops: make_receipt(*pair, RESERVATION, flops=flops),
        st.permutations(KEYS).map(lambda keys: keys[:2]),
        st.integers(0, 2**63 - 1),
    ),
    max_size=40,
)


def books_of(given_receipts: list[Receipt]) -> BalanceSums:
    books = BalanceSums()
    for receipt in given_receipts:
        books.add(receipt.client, receipt.peer, receipt.flops)
    return books


def test_a_day_at_one_gflops_is_200_credits():
    assert credits_of(86400 * 10**9) == pytest.approx(200)
    assert credits_of(0) == 0
    assert credits_of(10**40) > 0


@given(receipts)
def test_what_is_earned_is_what_is_owed_is_what_the_receipts_say(given_receipts: list[Receipt]):
    balances = fold(given_receipts).values()
    total = sum(receipt.flops for receipt in given_receipts)
    assert sum(balance.earned_flops for balance in balances) == total
    assert sum(balance.owed_flops for balance in balances) == total
    assert sum(balance.receipts for balance in balances) == 2 * len(given_receipts)


@given(receipts, st.randoms(use_true_random=False))
def test_order_does_not_matter(given_receipts: list[Receipt], chance):
    shuffled = list(given_receipts)
    chance.shuffle(shuffled)
    assert fold(shuffled) == fold(given_receipts)


@given(receipts, st.sets(st.sampled_from([key.peer_id for key in KEYS])))
def test_receipts_of_several_keys_are_counted_once(given_receipts: list[Receipt], keys: set[str]):
    expected = sum(1 for receipt in given_receipts if {receipt.client, receipt.peer} & keys)
    assert books_of(given_receipts).taking_part(keys) == expected


@given(receipts)
def test_the_largest_earners_come_first(given_receipts: list[Receipt]):
    earned = [balance.earned_flops for balance in books_of(given_receipts).largest(MOST_BALANCES)]
    assert earned == sorted(earned, reverse=True)


def test_a_key_without_receipts_has_nothing_and_is_not_remembered():
    books = BalanceSums()
    assert books.balance(KEYS[0].peer_id) == Balance(key=KEYS[0].peer_id)
    assert books.largest(10) == []


@given(receipts, receipts)
def test_what_is_taken_back_never_counted(kept: list[Receipt], withdrawn: list[Receipt]):
    books = books_of([*kept, *withdrawn])
    for receipt in withdrawn:
        books.take_back(receipt.client, receipt.peer, receipt.flops)
    assert books.largest(MOST_BALANCES) == books_of(kept).largest(MOST_BALANCES)
    assert books.receipts == len(kept)


def test_more_than_64_bits_travel():
    books = BalanceSums()
    for _ in range(1000):
        books.add(KEYS[0].peer_id, KEYS[1].peer_id, 2**63 - 1)
    answer = Balances(balances=[books.balance(KEYS[1].peer_id)], receipts=1000)
    (balance,) = decode_as(encode(answer), Balances, BALANCES_LIMIT).balances
    assert balance.earned_flops == 1000 * (2**63 - 1)


def test_the_largest_answer_fits_its_cap():
    full = [Balance(key=KEYS[0].peer_id, earned="9" * 40, owed="9" * 40, receipts=2**63)] * MOST_BALANCES
    assert len(encode(Balances(balances=full, receipts=2**63))) <= BALANCES_LIMIT
