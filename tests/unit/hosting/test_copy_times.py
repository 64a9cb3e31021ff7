"""When a second host copies again."""

from __future__ import annotations

from axonp2p.hosting.lives import LONGEST_S, SHORTEST_S, pause_before_copy


def test_pauses_grow_with_the_work_that_could_be_lost() -> None:
    assert pause_before_copy(0, 0, 0) == SHORTEST_S
    assert pause_before_copy(1600, 0, 0) == 100
    assert pause_before_copy(10**6, 0, 0) == LONGEST_S


def test_copies_take_a_small_part_of_the_time_and_failures_less() -> None:
    assert pause_before_copy(0, 10, 0) == 50
    assert pause_before_copy(0, 0, 2) == 4 * SHORTEST_S
    assert pause_before_copy(0, 0, 10**6) == LONGEST_S
