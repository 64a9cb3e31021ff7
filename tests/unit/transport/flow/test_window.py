"""Flow control by numbers: the sender stops in time, the receiver speaks in time, liars are caught."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.transport.flow.window import SIGNS_A_SECOND, SIGNS_AT_ONCE, WINDOW_BYTES, ReceiveWindow, SendWindow
from axonp2p.wire.frame import FRAME_COST, FRAME_LIMIT


@given(st.lists(st.tuples(st.booleans(), st.integers(1, FRAME_LIMIT), st.booleans()), max_size=200))
def test_two_honest_ends_never_exceed_the_window_and_always_get_on(steps: list[tuple[bool, int, bool]]) -> None:
    sender, receiver = SendWindow(), ReceiveWindow()
    under_way: list[int] = []
    for sends, size, bulk in steps:
        if sends:
            while not sender.has_room(size, bulk=bulk):
                assert under_way, "a sender that may not send must be waiting for somebody"
                if receiver.took(under_way.pop(0)) or not under_way:
                    sender.told(receiver.word())
            sender.sent(size)
            receiver.arrived(size)
            under_way.append(size)
        elif under_way and receiver.took(under_way.pop(0)):
            sender.told(receiver.word())
    assert sender.sent_bytes - sender.taken_bytes <= WINDOW_BYTES
    assert sender.sent_frames - sender.taken_frames >= len(under_way)


def test_bulk_leaves_room_for_words() -> None:
    sender = SendWindow()
    while sender.has_room(FRAME_LIMIT, bulk=True):
        sender.sent(FRAME_LIMIT)
    while sender.has_room(1000, bulk=True):
        sender.sent(1000)
    assert sender.has_room(100_000, bulk=False)


def test_a_full_window_is_spoken_of_before_it_blocks_for_good() -> None:
    receiver = ReceiveWindow()
    for _ in range(4):
        receiver.arrived(WINDOW_BYTES // 4 - FRAME_COST)
    assert receiver.took(WINDOW_BYTES // 4 - FRAME_COST)


def test_who_sends_ahead_of_the_window_is_caught() -> None:
    receiver = ReceiveWindow()
    receiver.arrived(WINDOW_BYTES - FRAME_COST)
    with pytest.raises(MessageTooLarge):
        receiver.arrived(1)


def test_a_frame_without_bytes_is_refused_and_one_of_a_byte_counts_its_fixed_part_at_both_ends() -> None:
    sender, receiver = SendWindow(), ReceiveWindow()
    with pytest.raises(MalformedMessage, match="empty"):
        receiver.arrived(0)
    sent = 0
    while sender.has_room(1, bulk=False):
        sender.sent(1)
        receiver.arrived(1)
        sent += 1
    assert sent == WINDOW_BYTES // (FRAME_COST + 1)
    assert receiver.waiting == sent * (FRAME_COST + 1)
    with pytest.raises(MessageTooLarge):
        receiver.arrived(1)


def test_bytes_that_never_make_a_message_are_held_to_a_window_too() -> None:
    receiver = ReceiveWindow()
    for _ in range(4):
        receiver.read(WINDOW_BYTES // 4)
    assert receiver.waiting == WINDOW_BYTES
    with pytest.raises(MessageTooLarge, match="no message"):
        receiver.read(1)


def test_signs_of_life_without_news_are_let_through_at_a_pace_and_no_faster() -> None:
    receiver = ReceiveWindow()
    for _ in range(int(SIGNS_AT_ONCE)):
        receiver.sign(news=False, now=10.0)
    receiver.sign(news=True, now=10.0)
    with pytest.raises(MalformedMessage, match="flood"):
        receiver.sign(news=False, now=10.0)
    for number in range(int(SIGNS_A_SECOND) * 5):
        receiver.sign(news=False, now=11.0 + number / SIGNS_A_SECOND)


@pytest.mark.parametrize("word", [b"", bytes(15), bytes(17), struct.pack(">QQ", 11, 1), struct.pack(">QQ", 10, 2)])
def test_impossible_words_are_malformed(word: bytes) -> None:
    sender = SendWindow()
    sender.sent(10)
    with pytest.raises(MalformedMessage):
        sender.told(word)


def test_numbers_never_go_back() -> None:
    sender = SendWindow()
    sender.sent(10)
    sender.told(struct.pack(">QQ", 10, 1))
    with pytest.raises(MalformedMessage):
        sender.told(struct.pack(">QQ", 5, 1))
