"""Bytes that strangers sent ahead: the largest of whoever holds most goes first."""

from __future__ import annotations

from axonp2p.transport.flow.window import WaitingBytes

HOME, CAFE = "192.0.2.7", "198.51.100.9"


def test_within_the_bounds_nobody_goes() -> None:
    held: WaitingBytes[str] = WaitingBytes(100, 150)
    assert held.holds("a", HOME, 60) is None
    assert held.holds("b", HOME, 40) is None
    assert held.holds("c", CAFE, 50) is None


def test_one_household_loses_its_own_largest() -> None:
    held: WaitingBytes[str] = WaitingBytes(100, 1000)
    held.holds("a", HOME, 60)
    held.holds("other", CAFE, 90)
    assert held.holds("b", HOME, 50) == "a"
    held.release("a")
    assert held.holds("b", HOME, 90) is None


def test_over_the_bound_in_all_the_household_that_holds_most_loses() -> None:
    held: WaitingBytes[str] = WaitingBytes(100, 150)
    held.holds("a", HOME, 90)
    assert held.holds("c", CAFE, 61) == "a"
