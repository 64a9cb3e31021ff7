from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.sandbox.log import BURST_BYTES, LEAST_PAUSE_S, READ_A_SECOND, READ_AT_ONCE, BoundedLog, LogPace, harmless


def test_a_short_log_is_kept_whole() -> None:
    log = BoundedLog(100)
    log.add(b"one\n")
    log.add("zwei ü\n".encode())
    assert log.text() == "one\nzwei ü\n"


def test_of_a_long_log_head_and_tail_are_kept_and_the_gap_is_named() -> None:
    log = BoundedLog(8)
    for piece in (b"abc", b"defgh", b"ijklmnop", b"qr"):
        log.add(piece)
    assert log.text() == "abcd\n[... 10 bytes left out ...]\nopqr"
    assert log.total == 18


@given(st.lists(st.binary(max_size=40), max_size=60), st.integers(2, 64))
def test_whatever_the_pieces_the_same_bytes_are_kept(pieces: list[bytes], limit: int) -> None:
    split, whole = BoundedLog(limit), BoundedLog(limit)
    for piece in pieces:
        split.add(piece)
    whole.add(b"".join(pieces))
    assert split.text() == whole.text()
    assert split.total == sum(map(len, pieces))


def test_many_small_pieces_do_not_add_up() -> None:
    log = BoundedLog(1024)
    for _ in range(10_000):
        log.add(b"x")
    assert len(log._tail) <= 257


def test_what_moves_the_cursor_or_reorders_text_is_replaced() -> None:
    assert harmless(b"a\x1b[2Jb\rc\x00d\x7f") == "a�[2Jb�c�d�"
    assert harmless("user\u202egnp.exe\u200b\u2028".encode()) == "user�gnp.exe��"
    assert harmless(b"line\r\n\tnext\xff") == "line\n\tnext�"


def test_a_flood_of_prints_is_read_at_a_pace_and_a_quiet_log_at_once() -> None:
    pace, now, read = LogPace(), 100.0, 0
    while now < 110.0:
        read += READ_AT_ONCE
        now += pace.pause(READ_AT_ONCE, now)
    assert read <= BURST_BYTES + 10 * READ_A_SECOND + 2 * READ_AT_ONCE
    assert pace.pause(100, now + 60) == LEAST_PAUSE_S


def test_single_bytes_are_read_a_hundred_times_a_second_at_most() -> None:
    assert LogPace().pause(1, 0.0) == LEAST_PAUSE_S
