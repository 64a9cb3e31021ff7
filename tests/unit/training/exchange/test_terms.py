from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage
from axonp2p.jobs.aggregation import MEAN, Rule
from axonp2p.tensors.coding import EXACT, Coding
from axonp2p.tensors.layout import Layout
from axonp2p.training.exchange.terms import parts, terms_of
from tests.laboratory.exchange_settings import start_of

LAYOUT = Layout(parameters=5000, float_buffers=70, integer_buffers=30, lengths=())
TWO_BITS, EIGHT_BITS = Coding(bits=2), Coding(bits=8)


def order(**changes):
    plain = {
        "round": 3,
        "attempt": 1,
        "state": bytes(32),
        "members": [4, 0, 2],
        "listeners": [9],
        "shards": [0],
        "steps": 25,
        "exchange_every": 10,
        "seconds": 0.0,
        "overlap": False,
        "shares": [2, 1, 1],
        "part": 1024,
        "gather": TWO_BITS,
        "result": EIGHT_BITS,
        "patience": 5.0,
        "outer_learning_rate": 0.7,
        "outer_momentum": 0.9,
    }
    return start_of(**(plain | changes))


def test_the_terms_of_an_exchange():
    terms = terms_of(order(), 2, 1, LAYOUT, batch=8)
    assert terms.key == (3, 1, 1)
    assert terms.members == (0, 2, 4)
    assert terms.listeners == (9,)
    assert terms.slices == {4: (0, 2550), 0: (2550, 3825), 2: (3825, 5100)}
    assert terms.values == 5100
    assert terms.exact_from == 5000
    assert (terms.gather, terms.result) == (TWO_BITS, EIGHT_BITS)
    assert terms.fewest == 2
    assert not terms.listens
    assert terms_of(order(), 9, 0, LAYOUT, batch=8).listens


def test_a_rule_comes_with_the_order_and_asks_for_as_many_as_it_needs():
    assert terms_of(order(), 2, 0, LAYOUT, 8).settings.rule == MEAN
    bearing_one = terms_of(order(rule=Rule("median", 1)), 2, 0, LAYOUT, 8)
    assert (bearing_one.settings.rule, bearing_one.fewest) == (Rule("median", 1), 3)


def test_all_cut_alike():
    assert len({str(terms_of(order(), rank, 0, LAYOUT, 8).slices) for rank in (0, 2, 4, 9)}) == 1


def test_a_member_may_claim_the_samples_of_one_leg():
    assert [terms_of(order(), 0, exchange, LAYOUT, 8).most_samples for exchange in (0, 1, 2)] == [80, 80, 40]


def test_who_is_alone_rounds_nothing():
    alone = order(members=[4], listeners=[], shares=[1])
    assert terms_of(alone, 4, 0, LAYOUT, 8).result == EXACT
    heard = order(members=[4], shares=[1])
    assert terms_of(heard, 4, 0, LAYOUT, 8).result == EIGHT_BITS


@pytest.mark.parametrize(
    ("rank", "exchange", "changes"),
    [
        (1, 0, {}),
        (0, 0, {"members": [0, 0, 2]}),
        (0, 0, {"listeners": [2]}),
        (0, 0, {"shares": [1, 1]}),
        (0, 0, {"shares": [0, 0, 0]}),
        (0, 3, {}),
        (0, 0, {"rule": Rule("median", 2)}),
        (0, 0, {"rule": Rule("multi-krum", 1)}),
    ],
)
def test_orders_that_make_no_sense(rank, exchange, changes):
    with pytest.raises(MalformedMessage):
        terms_of(order(**changes), rank, exchange, LAYOUT, 8)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20), st.integers(0, 130))
def test_parts_cover_a_slice_once_and_none_lies_across_the_border(begin, length, part, exact_from):
    end = begin + length
    found = parts(begin, end, part, exact_from)
    covered = [begin + offset + at for offset, count in found for at in range(count)]
    assert covered == list(range(begin, end))
    for offset, count in found:
        assert 1 <= count <= part
        assert begin + offset >= exact_from or begin + offset + count <= exact_from
