"""How often a line is read: by the clock that is passed in."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.transport.flow.read_pace import LONGEST_S, SHORTEST_S, WISHED_BYTES, ReadPace


def readings(packets_a_second: int, packet: int, seconds: int) -> list[tuple[float, int, float]]:
    """When a line that brings packets so fast was read, how much each reading brought, and the pause after it."""
    pace, seen, read, now = ReadPace(), [], 0, 0.0
    for arrived in range(1, packets_a_second * seconds):
        at = arrived / packets_a_second
        if at >= now:  # whoever waits for nothing reads each packet when it comes
            count, read = (arrived - read) * packet, arrived
            wait = pace.pause(count, at)
            seen.append((at, count, wait))
            now = at + wait
    return seen


def test_a_busy_line_is_read_for_much_at_once():
    """100 Mbit/s in packets of 9 kB: 1400 packets a second, in some two hundred readings."""
    later = [count for at, count, _ in readings(1_400, 9_000, 2) if at > 0.2]
    assert len(later) < 250 * 1.8
    assert sum(later) / len(later) > WISHED_BYTES / 2


def test_a_slower_line_is_read_a_hundred_times_a_second_at_most():
    """A packet every 3.6 ms: no word waits for longer than ten, however little there is to read."""
    seen = [at for at, _, _ in readings(280, 9_000, 2) if at > 0.2]
    assert 160 < len(seen) <= 180


def test_nothing_waits_on_a_quiet_line():
    assert not any(pause for _, _, pause in readings(200, 1_500, 3))


def test_a_very_fast_line_is_read_at_once():
    assert not any(pause for _, _, pause in readings(10_000, WISHED_BYTES, 1))


def test_where_a_reading_brought_all_it_could_the_rest_is_read_at_once():
    pace = ReadPace()
    assert [pace.pause(10_000, at / 1000) for at in range(200)][-1] > 0
    assert pace.pause(4 * WISHED_BYTES, 0.2) == 0


def test_a_line_that_has_become_quiet_is_read_at_once_again():
    pace = ReadPace()
    assert [pace.pause(10_000, at / 1000) for at in range(200)][-1] > 0
    pace.pause(500, 1.2)
    assert pace.pause(500, 1.3) == 0


@given(st.lists(st.tuples(st.integers(1, 300_000), st.floats(0, 1)), max_size=100))
def test_no_pause_is_longer_than_a_word_may_wait(came):
    pace, now = ReadPace(), itertools.accumulate(seconds for _, seconds in came)
    for (count, _), at in zip(came, now, strict=True):
        wait = pace.pause(count, at)
        assert wait == 0 or SHORTEST_S <= wait <= LONGEST_S
