from __future__ import annotations

import pytest

from axonp2p.errors import Busy, TooOften
from axonp2p.transport.address import plain_address, source_of
from axonp2p.transport.flow.rate_limit import RateLimit


def test_a_burst_passes_then_as_many_as_are_earned():
    limit = RateLimit(a_second=2, burst=3)
    for _ in range(3):
        limit.take("192.0.2.1", 0)
    with pytest.raises(Busy, match=r"too many requests from 192\.0\.2\.1") as refused:
        limit.take("192.0.2.1", 0)
    assert refused.value.fix == "ask again in 0.5 s"
    limit.take("192.0.2.1", 0.5)
    with pytest.raises(Busy):
        limit.take("192.0.2.1", 0.5)


def test_one_does_not_pay_for_another():
    limit = RateLimit(a_second=1, burst=1)
    limit.take("192.0.2.1", 0)
    limit.take("192.0.2.2", 0)


def test_an_ipv6_household_is_one_source():
    limit = RateLimit(a_second=1, burst=1)
    limit.take("2001:db8:1:2::1", 0)
    with pytest.raises(Busy):
        limit.take("2001:db8:1:2:ffff::9", 0)
    limit.take("2001:db8:1:102::1", 0)


def test_idle_sources_are_forgotten():
    limit = RateLimit(a_second=1, burst=10)
    limit.take("192.0.2.1", 0)
    limit.take("192.0.2.2", 9.5)
    limit.forget_idle(10)
    assert len(limit) == 1


def test_no_crowd_of_sources_fills_the_memory():
    limit = RateLimit(a_second=1, burst=1, most_buckets=3)
    for number in range(100):
        limit.take(f"192.0.2.{number}", 0)
    assert len(limit) == 3


@pytest.mark.parametrize(
    ("address", "plain", "source"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::1", "fe80::/56"),
        ("2001:DB8::1", "2001:db8::1", "2001:db8::/56"),
        ("", "", ""),
        ("unix", "unix", "unix"),
    ],
)
def test_addresses_have_one_spelling(address: str, plain: str, source: str):
    assert plain_address(address) == plain
    assert source_of(address) == source


def test_what_was_done_already_counts_where_less_is_left_and_is_no_larger_debt_than_one_of_its_kind():
    limit = RateLimit(1.0, 10.0)
    for _ in range(9):
        limit.debit("a", 0.0, 4.0)
    with pytest.raises(TooOften) as refused:
        limit.charge("a", 3.0)
    assert refused.value.wait_s == 2.0
    limit.forget_idle(13.0)
    assert len(limit) == 1
    limit.forget_idle(14.0)
    assert len(limit) == 0


def test_a_burst_is_allowed_and_then_the_rate_also_by_a_clock_that_is_set_back() -> None:
    limit = RateLimit(2.0, 3.0)
    assert [limit.allows("one", 10.0) for _ in range(4)] == [True, True, True, False]
    assert limit.allows("other", 10.0)
    assert not limit.allows("one", 5.0)
    assert limit.allows("one", 5.5)
    assert not limit.allows("one", 5.5)


def test_a_bounded_number_of_sources_is_remembered() -> None:
    limit = RateLimit(0.0, 1.0, most_buckets=8)
    assert all(limit.allows(str(number), 0.0) for number in range(9))
    assert limit.allows("0", 0.0)  # forgotten
    assert not limit.allows("8", 0.0)
