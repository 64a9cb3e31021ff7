"""One announce by datagram, as a conversation."""

from __future__ import annotations

import pytest

from axonp2p.table.announce_datagrams import (
    NO_TOKEN,
    AnnounceQuestion,
    DatagramTicket,
    No,
    Yes,
    read_question,
    write_no,
    write_token,
    write_yes,
)
from axonp2p.table.records import Announced
from peer_daemon.announcing.announce_ways import DatagramWay
from peer_daemon.announcing.datagram_talk import GIVE_UP_AFTER_S, MOST_TOKENS, DatagramTalk, TakenByDatagram
from tests.fakes import NOW, key_of

TICKET = DatagramTicket(ticket=b"t" * 8, key=b"k" * 32)
NONCE, BODY = b"n" * 16, b"b" * 600
YES = Yes(Announced(tracker=key_of("lab").peer_id, again_in=300.0, seen_from="192.0.2.1", time=NOW), b"news")


def begin(token: bytes = NO_TOKEN) -> DatagramTalk:
    return DatagramTalk(DatagramWay("192.0.2.1", TICKET, token), NONCE, BODY)


def said(talk: DatagramTalk) -> AnnounceQuestion:
    turn = talk.send()
    assert turn is not None
    question = read_question(turn[0])
    assert question is not None
    return question


def test_asked_without_a_token_told_one_asked_again_and_taken() -> None:
    talk = begin()
    assert said(talk) == AnnounceQuestion(NONCE, TICKET.ticket, NO_TOKEN, BODY)
    assert talk.hear(write_token(NONCE, b"12345678"))
    assert talk.outcome is None
    assert said(talk).token == b"12345678"
    assert talk.hear(write_yes(NONCE, TICKET.key, YES))
    assert talk.outcome == TakenByDatagram(YES, b"12345678")


def test_asked_with_a_token_that_still_counts() -> None:
    talk = begin(b"12345678")
    assert said(talk).token == b"12345678"
    assert talk.hear(write_yes(NONCE, TICKET.key, YES))
    assert talk.outcome == TakenByDatagram(YES, b"12345678")


def test_a_no_is_the_end() -> None:
    talk = begin()
    said(talk)
    assert talk.hear(write_no(NONCE))
    assert talk.outcome == No()


def test_silence_is_asked_again_and_given_up_within_two_seconds() -> None:
    talk, waited, sent = begin(), 0.0, []
    while (turn := talk.send()) is not None:
        sent.append(turn[0])
        waited += turn[1]
    assert len(sent) == 3
    assert len(set(sent)) == 1
    assert waited == GIVE_UP_AFTER_S <= 2
    assert talk.outcome is None


@pytest.mark.parametrize(
    "forged",
    [
        b"",
        write_no(b"m" * 16),
        write_token(b"m" * 16, b"12345678"),
        write_yes(b"m" * 16, TICKET.key, YES),
        write_yes(NONCE, b"x" * 32, YES),
        write_token(NONCE, NO_TOKEN),
        write_yes(NONCE, TICKET.key, YES)[:-1],
    ],
)
def test_what_the_tracker_did_not_say_to_this_question_is_not_heard(forged: bytes) -> None:
    talk = begin()
    said(talk)
    assert not talk.hear(forged)
    assert talk.outcome is None


def test_the_same_token_twice_is_one_that_came_late() -> None:
    talk = begin()
    said(talk)
    assert talk.hear(write_token(NONCE, b"12345678"))
    assert not talk.hear(write_token(NONCE, b"12345678"))


def test_a_tracker_that_takes_no_token_is_given_up() -> None:
    talk, turns = begin(), 0
    while talk.send() is not None:
        turns += 1
        talk.hear(write_token(NONCE, turns.to_bytes(8)))
    assert turns <= (MOST_TOKENS + 1) * 3
    assert talk.outcome is None
