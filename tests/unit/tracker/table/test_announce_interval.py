from __future__ import annotations

import pytest

from tracker.table.announce_interval import ANNOUNCES_A_SECOND, MOST_AGAIN_S, AnnounceInterval


def of(alive: int) -> AnnounceInterval:
    interval = AnnounceInterval(300)
    interval.worked(0.0, 0.0, alive)
    return interval


def test_a_small_swarm_follows_the_rule():
    assert of(1000).again_in == 300


def test_a_million_peers_announce_every_twenty_minutes():
    assert of(1_000_000).again_in == MOST_AGAIN_S
    assert of(int(600 * ANNOUNCES_A_SECOND)).again_in == pytest.approx(600, abs=1)


def test_a_busy_tracker_asks_for_patience_and_comes_back_to_the_rule():
    interval = AnnounceInterval(300)
    for second in range(600):
        interval.worked(float(second), float(second), 10)
    assert interval.again_in == pytest.approx(300 * 2**0.5, rel=0.01)
    for second in range(600, 1200):
        interval.worked(float(second), 600.0, 10)
    assert interval.again_in == 300


@pytest.mark.parametrize("load", [700.0, 1500.0])
def test_peers_that_answer_late_do_not_make_it_swing(load: float):
    interval, intervals = AnnounceInterval(300), [300.0]
    processor = 0.0
    for second in range(0, 12_000, 10):
        asked = intervals[max(0, len(intervals) - 60)]  # what peers were told ten minutes ago
        processor += 10 * min(1.0, load / asked / 2.5)
        interval.worked(float(second), processor, 10)
        intervals.append(interval.again_in)
    late = intervals[-200:]
    assert max(late) - min(late) < 30
