"""Datagrams of an announce: what is said is read again, and nobody without the key can say yes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.table.announce_datagrams import (
    LARGEST_ANSWER,
    LEAST_QUESTION,
    MOST_BODY,
    NO_TOKEN,
    AnnounceQuestion,
    No,
    TokenTold,
    Yes,
    news_of,
    read_answer,
    read_question,
    ticket_key,
    write_no,
    write_question,
    write_token,
    write_yes,
)
from axonp2p.table.dht.rpc.rpc import LARGEST_DATAGRAM
from axonp2p.table.records import Announced, Row
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, key_of, make_row

ADA = key_of("ada")
NONCE, TICKET, TOKEN = b"n" * 16, b"i" * 8, b"t" * 8
KEY = ticket_key(b"secret", TICKET)
ANNOUNCED = Announced(tracker=key_of("lab").peer_id, again_in=300.0, seen_from="192.0.2.1", time=NOW, reached=True)
YES = Yes(ANNOUNCED, b"news")
body = st.binary(min_size=LEAST_QUESTION, max_size=MOST_BODY)


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8), st.binary(min_size=8, max_size=8), body)
def test_a_question_is_read_as_it_was_written(nonce: bytes, ticket: bytes, token: bytes, body: bytes) -> None:
    question = AnnounceQuestion(nonce, ticket, token, body)
    assert read_question(write_question(question)) == question


@given(st.binary(max_size=LARGEST_DATAGRAM + 40))
def test_rubbish_is_no_question_and_no_answer(datagram: bytes) -> None:
    assert read_question(datagram) is None
    assert read_answer(datagram, NONCE, KEY) is None


@given(st.integers(0, 2 * LARGEST_DATAGRAM))
def test_a_question_is_bounded_from_both_sides(length: int) -> None:
    datagram = write_question(AnnounceQuestion(NONCE, TICKET, TOKEN, b"")) + bytes(length)
    assert (read_question(datagram) is not None) == (LEAST_QUESTION <= len(datagram) <= LARGEST_DATAGRAM)


def test_answers_are_read_as_they_were_written() -> None:
    assert read_answer(write_token(NONCE, TOKEN), NONCE, KEY) == TokenTold(TOKEN)
    assert read_answer(write_no(NONCE), NONCE, KEY) == No()
    assert read_answer(write_yes(NONCE, KEY, YES), NONCE, KEY) == YES


def test_an_answer_to_another_question_is_none() -> None:
    for answer in (write_token(NONCE, TOKEN), write_no(NONCE), write_yes(NONCE, KEY, YES)):
        assert read_answer(answer, b"m" * 16, KEY) is None


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_yes_that_was_changed_in_any_byte_is_none(place: int, change: int) -> None:
    datagram = bytearray(write_yes(NONCE, KEY, YES))
    datagram[place % len(datagram)] ^= change
    assert not isinstance(read_answer(bytes(datagram), NONCE, KEY), Yes)


def test_a_yes_under_another_key_is_none() -> None:
    assert read_answer(write_yes(NONCE, ticket_key(b"secret", b"j" * 8), YES), NONCE, KEY) is None
    assert read_answer(write_yes(NONCE, ticket_key(b"other", TICKET), YES), NONCE, KEY) is None


def test_a_yes_that_another_version_says_sends_the_peer_to_https() -> None:
    genuine = write_yes(NONCE, KEY, YES)
    assert read_answer(genuine, NONCE, KEY) == YES
    told = Announced(tracker="", again_in=300.0, seen_from="", time=NOW)
    assert read_answer(write_yes(NONCE, KEY, Yes(told, b"news")), NONCE, KEY) == No()


def test_no_answer_is_as_long_as_the_shortest_question() -> None:
    longest = Announced(
        tracker=ADA.peer_id, again_in=1200.0, seen_from="f" * 64, time=NOW + 0.5, reached=False, ping_in=1200.0
    )
    assert len(write_yes(NONCE, KEY, Yes(longest, b"news"))) <= LARGEST_ANSWER < LEAST_QUESTION
    assert len(write_token(NONCE, TOKEN)) < LEAST_QUESTION


def test_every_row_fits_and_none_is_too_short() -> None:
    signed = sign(ADA, make_row(ADA))
    longest = Signed[Row](signer=signed.signer, payload=bytes(Row.LIMIT), signature=signed.signature)
    assert len(encode(longest)) <= MOST_BODY
    withdrawal = sign(ADA, Row(peer=ADA.peer_id, name="a", sequence=0, addresses=[], certificate=bytes(32), expires=0,
                               capability=None))  # fmt: skip
    assert read_question(write_question(AnnounceQuestion(NONCE, TICKET, NO_TOKEN, encode(withdrawal)))) is not None


def test_news_are_others_only_when_other_trackers_are_named() -> None:
    told = news_of(["a", "b"], ["b"])
    assert news_of(["b", "a"], ["b"]) == told
    assert len({told, news_of(["a"], ["b"]), news_of(["a", "b"], []), news_of(["a", "b"], ["a"]), news_of([], [])}) == 5
