"""Which source is asked when."""

from __future__ import annotations

from axonp2p.table.asking_order import DHT_AFTER_S, LONGEST_S, NEXT_AFTER_S, PATIENCE_S, TRACKER_PATIENCE_S, AskingOrder
from axonp2p.table.sightings import DHT


def order(*trackers: str, dht: bool = True, at_once: bool = False) -> AskingOrder:
    return AskingOrder(trackers, dht=dht, at_once=at_once, now=0.0)


def test_one_tracker_that_knows_enough_is_all_that_is_asked() -> None:
    asking = order("one", "two")
    assert asking.start(0.0) == ["one"]
    assert asking.start(0.1) == []
    asking.answered("one", 0.1, enough=True)
    assert asking.over(0.1)
    assert not asking.complete


def test_the_dht_joins_in_after_a_moment_and_the_next_tracker_when_the_first_is_slow() -> None:
    asking = order("one", "two")
    asking.start(0.0)
    assert asking.wait(0.0) == DHT_AFTER_S
    assert asking.start(DHT_AFTER_S) == [DHT]
    assert asking.wait(DHT_AFTER_S) == NEXT_AFTER_S - DHT_AFTER_S
    assert asking.start(NEXT_AFTER_S) == ["two"]
    assert not asking.over(NEXT_AFTER_S)


def test_the_next_tracker_is_asked_at_once_when_one_fails_and_the_dht_when_none_is_left() -> None:
    asking = order("one", "two")
    asking.start(0.0)
    asking.failed("one", 0.01)
    assert asking.start(0.01) == ["two"]
    asking.failed("two", 0.02)
    assert asking.start(0.02) == [DHT]
    assert not asking.over(0.02)
    asking.failed(DHT, 0.5)
    assert asking.over(0.5)
    assert asking.complete


def test_without_trackers_the_dht_is_asked_at_once() -> None:
    asking = order()
    assert asking.start(0.0) == [DHT]


def test_without_anybody_it_is_over_at_once() -> None:
    asking = order(dht=False)
    assert asking.start(0.0) == []
    assert asking.over(0.0)


def test_when_one_shows_too_little_all_others_are_asked_and_waited_for_a_bounded_while() -> None:
    asking = order("empty", "two", "three")
    asking.start(0.0)
    asking.answered("empty", 0.1, enough=False)
    assert asking.start(0.1) == ["two", "three", DHT]
    asking.answered("two", 0.2, enough=False)
    asking.failed("three", 0.2)
    assert not asking.over(0.1 + PATIENCE_S - 0.01)
    assert asking.over(0.1 + PATIENCE_S)
    assert not asking.complete


def test_nobody_is_waited_for_for_ever() -> None:
    asking = order("silent", dht=False)
    asking.start(0.0)
    assert asking.wait(0.0) == LONGEST_S
    assert asking.over(LONGEST_S)


def test_a_survey_asks_everybody_at_once() -> None:
    asking = order("one", "two", at_once=True)
    assert asking.start(0.0) == ["one", "two", DHT]
    asking.answered("one", 0.1, enough=False)
    assert not asking.over(LONGEST_S - 0.01)
    assert asking.over(LONGEST_S)


def test_a_tracker_that_says_nothing_beside_one_that_answers_is_not_waited_for_long() -> None:
    for at_once in (True, False):
        asking = order("good", "silent", at_once=at_once)
        asking.start(0.0)
        asking.answered("good", 0.1, enough=False)
        asking.start(0.1)
        asking.answered(DHT, 0.2, enough=False)
        assert not asking.over(0.1 + TRACKER_PATIENCE_S - 0.01)
        assert asking.wait(0.2) <= TRACKER_PATIENCE_S
        assert asking.over(0.1 + TRACKER_PATIENCE_S)
