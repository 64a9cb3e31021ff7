from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.sandbox import log as module
from axonp2p.sandbox.log import (
    BURST_BYTES,
    LEAST_PAUSE_S,
    READ_A_SECOND,
    READ_AT_ONCE,
    BoundedLog,
    LogPace,
    harmless,
    without_a_broken_end,
)


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


def test_of_all_characters_those_of_harmful_kinds_are_replaced_and_no_others() -> None:
    for plane in range(17):
        text = "".join(map(chr, range(plane * 0x10000, (plane + 1) * 0x10000))).replace("\r\n", "")
        whole = text.encode(errors="replace").decode()  # a surrogate is no UTF-8
        assert harmless(whole.encode()) == "".join(map(one_by_one, whole))


@given(st.binary(max_size=200) | st.text(max_size=60).map(str.encode))
def test_whatever_is_printed_is_cleaned_as_character_by_character(data: bytes) -> None:
    text = data.decode(errors="replace").replace("\r\n", "\n")
    assert harmless(data) == "".join(map(one_by_one, text))


def one_by_one(character: str) -> str:
    harmful = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    return "\N{REPLACEMENT CHARACTER}" if harmful and character not in "\n\t" else character


@given(st.lists(st.binary(max_size=40) | st.text(max_size=20).map(str.encode)), st.integers(2, 64), st.integers(1, 30))
def test_the_end_of_a_log_is_the_end_of_its_text(pieces: list[bytes], limit: int, most: int) -> None:
    log = BoundedLog(limit)
    for piece in pieces:
        log.add(piece)
    assert log.end(most) == log.text()[-most:]


def test_for_the_end_of_a_log_only_that_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[int] = []

    def noted(data: bytes) -> str:
        cleaned.append(len(data))
        return harmless(data)

    monkeypatch.setattr(module, "harmless", noted)
    for printed in (100_000, 1_000_000):
        log = BoundedLog(2 * 100_000)
        log.add(bytes(printed))
        log.end(100)
    assert max(cleaned) <= 500


def test_a_flood_of_prints_is_read_at_a_pace_and_a_quiet_log_at_once() -> None:
    pace, now, read = LogPace(), 100.0, 0
    while now < 110.0:
        read += READ_AT_ONCE
        now += pace.pause(READ_AT_ONCE, now)
    assert read <= BURST_BYTES + 10 * READ_A_SECOND + 2 * READ_AT_ONCE
    assert pace.pause(100, now + 60) == LEAST_PAUSE_S


def test_single_bytes_are_read_a_hundred_times_a_second_at_most() -> None:
    assert LogPace().pause(1, 0.0) == LEAST_PAUSE_S


@given(st.lists(st.binary(max_size=40), max_size=40), st.integers(2, 64), st.integers(1, 30), st.integers(0, 900))
def test_what_is_read_on_is_what_was_written_but_for_the_gap(
    pieces: list[bytes], limit: int, most: int, first: int
) -> None:
    log, whole = BoundedLog(limit), b"".join(pieces)
    for piece in pieces:
        log.add(piece)
    at, left_out = first, 0
    while True:
        start, read = log.since(at, most)
        if not read:
            break
        left_out += start - at
        assert read == whole[start : start + most][: len(read)]
        at = start + len(read)
    assert at == max(first, len(whole))
    assert left_out <= max(0, len(whole) - limit)


@given(st.text(max_size=60), st.integers(1, 9))
def test_pieces_that_end_with_a_character_read_as_the_whole_does(text: str, most: int) -> None:
    log, whole = BoundedLog(10_000), text.encode()
    log.add(whole)
    at, heard = 0, ""
    while piece := without_a_broken_end(log.since(at, most + 3)[1]):
        heard += harmless(piece)
        at += len(piece)
    assert harmless(whole[:at]) == heard
    assert whole[at:] in (b"", b"\r")


def test_the_beginning_of_a_character_waits_for_its_rest_and_rubbish_does_not() -> None:
    assert without_a_broken_end("ab\N{EURO SIGN}".encode()[:-1]) == b"ab"
    assert without_a_broken_end(b"line\r") == b"line"
    assert without_a_broken_end(b"\xf0\x9f\x98") == b""
    assert without_a_broken_end(b"\x80\x80\x80\x80") == b"\x80\x80\x80\x80"
    assert without_a_broken_end(b"") == b""


def test_the_rest_of_a_log_is_what_was_not_heard_of_it() -> None:
    log = BoundedLog(16)
    log.add(b"0123456789" * 4)
    whole = log.text()
    assert whole.startswith("01234567")
    assert log.text(4) == whole[4:]
    assert log.text(20) == "\n[... 12 bytes left out ...]\n" + "23456789"
    assert log.text(36) == "6789"
    assert log.text(40) == log.text(99) == ""
