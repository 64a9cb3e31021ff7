"""The owner says something; later, or after a restart, or under a clock that was set, it is asked what holds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import SettingsError
from peer_daemon.owner.effective_state import StandingOrders
from peer_daemon.owner.orders import LONGEST_PAUSE_S, OrdersBook, left, pause
from tests.fakes import NOW

HOUR = 3600.0


class TwoClocks:
    """The wall's clock may be set; the other one goes on."""

    def __init__(self):
        self.wall, self.running = NOW, 1000.0

    def now(self):
        return self.wall

    def monotonic(self):
        return self.running

    def passes(self, seconds):
        self.wall += seconds
        self.running += seconds


@pytest.fixture
def clocks():
    return TwoClocks()


@pytest.fixture
def book(tmp_path, clocks):
    return OrdersBook(tmp_path / "orders.json", clocks)


def restarted(tmp_path, clocks):
    clocks.running = 5.0
    return OrdersBook(tmp_path / "orders.json", clocks)


def test_who_said_nothing_wants_work(book, clocks):
    assert book.in_force(clocks.now()) == StandingOrders()


def test_a_pause_of_two_hours(book, clocks):
    book.pause(2 * HOUR, clocks.now())
    assert book.in_force(clocks.now()) == StandingOrders(paused=True, until=NOW + 2 * HOUR)
    clocks.passes(2 * HOUR - 1)
    assert book.in_force(clocks.now()).paused
    clocks.passes(1)
    assert book.in_force(clocks.now()) == StandingOrders()


def test_a_pause_without_an_end_lasts_until_resume(book, clocks, tmp_path):
    book.pause(None, clocks.now())
    clocks.passes(1000 * 86400)
    assert restarted(tmp_path, clocks).in_force(clocks.now()) == StandingOrders(paused=True)
    book.resume()
    assert restarted(tmp_path, clocks).in_force(clocks.now()) == StandingOrders()


def test_finishing_lasts_over_a_restart(book, clocks, tmp_path):
    book.finish()
    assert restarted(tmp_path, clocks).in_force(clocks.now()) == StandingOrders(finishing=True)


def test_what_was_said_last_holds_alone(book, clocks):
    book.pause(HOUR, clocks.now())
    book.finish()
    assert book.in_force(clocks.now()) == StandingOrders(finishing=True)
    book.pause(HOUR, clocks.now())
    assert book.in_force(clocks.now()) == StandingOrders(paused=True, until=NOW + HOUR)


def test_a_pause_goes_on_after_a_restart_and_ends_while_the_daemon_is_away(book, clocks, tmp_path):
    book.pause(2 * HOUR, clocks.now())
    clocks.passes(HOUR)
    again = restarted(tmp_path, clocks)
    assert again.in_force(clocks.now()) == StandingOrders(paused=True, until=NOW + 2 * HOUR)
    clocks.passes(HOUR)
    assert restarted(tmp_path, clocks).in_force(clocks.now()) == StandingOrders()


def test_a_clock_that_is_set_back_a_day_makes_no_pause_longer(book, clocks, tmp_path):
    book.pause(2 * HOUR, clocks.now())
    clocks.passes(HOUR)
    clocks.wall -= 24 * HOUR
    assert book.in_force(clocks.now()) == StandingOrders(paused=True, until=clocks.now() + HOUR)
    again = restarted(tmp_path, clocks)
    assert again.in_force(clocks.now()).until == clocks.now() + 2 * HOUR
    clocks.passes(2 * HOUR)
    assert again.in_force(clocks.now()) == StandingOrders()


def test_a_clock_that_is_set_ahead_and_a_night_asleep_end_a_pause(book, clocks):
    book.pause(2 * HOUR, clocks.now())
    clocks.wall += 24 * HOUR
    assert book.in_force(clocks.now()) == StandingOrders()


@pytest.mark.parametrize("seconds", [0, -1, LONGEST_PAUSE_S + 1, math.inf, math.nan])
def test_a_pause_that_cannot_be_meant_is_refused_and_changes_nothing(book, clocks, seconds):
    book.finish()
    with pytest.raises(SettingsError, match="pause"):
        book.pause(seconds, clocks.now())
    assert book.in_force(clocks.now()) == StandingOrders(finishing=True)


@pytest.mark.parametrize("content", [b"", b"{", b'{"paused": 3}', b"\xff" * 9999, b'{"somethig": true}'])
def test_orders_that_cannot_be_read_mean_paused(tmp_path, clocks, content):
    (tmp_path / "orders.json").write_bytes(content)
    book = OrdersBook(tmp_path / "orders.json", clocks)
    assert book.in_force(clocks.now()) == StandingOrders(paused=True)
    book.resume()
    assert restarted(tmp_path, clocks).in_force(clocks.now()) == StandingOrders()


def test_an_owner_whose_disk_cannot_be_written_is_obeyed_all_the_same(tmp_path, clocks):
    book = OrdersBook(tmp_path / "gone" / "orders.json", clocks)
    book.pause(HOUR, clocks.now())
    assert book.in_force(clocks.now()).paused
    assert "orders.json" in book.not_kept
    (tmp_path / "gone").mkdir()
    book.resume()
    assert book.not_kept == ""


@given(st.floats(0.001, LONGEST_PAUSE_S), st.floats(-1e9, 1e9))
def test_no_pause_is_ever_longer_than_it_was_to_be(seconds, jump):
    assert 0 <= left(pause(seconds, NOW), NOW + jump) <= seconds
